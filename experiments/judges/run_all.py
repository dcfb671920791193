"""All results files of docs/results/judges.md and its tables, one script after the other.

    python experiments/judges/run_all.py --data ../shared/data --thumbs thumbs.npz [--only usr reliable page]

Features are made before (features.py), SmolLM2's answers to injections are kept in runs/injections. Without
these it takes some minutes on two cores, most of them the comparator's.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from corpora import ROOT

RESULTS = Path("docs/results")


def commands(data: Path, thumbs: Path) -> dict[str, list[str]]:
    """Step -> the script and what it is given; the order matters."""
    weights = "src/palaver/judges/response_weights.json"
    given = ["--data", str(data), "--out"]
    return {
        "response": ["response.py", *given, str(RESULTS / "judges-response.json"), "--weights", weights,
                     "--thumbs", str(thumbs)],
        "usr": ["usr.py", *given, str(RESULTS / "judges-usr.json")],
        "reliable": ["reliable.py", *given, str(RESULTS / "judges-reliable.json")],
        "verdicts": ["verdicts.py", *given, str(RESULTS / "judges-verdicts.json")],
        "injections": ["injections.py", *given, str(RESULTS / "judges-injections.json")],
        "page": ["page.py"],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--thumbs", type=Path, default=Path("thumbs.npz"))
    parser.add_argument(
        "--no-models", action="store_true", help="leave out what opens a model in usr, reliable"
    )
    parser.add_argument("--only", nargs="*", default=[], help="these steps")
    options = parser.parse_args()
    for step, words in commands(options.data, options.thumbs).items():
        if options.only and step not in options.only:
            continue
        print(step, flush=True)
        if options.no_models and step in ("usr", "reliable"):
            words = [*words, "--no-models"]
        script = ROOT / "experiments" / "judges" / words[0]
        subprocess.run([sys.executable, str(script), *words[1:]], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
