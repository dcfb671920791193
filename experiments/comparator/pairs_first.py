"""Would the comparator's language model do better if it learnt minimal pairs first? It would not.

    python experiments/comparator/pairs_first.py RUNS --measured MEASURED --out RESULTS

RUNS is a folder that language_model.py wrote with the plans `pairs`, and `final` and `begun` with --begin, on
minimal pairs with two kinds more (`detail`, `explanation`). Beside each of its runs stands the one that ships
on the same raters, from docs/results/comparator-joined.json. MEASURED holds what audit.py, scorecard.py and
assistants.py wrote while the new one was in the place of the shipped: the rater model had learnt from
ConvAI 2017, too, and the share was the best of held-out raters. Their shipped figures are in docs/results.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from record import ROOT, head_of  # noqa: E402

RESULTS = ROOT / "docs/results"
AUDITS = {"open": "", "held out": "-held-out", "second": "-second"}
OF_RUN = ("within_sittings", "by_trust", "by_trust_in_tier", "pairs_held_out_all", "audit_all")


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def of_runs(records: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Run -> its figures; a run without a quarter of raters held out has those of pairs alone."""
    rows = {}
    for record in records:
        figures = {name: record[name] for name in OF_RUN if record[name] == record[name]}  # not nan
        rows[record["run"]] = figures | {"pairs_held_out": record["pairs_held_out"]}
    return rows


def joined(folder: Path) -> dict[str, Any]:
    """What was measured on the whole comparator."""
    card = read(folder / "comparator-scorecard.json")
    methods = {row["method"]: row["results"] for row in card["rows"]}
    parts = {
        name: {column: result["accuracy"] for column, result in methods[name].items()}
        for name in ("comparator default", "its language model", "its weights chosen on other raters")
    }
    audits = {part: read(folder / f"comparator-audit{end}.json") for part, end in AUDITS.items()}
    rows = read(folder / "comparator-assistants.json")["rows"]
    return {
        "share": read(folder / "comparator-joined.json")["chosen_share"],
        "development": parts,
        "unseen systems": card["joined_on_unseen_systems"]["accuracy"],
        "audit": {part: audit["overall"]["accuracy"] for part, audit in audits.items()},
        "audit kinds": {
            part: {kind["kind"]: kind["accuracy"] for kind in audit["kinds"]}
            for part, audit in audits.items()
        },
        "assistants": {name: row["decided"]["accuracy"] for name, row in rows.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path)
    parser.add_argument("--measured", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    records = [read(path) for path in sorted(given.runs.glob("*.json"))]
    shipped = read(RESULTS / "comparator-joined.json")["language_model"]["runs"]
    record = {
        **head_of(__file__, "comparator-pairs-first.json", seed=0),
        "command": "python experiments/comparator/pairs_first.py RUNS --measured MEASURED "
        "--out docs/results/comparator-pairs-first.json",
        "trained": sorted({f"{r['command']}; {r['machine']}" for r in records}),
        "data": records[0]["data"],
        "runs": of_runs(records),
        "shipped runs": of_runs(shipped),
        "joined": joined(given.measured),
        "shipped joined": joined(RESULTS),
    }
    given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
