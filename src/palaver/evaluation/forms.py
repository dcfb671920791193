"""The forms that a report can have, and the file of each."""

from __future__ import annotations

from typing import Literal

Form = Literal["html", "md", "json", "latex"]
FILES: dict[str, str] = {
    "html": "report.html", "md": "report.md", "json": "results.json", "latex": "report.tex",
}  # fmt: skip
