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
    rows = table_rows(read_page("serving"), "| conversations |")
    for row, name in zip(rows, ("chat-delivery", "chat-delivery-postgres"), strict=True):
        record = read_results(name)
        assert f"50 pairs, {record['messages_per_second']:.0f} messages a second" in row[0]
        assert row[1:4] == [f"{record['delivery_ms'][p]:.1f} ms" for p in ("p50", "p95", "p99")]
        assert (record["lost"], record["doubled"], record["out_of_order"]) == (0, 0, 0)
        if record["processes"] > 1:
            assert row[0].startswith(f"{record['database']}, {record['processes']} processes")


SOAKS = {"SQLite, 1 process": "chat-soak", "PostgreSQL, 2 processes": "chat-soak-postgres"}


def test_chats_with_killed_servers() -> None:
    rows = table_rows(read_page("serving"), "| soak |")
    assert [row[0] for row in rows] == list(SOAKS)
    for name, *cells in rows:
        record = read_results(SOAKS[name])
        assert name.startswith(record["database"])
        assert f" {record['processes']} process" in name
        names = ("kills", "cuts", "reconnections", "complete", "acknowledged")
        losses = [record[fault] for fault in ("lost", "doubled", "out_of_order", "misplaced_on_pages")]
        counts = [record["people"] // 2, *(record[count] for count in names), *losses]
        assert cells == [f"{count:,}" for count in counts]
        assert losses == [0, 0, 0, 0]
        assert record["complete"] == record["conversations"] == record["people"] // 2


def test_crowds() -> None:
    record = read_results("lobby")
    expected = [
        [
            case["case"],
            f"{case['conversations']:,}",
            f"{100 * case['incomplete'] / case['conversations']:.1f} %",
            f"{100 * case['share_incomplete_if_nobody_took_over']:.0f} %",
            str(case["ghosts_invited"]),
            str(case["ghosts_paired"]),
            str(case["unexplained"]),
        ]
        for case in record["cases"]
    ]
    assert table_rows(read_page("serving"), "| crowd |") == expected
    assert all(case["crowd"]["dropouts"] == 0.3 and case["arrivals"] == 10_000 for case in record["cases"])
    assert all(case["ghosts_paired"] == case["unexplained"] == 0 for case in record["cases"])
    assert all(case["share_incomplete"] <= 0.2 for case in record["cases"])
