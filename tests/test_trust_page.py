"""docs/results/trust.md shows what docs/results/trust.json says, and the simulations still run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.results_pages import read_page, read_results, table_rows

PAGE, RESULTS = read_page("trust"), read_results("trust")
sys.path.append(str(Path(__file__).parents[1] / "experiments/trust"))


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def interval(row: dict[str, float]) -> str:
    return f"{percent(row['rate'])} [{percent(row['low'])}, {percent(row['high'])}]"


def rates(rows: dict[str, dict[str, float]], *names: str) -> list[str]:
    return [percent(rows[name]["rate"]) for name in names]


def test_the_tables_are_the_results_file() -> None:
    expected: dict[str, list[list[str]]] = {"| dialogues × raters": [], "| rated dialogues, raters": []}
    for row in RESULTS["intervals"]["rows"]:
        found = row["coverage"]
        expected["| dialogues × raters"].append(
            [
                f"{row['dialogues']} × {row['raters']} ({row['each']})",
                ", ".join(str(x) for x in row["deviations"].values()),
                row["of"],
                interval(found["two-way"]),
                *rates(found, "plain two-way", "dialogues only", "rows"),
            ]
        )
    for row in RESULTS["ppi"]["rows"]:
        found = row["coverage"]
        expected["| rated dialogues, raters"].append(
            [
                f"{row['dialogues']}, {row['raters']}",
                str(row["correlation"]),
                interval(found["clustered t"]),
                *rates(found, "plain z", "people alone"),
                percent(row["judge_used"]),
                f"{row['length']:.2f}",
            ]
        )
    expected["| compared dialogues"] = [
        [
            str(row["dialogues"]),
            interval(row["coverage"]["clustered t"]),
            *rates(row["coverage"], "people alone"),
            percent(row["wrong_direction"]),
        ]
        for row in RESULTS["strengths"]["rows"]
    ]
    expected["| dialogues, criteria"] = [
        [
            f"{row['dialogues']}, {row['criteria']}",
            interval(row["false_pass"]["clustered"]),
            *rates(row["false_pass"], "rows"),
            percent(row["false_win"]["clustered"]),
            percent(row["false_win"]["rows"]),
        ]
        for row in RESULTS["alternative"]["rows"]
    ]
    expected["| true difference"] = [
        [
            str(row["difference"]),
            str(row["rater"]),
            "yes" if row["judge"] else "no",
            interval(row["any_difference"]),
            f"{row['mean_dialogues']:.1f}",
            *rates(row, "z_test_30_looks", "betting"),
        ]
        for row in RESULTS["sequences"]["rows"]
    ]
    expected["| drawn dialogues, raters"] = [
        [
            f"{row['dialogues']}, {row['raters']}",
            str(row["uneven"]),
            interval(row["coverage"]["corrected"]),
            *rates(row["coverage"], "people alone, corrected", "not corrected", "drawn alike"),
            percent(row["drawn_unequally"]),
            f"{row['length']:.2f}",
        ]
        for row in RESULTS["sampling"]["rows"]
    ]
    expected["| drawn dialogues, strengths"] = [
        [
            str(row["dialogues"]),
            interval(row["coverage"]["corrected"]),
            *rates(row["coverage"], "people alone, corrected", "not corrected"),
        ]
        for row in RESULTS["sampled_strengths"]["rows"]
    ]
    expected["| served, true difference"] = [
        [
            str(row["difference"]),
            str(row["uneven"]),
            interval(row["any_difference"]["corrected"]),
            *rates(row["any_difference"], "people alone"),
            f"{row['mean_dialogues']['corrected']:.1f}",
            f"{row['mean_dialogues']['people alone']:.1f}",
        ]
        for row in RESULTS["sampled_sequences"]["rows"]
    ]
    expected["| prompts, people"] = [
        [
            f"{row['prompts']}, {row['people']}",
            f"{row['votes']:,}",
            interval(row["coverage"]["clustered"]),
            *rates(row["coverage"], "votes as independent"),
        ]
        for row in RESULTS["arena"]["rows"]
    ]
    expected["| file |"] = [
        [
            row["file"],
            row["criterion"],
            str(row["n_raters"]),
            ", ".join(f"{x:.1f}" for x in row["times_as_long"]),
            ", ".join(f"{x:.2f}" for x in row["rater_share"]),
        ]
        for row in RESULTS["rankme"]["rows"]
    ]
    for header, rows in expected.items():
        assert table_rows(PAGE, header) == rows, header


def test_what_is_said_about_rankme() -> None:
    rows = [row for row in RESULTS["rankme"]["rows"] if row["criterion"] != "naturalness"]
    good = [row["times_as_long"][1] for row in rows]
    weak = [row["times_as_long"][k] for row in rows for k in (0, 2)]
    said = " ".join(PAGE.split())
    assert f"(the middle figure) {min(good):.1f} to {max(good):.1f} times" in said
    assert f"and {min(weak):.1f} to {max(weak):.1f} times between a good and the weak one" in said


def spread(rows: list[float]) -> tuple[str, str]:
    return percent(min(rows)), percent(max(rows))


def test_what_was_reached_is_in_the_results_file() -> None:
    reached = {row[0]: row[1] for row in table_rows(PAGE, "| asked for |")}
    intervals = RESULTS["intervals"]["rows"]

    def covered(n: int, raters: int, each: int) -> list[float]:
        chosen = [r for r in intervals if (r["dialogues"], r["raters"], r["each"]) == (n, raters, each)]
        return [row["coverage"]["two-way"]["rate"] for row in chosen]

    first = covered(20, 6, 6)
    assert min(first) >= 0.93
    assert reached["two-way intervals cover at least 93 % at 20 dialogues × 6 raters"] == " to ".join(
        spread(first)
    )
    second = covered(100, 20, 20)
    assert min(second) >= 0.94
    assert reached["at least 94 % at 100 × 20"] == " to ".join(spread(second))
    at_20 = [row["coverage"] for row in RESULTS["ppi"]["rows"] if row["dialogues"] == 20]
    ours, plain = (spread([row[name]["rate"] for row in at_20]) for name in ("clustered t", "plain z"))
    line = reached["PPI++ with t and clusters; plain z covers 88 % at n = 20"]
    assert line == f"{' to '.join(ours)} at n = 20; plain z {' to '.join(plain)}"
    passes = [row["false_pass"]["clustered"]["rate"] for row in RESULTS["alternative"]["rows"]]
    assert max(passes) <= 0.06
    assert reached["alternative annotator test: false pass at most 6 %"] == " to ".join(spread(passes))
    alarms = [row for row in RESULTS["sequences"]["rows"] if row["difference"] == 0]
    found = [row["any_difference"]["rate"] for row in alarms]
    assert max(found) <= 0.05
    assert reached["watched after every answer: Type I at most 5 %"] == " to ".join(spread(found))
    peeked = [row["z_test_30_looks"]["rate"] for row in alarms]
    assert reached["z-test with 30 looks: 29 %"] == " to ".join(spread(peeked))


def test_what_unequal_draws_and_the_judge_reached() -> None:
    reached = {row[0]: row[1] for row in table_rows(PAGE, "| asked for |")}
    rows = [row["coverage"] for row in RESULTS["sampling"]["rows"]]
    covered, forgotten = ([row[name]["rate"] for row in rows] for name in ("corrected", "not corrected"))
    assert min(covered) >= 0.94
    line = reached["sampling probability per item, corrected in the analysis"]
    assert line == f"covers {' to '.join(spread(covered))}; forgotten {' to '.join(spread(forgotten))}"
    looked = [row for row in RESULTS["sequences"]["rows"] if row["judge"] and not row["difference"]]
    alarms = [row["any_difference"]["rate"] for row in looked]
    drawn = [row for row in RESULTS["sampled_sequences"]["rows"] if not row["difference"]]
    alarms += [row["any_difference"]["corrected"]["rate"] for row in drawn]
    assert max(alarms) <= 0.05
    line = reached["the judge as control variate of the live study, Type I at most 5 %"]
    assert line == " to ".join(spread(alarms))
    votes = [row["coverage"]["votes as independent"]["rate"] for row in RESULTS["arena"]["rows"]]
    line = reached["the usual arena interval covers 58 % where it says 90 %"]
    assert line == " to ".join(spread(votes))


@pytest.mark.parametrize("name", ["ppi", "strengths", "alternative", "sampling"])
def test_the_short_form_of_the_simulations(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few studies of the smallest cell: the scripts that made the file still run."""
    import grids
    import run
    import sampling_grids

    monkeypatch.setattr(grids, "PPI_DESIGNS", grids.PPI_DESIGNS[:1])
    monkeypatch.setattr(sampling_grids, "DESIGNS", sampling_grids.DESIGNS[:1])
    monkeypatch.setattr(grids, "_noise_at_epsilon", lambda *_: 1.1)
    monkeypatch.setattr(grids, "_true_differences", lambda *_: [0.5, 0.9, 0.4])
    first: dict[str, Any] = next(iter(run.GRIDS[name](4, 0)))
    assert set(first) == set(RESULTS[name]["rows"][0])


def test_two_way_intervals_cover_where_rows_do_not() -> None:
    """The short form of the first cell: 150 studies."""
    import grids

    design, deviations = grids.DESIGNS[0], grids.DEVIATIONS[0]
    rng = grids.stream(1, "test")
    hits = [grids._covers(design, deviations, "mean", rng) for _ in range(150)]
    assert sum(hit["two-way"] for hit in hits) >= 133
    assert sum(hit["rows"] for hit in hits) <= 125
