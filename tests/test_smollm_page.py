"""The page on SmolLM2 says what its results files say."""

from __future__ import annotations

from tests.results_pages import RESULTS, read_page, read_results, table_rows

PAGE = read_page("smollm")


def test_everyday_prompts() -> None:
    if not (RESULTS / "chat.json").exists():
        assert "not reached" in PAGE.split("## Ten everyday prompts")[1]
        return
    results = read_results("chat")
    rows = table_rows(PAGE, "| prompt |")
    assert len(rows) == 10
    for shown, row in zip(rows, results["replies"], strict=True):
        assert shown == [
            " ".join(row[key].split()).replace("|", "/") for key in ("prompt", "smollm2", "default")
        ]
    assert f"{results['tokens_per_second']['smollm2']:.1f} tokens a second" in PAGE
