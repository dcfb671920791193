"""The page on the comparator says what its results file says."""

from __future__ import annotations

from tests.results_pages import decimals, interval, read_page, read_results, table_rows


def test_the_page_quotes_the_record() -> None:
    page, results = read_page("comparator"), read_results("comparator")
    shipped, trivial = results["shipped"], results["trivial_accuracy_on_pairs"]

    def row(name: str, key: str) -> list[str]:
        part = shipped[key]
        accuracy = interval(part["accuracy"], part["low"], part["high"], digits=3)
        return [name, f"{part['n']:,}", accuracy, decimals(part["kappa"], 3)]

    n_pairs = f"{shipped['on_pairs']['n']:,}"
    rules = sorted(trivial, key=lambda name: -trivial[name])
    assert table_rows(page, "| comparator | pairs |") == [
        row("palaver, development pairs", "on_pairs"),
        row("palaver, pairs of one sitting, raters held out", "on_ratings"),
        *([f"trivial, development pairs: {name}", n_pairs, decimals(trivial[name], 3), ""] for name in rules),
    ]
    assert f"(ECE) is {decimals(shipped['ece'], 3)}" in page
    assert shipped["settings"]["seed"] == 0


def test_the_page_quotes_how_the_two_judges_were_joined() -> None:
    page, joined = read_page("comparator"), read_results("comparator-joined")
    rows = [
        [f"{row['share']:.1f}", decimals(row["accuracy"], 3), decimals(row["weighted_accuracy"], 3)]
        for row in joined["shares"]
    ]
    assert table_rows(page, "| share of the language model |") == rows
    assert f"Chosen: {joined['chosen_share']:.1f}," in page
    development = joined["development"]
    parts = {
        "rater model": development["rater model"],
        "language model": development["language model"]["seed 0"],
        "joined": development["joined"],
    }
    assert table_rows(page, "| | accuracy | κ |") == [
        [name, interval(r["accuracy"], r["low"], r["high"], digits=3), decimals(r["kappa"], 3)]
        for name, r in parts.items()
    ]


def test_the_shipped_weights_are_those_of_the_record() -> None:
    from palaver.comparator.model import load_model
    from palaver.comparator.scorer import SHIPPED

    _, about = load_model(SHIPPED)
    joined = read_results("comparator-joined")
    assert about["language_model"] == {**joined["weights"], "share": joined["chosen_share"]}
    assert about["on_pairs"] == read_results("comparator")["shipped"]["on_pairs"]
