"""Reports and the pages for owners of studies share one file of rules, and say nothing twice."""

from __future__ import annotations

import re
from importlib.resources import files

from palaver.reports.page import render
from palaver.schema import record_run
from palaver.server.assets import static_files

TEMPLATES = files("palaver.reports") / "templates"
SHARED = (TEMPLATES / "shared.css").read_text()
REPORT = (TEMPLATES / "report.css").read_text()
ADMIN = (files("palaver.server") / "static" / "admin.css").read_text()


def declarations(text: str) -> set[tuple[str, str]]:
    """Selector and declaration of every rule outside media queries."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", text)
    said = set()
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", text):
        for selector in selectors.split(","):
            for declaration in filter(None, (part.strip() for part in body.split(";"))):
                said.add((selector.strip(), declaration))
    return said


def test_no_rule_is_said_twice() -> None:
    shared = declarations(SHARED)
    assert len(shared) > 100
    assert shared & declarations(REPORT) == set()
    assert shared & declarations(ADMIN) == set()


def test_colours_are_said_in_one_place() -> None:
    assert not re.search(r"--[\w-]+:\s*#", REPORT + ADMIN)
    used = set(re.findall(r"var\((--[\w-]+)", SHARED + REPORT + ADMIN)) - {"--v"}
    assert used <= set(re.findall(r"(--[\w-]+):", SHARED)), "every colour that is used is there"


def test_both_kinds_of_page_hold_the_shared_rules() -> None:
    assert static_files()["admin.css"].content.decode() == SHARED + ADMIN
    page = render("page.html.j2", record_run("palaver"), methods=[])
    assert SHARED.strip() in page
    assert page.index(SHARED.strip()) < page.index(REPORT.strip())
