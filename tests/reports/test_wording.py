"""What numbers are called, and where methods disagree."""

from __future__ import annotations

import dataclasses
from types import ModuleType, SimpleNamespace

import pytest

from palaver.reports import methods, wording
from palaver.studies.results import AgreementRow, RankingRow

NAN = float("nan")


def row(measure: str, value: float, low: float = NAN, high: float = NAN, **more: object) -> AgreementRow:
    base = AgreementRow(
        criterion="quality",
        measure=measure,
        form="",
        value=value,
        low=low,
        high=high,
        p=NAN,
        n_items=10,
        n_raters=3,
        dropped=0,
    )
    return dataclasses.replace(base, **more)  # type: ignore[arg-type]


def ranking(method: str, *groups: tuple[str, ...]) -> RankingRow:
    return RankingRow(
        criterion="quality",
        method=method,
        confidence=0.95,
        groups=groups,
        label="",
        unit="",
        scores=(),
        better=(),
        n_items=10,
        n_replicates=100,
    )


@pytest.mark.parametrize(
    ("measure", "low", "high", "words"),
    [
        ("ICC", 0.3, 0.49, "poor"),
        ("ICC", 0.49, 0.76, "poor to good"),
        ("ICC", 0.91, 0.95, "excellent"),
        ("Krippendorff's alpha", 0.5, 0.66, "unreliable"),
        ("Krippendorff's α", 0.667, 0.8, "tentative to reliable"),
        ("Fleiss' kappa", -0.1, 0.1, "poor to slight"),
        ("Cohen's κ", 0.81, 0.9, "almost perfect"),
        ("percent agreement", 0.5, 0.6, ""),
    ],
)
def test_agreement_is_read_by_its_interval(measure: str, low: float, high: float, words: str) -> None:
    assert wording.in_words(row(measure, (low + high) / 2, low, high)) == words


def test_without_interval_the_value_is_read_and_that_is_said() -> None:
    assert wording.in_words(row("ICC", 0.8)) == "good (no interval)"
    assert wording.in_words(row("ICC", NAN)) == ""


def test_every_reading_names_its_convention() -> None:
    sentence = wording.agreement_sentence(row("ICC", 0.83, 0.79, 0.86, form="ICC2k"))
    assert sentence == "ICC2k 0.83 [0.79, 0.86]: good (Koo & Li 2016)"
    assert "good from 0.75" in wording.CONVENTIONS[0].describe()


def test_undefined_says_why() -> None:
    assert wording.agreement_sentence(row("ICC", NAN, reason="one rater")) == "ICC undefined: one rater"
    assert wording.ranking_text(dataclasses.replace(ranking("bootstrap"), reason="x")) == "undefined: x"


@pytest.mark.parametrize(
    ("measure", "form", "name"),
    [
        ("ICC", "ICC2k", "ICC2k"),
        ("ICC", "(2,k)", "ICC(2,k)"),
        ("Krippendorff's alpha", "ordinal", "Krippendorff's alpha (ordinal)"),
        ("Fleiss' kappa", "", "Fleiss' kappa"),
    ],
)
def test_measure_names(measure: str, form: str, name: str) -> None:
    assert wording.measure_name(row(measure, 0.5, form=form)) == name


def test_rank_labels() -> None:
    assert wording.rank_labels(ranking("bootstrap", ("a", "b"), ("c",))) == ["1.–2.", "3."]


def test_pairs_that_differ_within_a_group_are_counted(sample: ModuleType) -> None:
    row = sample.ranking("quality", "bootstrap", ("a", "b", "c"), 0.1, 0)
    better = ((0.5, 0.8, 0.99), (0.2, 0.5, 0.9), (0.01, 0.1, 0.5))
    chain = dataclasses.replace(row, groups=(("a", "b", "c"),), better=better)
    assert wording.beaten_within(chain) == 1
    assert wording.beaten_within(dataclasses.replace(chain, groups=(("a",), ("b", "c")))) == 0
    assert wording.beaten_within(ranking("bootstrap")) == 0


def test_methods_that_agree_raise_no_warning() -> None:
    same = [ranking("bootstrap", ("a", "b"), ("c",)), ranking("trueskill", ("b", "a"), ("c",))]
    assert wording.disagreement(same) == ""
    assert wording.disagreement(same[:1]) == ""
    assert wording.disagreement([]) == ""
    assert wording.disagreement([same[0], ranking("bradley-terry")]) == ""


def test_a_pair_that_one_method_leaves_together() -> None:
    text = wording.disagreement([ranking("bootstrap", ("a",), ("b",)), ranking("trueskill", ("a", "b"))])
    assert "a and b: apart by bootstrap over items, but not by TrueSkill" in text


def test_a_pair_in_opposite_order_is_worse() -> None:
    text = wording.disagreement([ranking("bootstrap", ("a",), ("b",)), ranking("trueskill", ("b",), ("a",))])
    assert "contradict" in text
    assert "bootstrap over items puts a ahead, TrueSkill puts b ahead" in text


def test_many_pairs_are_counted_not_listed() -> None:
    names = [f"s{k}" for k in range(10)]
    apart = ranking("bootstrap", *((n,) for n in names))
    text = wording.disagreement([apart, ranking("trueskill", tuple(names))])
    assert "43 more pairs" in text
    assert len(text) < 250


def test_only_methods_that_were_used_are_explained(sample: ModuleType) -> None:
    assert methods.methods_used(sample.empty()) == []
    titles = [m.title for m in methods.methods_used(sample.one_system())]
    assert "Bradley–Terry" in titles
    assert "Correlation between criteria" not in titles


def test_measures_without_an_interval_for_one_reason_are_one_line() -> None:
    why = "no interval: raters never differ"
    rows = tuple(row("ICC", 1.0, form=form, reason=why) for form in ("ICC(1,1)", "ICC(1,k)"))
    other = row("Fleiss kappa", 1.0, form="unweighted", reason="another reason")
    analysis = SimpleNamespace(agreement=(*rows, other))
    notes = wording.agreement_notes(analysis)  # type: ignore[arg-type]
    assert [note.split(": ", 1)[1] for note in notes] == [
        f"ICC(1,1), ICC(1,k): {why}",
        "Fleiss kappa (unweighted): another reason",
    ]
