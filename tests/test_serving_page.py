"""docs/results/serving.md shows what docs/results/serving.json says that the benchmark measured."""

from __future__ import annotations

from tests.results_pages import read_page, read_results, table_rows


def test_the_page_shows_what_was_measured() -> None:
    results = read_results("serving")
    expected = []
    for case in results["cases"]:
        times = [f"{case[p] * 1e3:.3g} ms" for p in ("p50", "p95", "p99")]
        counts = [
            f"{case['lost']:.0f}",
            "" if case["database"].startswith("potato") else f"{case['surplus']:.0f}",
        ]
        expected.append([case["case"], f"{case['answers_per_second']:.0f}", *times, *counts])
    assert table_rows(read_page("serving"), "| case |") == expected


def test_what_was_not_reached_is_said() -> None:
    page, results = read_page("serving"), read_results("serving")
    assert results["machine"] in page
    assert ("Not reached" in page) == bool(results["missed"])
    assert f"{results['times_potato']:.1f} times" in page


def test_conversations() -> None:
    record = read_results("chat-delivery")
    (row,) = table_rows(read_page("serving"), "| conversations |")
    assert row[0] == f"50 pairs, {record['messages_per_second']:.0f} messages a second"
    assert row[1:4] == [f"{record['delivery_ms'][name]:.1f} ms" for name in ("p50", "p95", "p99")]
    assert (record["lost"], record["doubled"], record["out_of_order"]) == (0, 0, 0)
