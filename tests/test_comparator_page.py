"""The comparator's card says what the records of the audit and of the scorecard say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from palaver.artefacts import digest_files
from palaver.judges.audit import PAIRS

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "reference/comparator.md").read_text(encoding="utf-8")


def record(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((DOCS / "results" / name).read_text(encoding="utf-8"))
    return content


def number(value: float, digits: int = 2) -> str:
    text = f"{abs(value):.{digits}f}".removeprefix("0")
    return f"−{text}" if value < 0 else text


def table(head: str) -> list[str]:
    return PAGE.split(head)[1].split("\n\n")[0].splitlines()[2:]


def test_the_audit() -> None:
    audit = record("comparator-audit.json")
    rows = []
    for kind in [*sorted(audit["kinds"], key=lambda kind: kind["accuracy"]), audit["overall"]]:
        trivial = [number(value) for value in kind["baselines"].values()]
        interval = f"{number(kind['low'])} to {number(kind['high'])}"
        cells = [kind["kind"], kind["differ"], number(kind["accuracy"]), interval, *trivial]
        rows.append(f"| {' | '.join(cells)} |")
    assert table("| kind | the dialogues differ |") == rows
    assert audit["part"] == "open"
    assert audit["run"]["data"][PAIRS.name] == digest_files([PAIRS])  # else the audit has to be run again
    assert audit["machine"]


def test_the_three_parts_of_the_audit() -> None:
    parts = [record(f"comparator-audit{part}.json") for part in ("", "-held-out", "-second")]
    assert [part["part"] for part in parts] == ["open", "held out", "second"]
    rows = {}
    for kind in [*parts[2]["kinds"], parts[2]["overall"]]:
        of_kind = [
            next(row for row in [*part["kinds"], part["overall"]] if row["kind"] == kind["kind"])["accuracy"]
            for part in parts
        ]
        rows[kind["kind"]] = f"| {kind['kind']} | {' | '.join(map(number, of_kind))} |"
        for part, accuracy in zip(("open", "held out", "second"), of_kind, strict=True):
            if accuracy < 0.65:
                assert re.search(rf"{kind['kind']} {number(accuracy)}[^;()]*\({part}\)", PAGE)
    assert sorted(table("| kind | open | held out | second |")) == sorted(rows.values())


def test_the_scorecard() -> None:
    card = record("comparator-scorecard.json")
    rows = []
    for method in card["rows"]:
        cells = [method["method"]]
        for column in ("all pairs", "within a tier", "unseen systems"):
            result = method["results"].get(column)
            cells.append("–" if result is None else _with_interval(result))
        rows.append(f"| {' | '.join(cells)} | {number(method['results']['all pairs']['kappa'], 3)} |")
    assert table("| | all pairs | within a tier |") == rows
    assert f"{card['n_pairs']} development pairs of {card['n_raters']} raters" in PAGE
    assert f"{card['rows'][0]['results']['within a tier']['n']} pairs of systems of like quality" in PAGE
    calibration = card["calibration"]
    ece, brier = number(calibration["ece"], 3), number(calibration["brier"], 3)
    assert f"Calibration error {ece}, Brier score {brier}" in PAGE
    nested = number(card["nested_calibration"]["ece"], 3)
    assert f"with the unit chosen on other raters: calibration error {nested}" in PAGE
    assert card["seed"] == 0


def test_how_often_it_is_right_where_it_is_sure() -> None:
    text = " ".join(PAGE.split())
    bins = record("comparator-scorecard.json")["calibration"]["bins"]
    said = []
    for low, high in ((0.9, 1.0), (0.7, 0.9), (0.5, 0.7)):
        n, right = 0, 0.0
        for part in bins:
            middle = (part["low"] + part["high"]) / 2
            if low < max(middle, 1 - middle) < high:
                n += part["n"]
                right += part["n"] * (part["rate"] if middle > 0.5 else 1 - part["rate"])
        said.append((f"{right / n:.0%}", n))
    (sure, n_sure), (likely, n_likely), (open_, n_open) = said
    assert f"right about {sure} of those to which it gives 90% or more ({n_sure} of 698)" in text
    assert f"about {likely} between 70% and 90% ({n_likely}), and about {open_} below 70% ({n_open})" in text


def test_how_much_less_close_systems_can_be_told_apart() -> None:
    card = record("comparator-scorecard.json")
    default = card["rows"][0]["results"]
    bots = card["on_convai2"]["pairs_of"]["one bot"]
    tier, every, bot, letters = (
        f"{100 * result['accuracy']:.0f}"
        for result in (
            default["within a tier"],
            default["all pairs"],
            bots["default"],
            bots["longer wins"],
        )
    )
    text = " ".join(PAGE.split())
    assert f"right about {tier} of 100 pairs, not {every}, and within one bot" in text
    assert f"about {bot} of 100, where counting letters gives {letters}" in text


def test_the_how_to_quotes_the_scorecard() -> None:
    text = " ".join((DOCS / "how-to/compare-dialogues.md").read_text(encoding="utf-8").split())
    results = record("comparator-scorecard.json")["rows"][0]["results"]
    every, tier = (f"{100 * results[name]['accuracy']:.0f}%" for name in ("all pairs", "within a tier"))
    assert f"in {every} of development pairs, in {tier} of those between bots of like quality" in text


def test_the_trivial_rule_that_finds_failed_raters() -> None:
    auc = record("comparator.json")["failed_raters"]["auc"]
    trivial = number(auc["trivial: the rater's own spread"], 3)
    ours, joined = number(auc["rater model"], 3), number(auc["joined"], 3)
    both = number(auc["rater model, care"], 3)
    text = " ".join(PAGE.split())
    assert f"AUC {trivial} against {ours} by the rater model, {joined} by the joined scores" in text
    assert f"{both} by both together" in text


def test_pairs_of_another_source() -> None:
    convai2 = record("comparator-scorecard.json")["on_convai2"]
    text = " ".join(PAGE.split())
    shown = {
        name: tuple(_with_interval(rows[row]) for row in ("default", "longer wins"))
        for name, rows in convai2["pairs_of"].items()
    }
    n_pairs = convai2["pairs_of"]["one bot"]["default"]["n"]
    assert (
        f"{n_pairs:,} pairs of {convai2['n_dialogues']} dialogues are of one of {convai2['n_bots']} bots"
        in text
    )
    assert "two stars apart: {}; longer wins {}.".format(*shown["one bot"]) in text
    assert "Pairs of two of these bots: {}; longer wins {}.".format(*shown["two bots"]) in text


def test_systems_that_neither_judge_has_seen() -> None:
    joined = record("comparator-scorecard.json")["joined_on_unseen_systems"]
    text = " ".join(PAGE.split())
    assert f"by the weights that ship, on the same pairs: {_with_interval(joined)}." in text
    assert f"it is right about {100 * joined['accuracy']:.0f} of 100 pairs of the same study" in text


def test_the_features() -> None:
    weights = record("comparator.json")["feature_weights"]
    rows = [f"| `{name}` | {number(value, 3)} |" for name, value in list(weights.items())[:12]]
    assert table("| feature | weight |") == rows
    assert f"{len(weights)} named features" in PAGE


def _with_interval(result: dict[str, float]) -> str:
    return f"{number(result['accuracy'], 3)} [{number(result['low'], 3)}, {number(result['high'], 3)}]"
