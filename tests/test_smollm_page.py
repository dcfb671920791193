"""The page on SmolLM2 says what its results files say."""

from __future__ import annotations

from tests.results_pages import decimals, interval, read_page, read_results, table_rows

PAGE = read_page("smollm")


def test_topical_chat() -> None:
    results = read_results("topical-chat-smollm")
    rows = table_rows(PAGE, "| run | test set |")
    kinds = {"test_freq": "frequent", "test_rare": "rare"}
    assert [(row[0], row[1]) for row in rows] == [(r["run"], kinds[r["split"]]) for r in results["table"]]
    for shown, row in zip(rows, results["table"], strict=True):
        whole = "" if row["is_complete"] else f" of {results['counts'][row['split']]:,}"
        assert shown[2] == f"{row['n']:,}{whole}"
        assert shown[3] == (_per_word(row["ppl_word"]) if "ppl_word" in row else "")
        replied = "unigram_f1" in row
        assert shown[4] == (interval(*row["unigram_f1"], digits=3) if replied else "not reached")
        for cell, name in zip(shown[5:], ("diversity_1", "diversity_2"), strict=True):
            assert cell == (decimals(row[name][0]) if replied else "not reached")
    for run in results["training"][0]["runs"].values():
        assert all(f"{epoch['valid_ppl_word']:.1f}" in PAGE for epoch in run["epochs"])


def _per_word(figures: list[float]) -> str:
    value, low, high = figures
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"
