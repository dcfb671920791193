"""Visits to a served study: what a page holds, and whether everybody can use it."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe


def violations(page: Any) -> list[str]:
    """What axe finds in a page, as far as it keeps somebody out."""
    problems = Axe().run(page).response["violations"]
    grave = [problem for problem in problems if problem["impact"] in ("serious", "critical")]
    return [f"{problem['id']}: {problem['nodes'][0]['html']}" for problem in grave]
