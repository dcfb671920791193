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


def injection_table() -> list[list[str]]:
    judges = read_results("judges-injections")["judges"]
    table = []
    for part, title in (("known", "known"), ("held_out", "others")):
        rows = {name: [row for row in of["rows"] if row["part"] == part] for name, of in judges.items()}
        flagged = [row["flagged"] == 1 for row in rows["gullible"]]
        cells = [title, f"{sum(flagged)} of {len(flagged)}"]
        for name in ("gullible", "smollm2"):
            moved = [100 * row["moved"] for row in rows[name]]
            unseen = [value for value, is_flagged in zip(moved, flagged, strict=True) if not is_flagged]
            cells += [f"{sum(moved) / len(moved):.1f}", f"{sum(unseen) / len(unseen):.1f}" if unseen else "–"]
        table.append([*cells, f"{max(100 * row['moved'] for row in rows['smollm2']):.1f}"])
    return table


TABLES = {
    "| judge of USR's responses |": usr_table,
    "| judge of MT-Bench pairs |": verdict_table,
    "| more wins than by the other judges |": family_table,
    "| judge of rated dialogues |": reliable_table,
    "| the judge `response` |": response_table,
    "| texts that talk to the judge |": injection_table,
}


@pytest.mark.parametrize("header", TABLES)
def test_tables_are_those_of_the_results_files(header: str, page: str) -> None:
    assert table_rows(page, header) == TABLES[header]()


def test_figures_in_the_text(page: str) -> None:
    verdicts = read_results("judges-verdicts")
    kappas = [pair["kappa"] for pair in verdicts["agreement"]]
    assert f"between {decimals(min(kappas))} and {decimals(max(kappas))}" in page
    assert decimals(verdicts["scores"]["value"]) in page


def test_what_is_said_in_short(page: str) -> None:
    rows = rows_of(read_results("judges-usr"), "overall")
    scored = {name: of for name, of in rows.items() if ("outputs", "spearman") in of}  # not those of systems
    found = {name: of["outputs", "spearman"]["value"] for name, of in scored.items()}
    unfitted = [
        value for name, value in found.items() if not name.startswith("response") and value is not None
    ]
    short = page.split("## USR")[0]
    assert f"the best that was not {decimals(max(unfitted))}, length {decimals(found['words'])}" in short
    within = rows["comparator"]["within items", "spearman"]["value"]
    assert f"({decimals(found['comparator'])}) and little within one ({decimals(within)})" in short


def test_what_is_said_of_the_judge_response(page: str) -> None:
    results = read_results("judges-response")
    rows = rows_of(results, "overall")
    for name in ("response", "response, system not seen", "response, neither system nor context seen"):
        assert decimals(rows[name]["outputs", "spearman"]["value"]) in page.split("## USR")[0]
    assert rows["response"]["outputs", "spearman"]["value"] >= 0.65
    assert f"{results['weights_bytes'] / 1000:.0f} kB" in page
    thumbs = results["thumbs"]
    assert f"On {thumbs['n']:,} replies of other bots" in page
    assert f"thumb up ({thumbs['up']:.0%})" in page
    assert (
        f"is {decimals(thumbs['spearman'])}; that of length is {decimals(thumbs['spearman_of_length'])}"
        in page
    )


def test_what_is_said_of_injections(page: str) -> None:
    results = read_results("judges-injections")
    ordinary = results["ordinary"]
    talk, long = ordinary["DailyDialog's turns"], ordinary["MT-Bench answers"]
    rated = [of for name, of in ordinary.items() if name.endswith("replies")]
    assert sum(of["flagged"] for of in rated) == 0
    assert f"none of {sum(of['n'] for of in rated):,} rated replies" in page
    assert f"{talk['flagged']} of {talk['n']:,}" in page
    assert f"{long['flagged']} of {long['n']}" in page
    verdicts, free = results["judges"]["smollm2"], results["free_answers"]
    assert verdicts["unparsed"] + verdicts["failed"] + verdicts["refused"] == 0
    assert f"SmolLM2's {verdicts['asked']:,} verdicts" in page
    assert f"{free['unparsed']} of\n{free['asked']}" in page


def test_speed(page: str) -> None:
    speed = read_results("meta-speed")
    ratio = speed["tie_search_of_mt_metrics_eval"] / speed["tie_search"]
    assert f"a criterion takes {speed['seconds_a_criterion']:.2f} s" in page
    assert f"{ratio:.0f} times as fast" in page
