"""For tests of results pages: what a page shows is what the results file says that a script wrote."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "docs/results"


def read_page(name: str) -> str:
    """The page `docs/results/NAME.md`."""
    return (RESULTS / f"{name}.md").read_text(encoding="utf-8")


def read_results(name: str) -> dict[str, Any]:
    """The results file `docs/results/NAME.json`."""
    content: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return content


def table_rows(page: str, header: str) -> list[list[str]]:
    """The cells of the table whose first line begins with `header`, without bold and code marks.

    A cell that is left empty under a row's name has the name of the row above.
    """
    after = page.split(f"\n{header}", 1)
    assert len(after) == 2, f"the page has no table that begins with {header!r}"
    lines = after[1].split("\n\n", 1)[0].splitlines()[2:]  # the rest of the header, the line of dashes
    rows = []
    for line in lines:
        cells = [cell.strip().replace("**", "").replace("`", "") for cell in line.strip("|").split("|")]
        if not cells[0] and rows:
            cells[0] = rows[-1][0]
        rows.append(cells)
    return rows


def decimals(value: float, digits: int = 2) -> str:
    """A number between -1 and 1 as the pages write it: .47, 1.00, −.08."""
    rounded = Decimal(str(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP) + 0  # no minus nought
    text = f"{rounded:f}".replace("-", "−")
    return text.replace("0.", ".", 1) if text.startswith(("0.", "−0.")) else text


def interval(value: float, low: float, high: float, digits: int = 2) -> str:
    """.47 [.41, .53]."""
    return f"{decimals(value, digits)} [{decimals(low, digits)}, {decimals(high, digits)}]"
