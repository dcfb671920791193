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
