"""Scales: what each accepts, checked against an oracle of its own, and that values survive files."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from palaver.schema import (
    SCALES,
    Binary,
    Checkboxes,
    Likert,
    Magnitude,
    Ordinal,
    Pairwise,
    RankMagnitude,
    Scale,
)
from palaver.schema.rating import value_text

any_scale = st.one_of(*(st.from_type(kind) for kind in SCALES.values()))
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
        assert str(error) == f"expected {scale.describe()}, found {raw!r}"
        return
    assert scale.parse(value) == value
    assert scale.parse(value_text(value)) == value
    assert math.isfinite(scale.score(value))


@given(scale=any_scale, data=st.data())
@settings(max_examples=200, deadline=None)
def test_permitted_values_survive_a_csv_cell(scale: Any, data: st.DataObject) -> None:
    value = data.draw(_permitted(scale))
    parsed = scale.parse(value)
    assert parsed == value
    assert scale.parse(value_text(parsed)) == parsed
    assert math.isfinite(scale.score(parsed))


def _permitted(scale: Any) -> st.SearchStrategy[Any]:
    match scale:
        case Likert() | Ordinal():
            return st.integers(scale.low, scale.high)
        case Binary():
            return st.integers(0, 1)
        case Magnitude(whole_numbers=True):
            return st.integers(1, 10**scale.max_digits - 1)
        case Magnitude():
            return st.floats(0, 10**scale.max_digits - 1, exclude_min=True)
        case Pairwise():
            return st.sampled_from(["win", "loss", "tie"] if scale.ties else ["win", "loss"])
        case Checkboxes():
            free = [o for o in scale.options if o not in scale.exclusive]
            several = st.sets(st.sampled_from(free), min_size=1) if free else st.nothing()
            alone = st.sampled_from(scale.exclusive).map(lambda o: {o}) if scale.exclusive else st.nothing()
            return (several | alone).map(lambda ticked: tuple(o for o in scale.options if o in ticked))
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
        (Checkboxes, {"options": ("a",), "exclusive": ("b",)}, "not among the options"),
        (Pairwise, {"tie_label": ""}, "tie_label"),
    ],
)
def test_scales_that_cannot_be(kind: type[Any], fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        kind(**fields)


@pytest.mark.parametrize("kind", SCALES.values())
def test_every_kind_says_how_it_measures_and_is_asked(kind: type[Any]) -> None:
    scale = kind()
    assert scale.level in ("nominal", "ordinal", "interval", "ratio")
    assert scale.widget
    assert scale.numeric in (True, False)
    assert scale.describe()


def test_the_name_of_a_kind_leads_back_to_it() -> None:
    union: TypeAdapter[Any] = TypeAdapter(Scale)
    for name, kind in SCALES.items():
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
    assert Checkboxes.level == "nominal"
