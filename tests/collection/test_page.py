"""docs/how-to/collected-conversations.md says what its results file and the checks say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.results_pages import RESULTS, read_results, table_rows

from palaver.collection.labels import SPLITS
from palaver.collection.standards import default_checks

PAGE = (RESULTS.parent / "how-to" / "collected-conversations.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return read_results("collection")


def test_the_checks() -> None:
    rows = table_rows(PAGE, "| check |")
    checks = default_checks()
    assert [row[0] for row in rows] == list(checks)
    for name, says, review, reject in rows:
        check = checks[name]
        sign = "<" if check.bad == "low" else ">"
        assert says.removesuffix(" (off)") == check.says
        assert says.endswith(" (off)") is not check.on
        assert review == f"{sign} {check.review:g}"
        assert reject == ("" if check.reject is None else f"{sign} {check.reject:g}")


def test_planted_faults(results: dict[str, Any]) -> None:
    rows = {name: list(map(int, counts)) for name, *counts in table_rows(PAGE, "| the side |")}
    assert rows == {name: list(counts.values()) for name, counts in results["planted"].items()}
    sides = results["sides"]
    assert f"of its {sum(sides.values()):,} sides" in PAGE
    assert f"they send {sides['review']} to review and reject none" in PAGE
    assert sides["rejected"] == 0


def test_splits(results: dict[str, Any]) -> None:
    rows = table_rows(PAGE, "| split | seen")
    assert len(rows) == len(results["splits"])
    for (_, *cells), splits in zip(rows, results["splits"].values(), strict=True):
        by_name = {row["split"]: row for row in splits}
        frequent, rare = by_name["test_freq"], by_name["test_rare"]
        assert cells[:2] == [f"{frequent['seen']:.1f}", f"{rare['seen']:.1f}"]
        assert cells[2:] == [str(frequent["shared_articles"]), str(rare["shared_articles"])]


def test_sizes(results: dict[str, Any]) -> None:
    totals = {size["split"]: size for size in results["sizes"] if size["configuration"] is None}
    rows = table_rows(PAGE, "| split | conversations |")
    assert [row[0] for row in rows] == list(SPLITS)
    for name, *cells in rows:
        size = totals[name]
        expected = [f"{size['conversations']:,}", f"{size['utterances']:,}"]
        assert cells == [*expected, f"{size['turns']:.1f}", f"{size['length']:.1f}"]


def test_the_file_says_where_it_comes_from(results: dict[str, Any]) -> None:
    script = results["command"].split()[1]
    assert (RESULTS.parent.parent / script).is_file()
    assert results["run"]["seed"] == 0
    assert len(results["run"]["data"]) >= 10
    assert not any(Path(name).is_absolute() for name in results["run"]["data"])
