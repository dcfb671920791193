"""docs/results/judges.md shows what the results files say that the scripts measured."""

from __future__ import annotations

from typing import Any

import pytest
from tests.results_pages import decimals, interval, read_page, read_results, table_rows


@pytest.fixture(scope="module")
def page() -> str:
    return read_page("judges")


def rows_of(results: dict[str, Any], criterion: str) -> dict[str, dict[tuple[str, str], Any]]:
    """Judge -> (level, measure) -> row."""
    found: dict[str, dict[tuple[str, str], Any]] = {}
    for row in results["rows"]:
        if row["criterion"] == criterion:
            found.setdefault(row["judge"], {})[row["level"], row["measure"]] = row
    return found


def with_interval(row: dict[str, Any]) -> str:
    return interval(row["value"], row["low"], row["high"])


def value(rows: dict[tuple[str, str], Any], level: str, measure: str) -> str:
    row = rows.get((level, measure))
    return "" if row is None or row["value"] is None else decimals(row["value"])


def usr_row(name: str, rows: dict[tuple[str, str], Any]) -> list[str]:
    return [
        name, with_interval(rows["outputs", "spearman"]), value(rows, "outputs", "pearson"),
        value(rows, "within items", "spearman"), value(rows, "within items", "accuracy"),
        value(rows, "systems", "spearman"),
    ]  # fmt: skip


def usr_table() -> list[list[str]]:
    results = read_results("judges-usr")
    judges = rows_of(results, "overall")
    single = {name: rows for name, rows in judges.items() if ("outputs", "spearman") in rows}
    single = {name: rows for name, rows in single.items() if rows["outputs", "spearman"]["value"] is not None}
    order = sorted(single, key=lambda name: -single[name]["outputs", "spearman"]["value"])
    person = {(r["level"], r["measure"]): r for r in results["ceiling"] if r["criterion"] == "overall"}
    return [
        usr_row("one person, beside the others", person),
        *(usr_row(name, single[name]) for name in order),
    ]


def verdict_table() -> list[list[str]]:
    results = read_results("judges-verdicts")
    rows = []
    for row in results["bias"]:
        counts = results["counts"][row["judge"]]
        own = "" if row["own"] is None else interval(row["own"], row["own_low"], row["own_high"])
        rows.append(
            [
                row["judge"], f"{counts['answered']:,} of {counts['asked']:,}", decimals(row["first_share"]),
                interval(row["position"], row["position_low"], row["position_high"]),
                decimals(row["consistency"]), decimals(row["decided_by_place"]),
                decimals(row["decided_by_chance"]),
                interval(row["length"], row["length_low"], row["length_high"]), own,
                decimals(results["naive"][row["judge"]]["largest_error"]),
            ]
        )  # fmt: skip
    return rows


def family_table() -> list[list[str]]:
    families = ("exaone", "gemma", "llama", "mistral", "phi")
    favours = read_results("judges-verdicts")["favours"]
    return [[judge, *(decimals(of[family]["value"]) for family in families)] for judge, of in favours.items()]


def reliable_table() -> list[list[str]]:
    judges = rows_of(read_results("judges-reliable"), "rating")
    order = sorted(judges, key=lambda name: -judges[name]["outputs", "spearman"]["value"])
    return [
        [name, with_interval(judges[name]["outputs", "spearman"]),
         with_interval(judges[name]["within items", "accuracy"]), value(judges[name], "systems", "spearman")]
        for name in order
    ]  # fmt: skip


def response_table() -> list[list[str]]:
    results = read_results("judges-response")
    rows = []
    for name, of_judge in rows_of(results, "overall").items():
        within = results["within_system"][name].values()
        rows.append(
            [name, with_interval(of_judge["outputs", "spearman"]), value(of_judge, "outputs", "pearson"),
             with_interval(of_judge["within items", "spearman"]), decimals(sum(within) / len(within)),
             value(of_judge, "systems", "spearman")]
        )  # fmt: skip
    return rows


TABLES = {
    "| judge of USR's responses |": usr_table,
    "| judge of MT-Bench pairs |": verdict_table,
    "| more wins than by the other judges |": family_table,
    "| judge of rated dialogues |": reliable_table,
    "| the judge `response` |": response_table,
}


@pytest.mark.parametrize("header", TABLES)
def test_tables_are_those_of_the_results_files(header: str, page: str) -> None:
    assert table_rows(page, header) == TABLES[header]()


def test_figures_in_the_text(page: str) -> None:
    verdicts = read_results("judges-verdicts")
    kappas = [pair["kappa"] for pair in verdicts["agreement"]]
    assert f"between {decimals(min(kappas))} and {decimals(max(kappas))}" in page
    assert decimals(verdicts["scores"]["value"]) in page
    reached = rows_of(read_results("judges-response"), "overall")["response"]["outputs", "spearman"]["value"]
    assert reached >= 0.65 or "Not reached" in page
