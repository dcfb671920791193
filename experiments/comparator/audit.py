"""The shipped comparator on the audit set, its open part, for docs/reference/comparator.md.

    python experiments/comparator/audit.py --out docs/results/comparator-audit.json

With --part held-out or second those, once, when nothing is changed any more.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from benchmarks.harness import machine  # noqa: E402

from palaver.judges.audit import audit  # noqa: E402
from palaver.schema.run import plain  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", choices=("open", "held-out", "second"), default="open")
    options = parser.parse_args()
    result = audit("comparator", part=options.part.replace("-", " "), device="cpu")
    flag = "" if options.part == "open" else f" --part {options.part}"
    record = {
        "made_by": f"python experiments/comparator/audit.py{flag} --out docs/results/{options.out.name}",
        "command": f"palaver compare audit{flag} --device cpu --json",
        "date": datetime.date.today().isoformat(),
        "seed": None,
        "machine": machine(),
        **plain(result),
    }
    options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
