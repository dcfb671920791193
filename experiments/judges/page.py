"""Puts the tables of the results files into docs/results/judges.md; the text stays as it is."""

from __future__ import annotations

from corpora import ROOT  # first: it says where the project lies

# isort: split
from tests.test_judges_page import TABLES

PAGE = ROOT / "docs" / "results" / "judges.md"


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for header, rows in TABLES.items():
        before, after = page.split(f"\n{header}", 1)
        table, *rest = after.split("\n\n", 1)
        heads = table.splitlines()[:2]
        lines = [*heads, *("| " + " | ".join(row) + " |" for row in rows())]
        page = "\n\n".join([f"{before}\n{header}" + "\n".join(lines), *rest])
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
