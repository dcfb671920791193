"""The shipped comparator on the audit set, its open half, for docs/reference/comparator.md.

    python experiments/comparator/audit.py --out docs/results/comparator-audit.json

With --held-out the other half, once, when nothing is changed any more.
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
    parser.add_argument("--held-out", action="store_true")
    options = parser.parse_args()
    result = audit("comparator", held_out=options.held_out, device="cpu")
    flag = " --held-out" if options.held_out else ""
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
