"""Scales: what each accepts, checked against an oracle of its own, and that values survive files."""

from __future__ import annotations

import math
import sys
from importlib.metadata import EntryPoint
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from palaver.schema import (
    SCALES,
    BestWorst,
    Binary,
    Checkboxes,
    FreeText,
    Likert,
    Magnitude,
    Ordinal,
    Pairwise,
    Question,
    Ranking,
    RankMagnitude,
    Real,
    Scale,
    SingleChoice,
    Slider,
)
from palaver.schema.rating import value_text
from palaver.schema.scale import Impressions

KINDS: list[type[Any]] = [SCALES.get(name) for name in SCALES]
small_texts = st.builds(
    FreeText, min_length=st.integers(1, 5), max_length=st.integers(5, 40), lines=st.integers(1, 3)
)
any_scale = st.one_of(*(st.from_type(kind) for kind in KINDS if kind is not FreeText), small_texts)
raw_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-12, 12),
    st.floats(),
    st.integers(-12, 12).map(float),
    st.integers(-12, 12).map(str),
    st.floats().map(repr),
    st.text(max_size=8),
    st.sampled_from(
        ["win", "Tie ", "LOSS", "ok", "added|missing", "1_0", "1e3", " 3 ", "3.0", "0x1", "٣", "1,5"]
    ),
    st.lists(st.sampled_from(["ok", "added", "missing", "x"]), max_size=3),
    st.binary(max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=1),
)


@given(scale=any_scale, raw=raw_values)
@settings(max_examples=400, deadline=None)
def test_a_value_is_accepted_for_good_or_refused_with_both_sides_named(scale: Any, raw: Any) -> None:
    try:
        value = scale.parse(raw)
    except ValueError as error:
        found = "" if scale.form == "text" else repr(raw)  # of a text its length
        assert str(error).startswith(f"expected {scale.describe()}, found {found}")
        return
    assert scale.parse(value) == value
    assert scale.parse(value_text(value)) == value
    assert math.isfinite(scale.score(value)) or scale.form == "text"


@given(scale=any_scale, data=st.data())
@settings(max_examples=200, deadline=None)
def test_permitted_values_survive_a_csv_cell(scale: Any, data: st.DataObject) -> None:
    value = data.draw(_permitted(scale))
    parsed = scale.parse(value)
    assert parsed == value
    assert scale.parse(value_text(parsed)) == parsed
    assert math.isfinite(scale.score(parsed)) or scale.form == "text"


def _permitted(scale: Any) -> st.SearchStrategy[Any]:
    match scale:
        case Likert() | Ordinal():
            return st.integers(scale.low, scale.high)
        case Binary():
            return st.integers(0, 1)
        case Magnitude(whole_numbers=True):
            return st.integers(1, 10**scale.max_digits - 1)
        case Slider():
            n = round((scale.high - scale.low) / scale.step)
            return st.integers(0, n).map(lambda k: min(scale.low + k * scale.step, scale.high))
        case Real():
            return st.floats(scale.bounds.low, scale.bounds.high)
        case Magnitude():
            return st.floats(0, 10**scale.max_digits - 1, exclude_min=True)
        case Pairwise():
            return st.sampled_from(["win", "loss", "tie"] if scale.ties else ["win", "loss"])
        case SingleChoice():
            return st.sampled_from(scale.options).map(lambda option: (option,))
        case Checkboxes():
            free = [o for o in scale.options if o not in scale.exclusive]
            several = st.sets(st.sampled_from(free), min_size=1) if free else st.nothing()
            alone = st.sampled_from(scale.exclusive).map(lambda o: {o}) if scale.exclusive else st.nothing()
            return (several | alone).map(lambda ticked: tuple(o for o in scale.options if o in ticked))
        case FreeText():
            return st.text("ab=é'", min_size=scale.min_length, max_size=scale.max_length)
        case BestWorst():
            return st.integers(-1, 1)
        case Ranking():
            return st.integers(0, 1)  # of two outputs, as pages have here
    raise AssertionError(scale)


@given(st.from_type(Likert) | st.from_type(Ordinal), st.integers(-20, 20))
@settings(max_examples=100, deadline=None)
def test_steps_are_exactly_the_whole_numbers_between_the_ends(scale: Likert | Ordinal, number: int) -> None:
    allowed = number in range(scale.low, scale.high + 1)
    for raw in (number, float(number), str(number), f" {number} ", f"{number}.0", f"{number}.5"):
        good = allowed and raw != f"{number}.5"
        assert _accepts(scale, raw) is good, raw


@given(st.from_type(Magnitude), st.integers(-5, 10**16) | st.floats())
@settings(max_examples=100, deadline=None)
def test_magnitudes_are_positive_and_of_so_many_digits(scale: Magnitude, number: float) -> None:
    good = math.isfinite(number) and 0 < number < 10**scale.max_digits
    if scale.whole_numbers:
        good = good and number == math.floor(number)
    elif good:
        good = number <= 10**scale.max_digits - 1
    assert _accepts(scale, number) is good


def test_half_steps_are_refused_on_both_sides_of_zero() -> None:
    assert [_accepts(Likert(low=-3, high=3), v) for v in (-2.5, "-0.5", 0.5, "2.5", -2)] == [0, 0, 0, 0, 1]


def _accepts(scale: Any, raw: Any) -> bool:
    try:
        scale.parse(raw)
    except ValueError:
        return False
    return True


STRANGERS = [None, True, False, [], {}, (), object(), b"3", math.nan, math.inf, -math.inf, 10**400]
STRANGERS += ["", " ", "three", "1,5", "1_0", "0x3", "3;", "nan", "inf", "--3", "3 3", "1e400", "\0", "³"]


@pytest.mark.parametrize(
    "scale", [Likert(high=100), Ordinal(high=100), Binary(), Magnitude(), RankMagnitude()]
)
@pytest.mark.parametrize("raw", STRANGERS, ids=lambda raw: "object" if type(raw) is object else repr(raw))
def test_no_number_scale_takes_what_is_no_number(scale: Any, raw: Any) -> None:
    with pytest.raises(ValueError, match="^expected .*, found "):
        scale.parse(raw)


def test_the_forms_of_the_rankme_release() -> None:
    """Positive whole numbers of at most six digits, against a reference of 100 (Novikova et al. 2018)."""
    scale = RankMagnitude()
    assert scale.describe() == "a positive whole number of at most 6 digits"
    assert [_accepts(scale, v) for v in (0, 1, 999_999, 1_000_000, 1.5, -1)] == [0, 1, 1, 0, 0, 0]
    assert scale.score(100) == 0
    assert scale.score(200) == pytest.approx(math.log(2))
    assert scale.score(50) == pytest.approx(-scale.score(200))


@given(st.floats(1e-300, 1e300, allow_subnormal=False), st.floats(0, 10**6 - 1, exclude_min=True))
@settings(max_examples=50, deadline=None)
def test_a_magnitude_has_a_finite_score_however_far_from_the_reference(
    reference: float, value: float
) -> None:
    scale = Magnitude(reference=reference, whole_numbers=False)
    assert scale.score(value) == pytest.approx(math.log(value) - math.log(reference))


@pytest.mark.parametrize("ties", [True, False])
def test_pairs(ties: bool) -> None:
    scale = Pairwise(ties=ties)
    assert scale.parse(" WIN ") == "win"
    assert _accepts(scale, "tie") is ties
    assert [scale.score(v) for v in ("win", "loss")] == [1.0, 0.0]
    if ties:
        assert scale.score("tie") == 0.5
    for bad in ("", "draw", None, 1, 0.5, [], ["win"], ("win",), {}, b"win", "win|loss"):
        with pytest.raises(ValueError, match="expected win"):
            scale.parse(bad)


def test_both_are_bad_counts_as_a_tie_where_it_is_offered() -> None:
    assert not _accepts(Pairwise(), "both bad")
    scale = Pairwise(ties=False, both_bad="Neither will do")
    assert scale.score("both bad") == 0.5
    assert scale.describe() == "win, loss or both bad"
    assert [choice.label for choice in scale.choices(("Left", "Right"))] == [
        "Left",
        "Right",
        "Neither will do",
    ]
    assert scale.read_answer("both bad", (1, 0)) == "both bad"
    assert scale.show_answer("both bad", (1, 0)) == "both bad"


def test_boxes_stand_in_the_order_of_the_scale_and_ok_stands_alone() -> None:
    scale = Checkboxes()
    assert scale.parse("missing|added") == ("added", "missing")
    assert scale.parse(" missing \n added ") == ("added", "missing")
    assert scale.parse("missing||missing") == ("missing",)
    assert scale.parse(["ok"]) == ("ok",)
    for bad in (
        "",
        "|",
        "ok|added",
        "Added",
        "other",
        "added|other",
        [],
        [1],
        [None],
        None,
        3,
        {"ok"},
        "add",
    ):
        with pytest.raises(ValueError, match="expected one or more of added, missing, ok"):
            scale.parse(bad)


def test_the_score_of_boxes_counts_what_they_report() -> None:
    scale = Checkboxes()
    assert [scale.score(v) for v in ("ok", "added", "added|missing")] == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        (Likert, {"low": 3, "high": 3}, "must be above low"),
        (Likert, {"low": 3, "high": 1}, "must be above low"),
        (Likert, {"labels": ("a",)}, "expected none, 2 .* or 6"),
        (Likert, {"labels": ("a",) * 5}, "expected none, 2 .* or 6"),
        (Likert, {"low": 1.5}, "integer"),
        (Ordinal, {"kind": "likert"}, "ordinal"),
        (Binary, {"labels": ("only one",)}, "labels"),
        (Binary, {"labels": ("", "yes")}, "labels"),
        (Magnitude, {"reference": 0}, "greater than 0"),
        (Magnitude, {"reference": -1}, "greater than 0"),
        (Magnitude, {"reference": math.nan}, "finite"),
        (Magnitude, {"reference": math.inf}, "finite"),
        (Magnitude, {"max_digits": 0}, "greater than or equal to 1"),
        (Magnitude, {"max_digits": 16}, "less than or equal to 15"),
        (Checkboxes, {"options": ()}, "options"),
        (Checkboxes, {"options": ("ok", "ok")}, "named twice"),
        (Checkboxes, {"options": ("ok", "a|b")}, "cannot be part of one"),
        (Checkboxes, {"options": ("ok", "a\nb")}, "cannot be part of one"),
        (Checkboxes, {"options": ("ok", " a")}, "spaces around"),
        (Checkboxes, {"options": ("ok", "a\r")}, "spaces around"),
        (Checkboxes, {"options": ("ok", "a\0")}, "NUL"),
        (Checkboxes, {"options": ("a",), "exclusive": ("b",)}, "not among the options"),
        (Pairwise, {"tie_label": ""}, "tie_label"),
        (Slider, {"low": 5, "high": 5}, "must be above low"),
        (Slider, {"step": 0}, "greater than 0"),
        (Slider, {"step": 30}, "steps of 30 do not lead from 0 to 100"),
        (Slider, {"labels": ("only one",)}, "none or 2"),
        (Real, {"low": 1, "high": 0}, "must be above low"),
    ],
)
def test_scales_that_cannot_be(kind: type[Any], fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        kind(**fields)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_says_how_it_measures_and_is_asked(kind: type[Any]) -> None:
    scale = kind()
    assert scale.level in ("nominal", "ordinal", "interval", "ratio")
    assert scale.widget
    assert scale.form in ("number", "pair", "boxes", "text")
    assert scale.describe()


def test_the_name_of_a_kind_leads_back_to_it() -> None:
    union: TypeAdapter[Any] = TypeAdapter(Scale)
    for name in SCALES:
        kind = SCALES.get(name)
        read = union.validate_python({"kind": name})
        assert type(read) is kind
        assert read.kind == name
    with pytest.raises(ValidationError, match="kind"):
        union.validate_python({"kind": "likrt"})
    with pytest.raises(ValidationError):
        union.validate_python({"low": 1})


def test_levels_are_those_of_stevens() -> None:
    assert (Likert.level, Ordinal.level, Binary.level) == ("ordinal", "ordinal", "nominal")
    assert (Magnitude.level, RankMagnitude.level, Pairwise.level) == ("ratio", "ratio", "nominal")
    assert (Slider.level, Real.level, Checkboxes.level) == ("interval", "interval", "nominal")


# --- many at once ---------------------------------------------------------------------------------------


@given(scale=any_scale, data=st.data())
@settings(max_examples=100, deadline=None)
def test_scores_of_a_column_are_the_scores_of_its_cells(scale: Any, data: st.DataObject) -> None:
    values = [scale.parse(v) for v in data.draw(st.lists(_permitted(scale), min_size=1, max_size=5))]
    column = values if scale.form == "number" else [value_text(v) for v in values]
    assert scale.scores(column).tolist() == pytest.approx(
        [scale.score(v) for v in values], rel=1e-12, nan_ok=True
    )


@given(scale=any_scale, seed=st.integers(0, 100))
@settings(max_examples=100, deadline=None)
def test_simulated_raters_stay_within_the_scale(scale: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    felt = np.concatenate([rng.normal(0, 3, 50), [-1e9, -50, 0, 50, 1e9]])
    careless, shaped = rng.random(felt.size) < 0.2, rng.random(felt.size) < 0.2
    impressions = Impressions(felt, np.arange(felt.size) // 2, careless, shaped)
    values = scale.simulate(impressions, rng).tolist()
    assert len(values) == felt.size
    for value in values:
        scale.parse(value_text(value))


@pytest.mark.parametrize("scale", [Likert(), Slider(), Real(), Real(low=0, high=1), Magnitude(), Pairwise()])
def test_what_feels_better_gets_more(scale: Any) -> None:
    felt = np.linspace(-2, 2, 9)
    nobody = np.zeros(felt.size, bool)
    impressions = Impressions(felt, np.arange(felt.size), nobody, nobody)
    scores = scale.scores(scale.simulate(impressions, np.random.default_rng(0)))
    assert (np.diff(scores) >= 0).all()
    assert scores[-1] > scores[0]


# --- the slider, real numbers ---------------------------------------------------------------------------


def test_the_slider_goes_from_0_to_100_in_whole_steps() -> None:
    assert Slider().describe() == "a whole number from 0 to 100"
    assert [_accepts(Slider(), v) for v in (0, 100, "55", 101, -1, 0.5, "")] == [1, 1, 1, 0, 0, 0, 0]
    tenths = Slider(high=1, step=0.1)
    assert [_accepts(tenths, v) for v in (0.3, "0.7", 1, 0.35)] == [1, 1, 1, 0]
    assert tenths.describe() == "a number from 0 to 1 in steps of 0.1"


@pytest.mark.parametrize(
    ("scale", "good", "bad"),
    [
        (Real(), (-3.5, 0, 1e30, "2e3"), (1e51, math.nan, "x")),
        (Real(low=0), (0, 1e9), (-0.1,)),
        (Real(high=1), (-5, 1), (1.1,)),
        (Real(low=0, high=1), (0.25, 1), (-0.1, 1.1)),
    ],
)
def test_real_numbers(scale: Real, good: tuple[object, ...], bad: tuple[object, ...]) -> None:
    assert all(_accepts(scale, v) for v in good)
    assert not any(_accepts(scale, v) for v in bad)


# --- pages ----------------------------------------------------------------------------------------------


@given(scale=any_scale, data=st.data(), order=st.permutations([0, 1]))
@settings(max_examples=100, deadline=None)
def test_a_page_shows_what_it_sent(scale: Any, data: st.DataObject, order: list[int]) -> None:
    stored = scale.parse(data.draw(_permitted(scale)))
    shown = scale.show_answer(value_text(stored), order)
    assert scale.read_answer(shown, order) == stored


def test_a_comparison_is_about_the_first_output_wherever_it_stands() -> None:
    scale = Pairwise()
    assert [scale.read_answer(place, (0, 1)) for place in ("0", 1, 1.0, "tie")] == [
        "win",
        "loss",
        "loss",
        "tie",
    ]
    assert [scale.read_answer(place, (1, 0)) for place in ("0", 1, 0.0)] == ["loss", "win", "loss"]
    for strange in (True, False, 2, "2", None, [], ["0"]):
        with pytest.raises(ValueError, match="expected win"):
            scale.read_answer(strange, (0, 1))


def test_ends_have_captions_and_steps_have_words() -> None:
    captions = [c.caption for c in Likert(high=3, labels=("bad", "good")).choices()]
    assert captions == ["bad", "", "good"]
    worded = Ordinal(high=1, labels=("no", "yes")).choices()
    assert [(c.value, c.label, c.caption) for c in worded] == [("0", "no", ""), ("1", "yes", "")]


# --- scales of other packages ---------------------------------------------------------------------------


class Thermometer(Real):
    kind: Literal["thermometer"] = "thermometer"  # type: ignore[assignment]
    low: float | None = -40


def test_an_installed_scale_is_read_by_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("thermometer", f"{__name__}:Thermometer", SCALES.group or "")
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    monkeypatch.setitem(vars(SCALES), "plugins", {"thermometer": entry})
    question = Question.model_validate({"criterion": "warmth", "text": "?", "scale": {"kind": "thermometer"}})
    assert type(question.scale).__name__ == "Thermometer"
    assert Question.model_validate_json(question.model_dump_json()) == question
    with pytest.raises(ValidationError, match="ranking, thermometer, found 'thermometre' .did you mean"):
        TypeAdapter(Scale).validate_python({"kind": "thermometre"})


def test_a_study_file_cannot_name_code() -> None:
    with pytest.raises(ValidationError, match="kind: expected one of"):
        TypeAdapter(Scale).validate_python({"kind": "os:system"})
