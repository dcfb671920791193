"""Study files: presets, every mistake at once and in its line, and the way back to TOML."""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import ConfigError, UserError
from palaver.schema import (
    Checkboxes,
    Dialogue,
    Item,
    Likert,
    Magnitude,
    Output,
    Question,
    RankMagnitude,
    Study,
    Turn,
)
from palaver.schema.scale import Bounds
from palaver.studies import PRESETS, load_study, preset_text
from palaver.studies.design import parse_study, preset_study, study_toml

pytestmark = pytest.mark.filterwarnings("error")

GOOD = """\
name = "s"
[[questions]]
criterion = "quality"
text = "How good?"
scale = { kind = "likert" }
[[items]]
id = "one"
outputs = [{ system = "a", text = "x" }]
"""


def problems(text: str, folder: Path, *, more: dict[str, str] | None = None) -> list[str]:
    for name, content in (more or {}).items():
        (folder / name).write_text(content, encoding="utf-8")
    file = folder / "study.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_study(file)
    assert str(file) in caught.value.message
    return list(caught.value.problems)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("layout", [None, "joint", "separate"])
def test_every_preset_loads(name: str, layout: str | None, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(preset_text(name, layout=layout), encoding="utf-8")
    study = load_study(file)
    assert study == preset_study(name, layout=layout)
    assert layout is None or study.layout == layout
    assert len(study.items) >= 2
    assert len(study.systems) >= 2


@pytest.mark.parametrize("name", ["likert", "plain-me", "rankme"])
def test_the_questions_are_those_of_the_paper(name: str) -> None:
    """RankME, section 3, word for word."""
    questions = {question.criterion: question.text for question in preset_study(name).questions}
    assert [questions[criterion] for criterion in ("informativeness", "naturalness", "quality")] == [
        "Does the utterance provide all the useful information from the meaning representation?",
        "Could the utterance have been produced by a native speaker?",
        "How do you judge the overall quality of the utterance in terms of its grammatical correctness, "
        "fluency, adequacy and other important factors?",
    ]


def test_presets_keep_their_comments_when_the_layout_changes() -> None:
    lines = {layout: preset_text("rankme", layout=layout).splitlines() for layout in ("joint", "separate")}
    differing = [(a, b) for a, b in zip(lines["joint"], lines["separate"], strict=True) if a != b]
    assert len(differing) == 1
    assert all("# " in line for line in differing[0])


def test_unknown_preset_suggests_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'rankme'"):
        preset_text("rank-me")


@pytest.mark.parametrize(
    ("method", "layout"), [*itertools.product(["likert", "plain-me", "rankme"], ["joint", "separate"])]
)
def test_every_cell_of_the_rankme_experiment(method: str, layout: str) -> None:
    """3 methods x 2 set-ups x 3 criteria (Novikova et al. 2018, section 3)."""
    study = preset_study(method, layout=layout)
    asked = {q.criterion: q for q in study.questions}
    assert {"informativeness", "naturalness", "quality"} <= set(asked)
    assert study.layout == layout
    scales = {"likert": Likert, "plain-me": Magnitude, "rankme": RankMagnitude}
    for criterion in ("informativeness", "naturalness", "quality"):
        assert type(asked[criterion].scale) is scales[method]
    assert "context" not in asked["naturalness"].shows  # the meaning representation is hidden
    assert "context" in asked["informativeness"].shows
    assert "context" in asked["quality"].shows
    boxes = next(q for q in study.questions if isinstance(q.scale, Checkboxes))
    assert boxes.beside == "quality"
    assert boxes.scale.options == ("added", "missing", "ok")  # type: ignore[union-attr]


def test_the_likert_preset_has_six_steps() -> None:
    scale = preset_study("likert").questions[0].scale
    assert isinstance(scale, Likert)
    assert (scale.low, scale.high) == (1, 6)


@pytest.mark.parametrize("preset", ["rankme", "plain-me"])
def test_the_authors_forms_took_whole_numbers_of_six_digits(preset: str) -> None:
    study = preset_study(preset)
    scale = study.questions[0].scale
    assert isinstance(scale, Magnitude)
    assert (scale.reference, scale.bounds) == (100, Bounds(1, 999_999, step=1))
    assert all(item.reference for item in study.items)
    assert all(len(item.outputs) == 3 for item in study.items)


@given(study=st.from_type(Study))
@settings(max_examples=150, deadline=None)
def test_toml_and_back_is_the_same_study(tmp_path_factory: pytest.TempPathFactory, study: Study) -> None:
    file = tmp_path_factory.mktemp("s") / "study.toml"
    try:
        text = study_toml(study)
    except UserError:  # labels may hold nothing, for which TOML has no word
        assert "null" in study.model_dump_json(exclude_defaults=True)
        return
    file.write_text(text, encoding="utf-8", newline="")
    assert load_study(file) == study


@pytest.mark.parametrize("name", PRESETS)
def test_presets_survive_the_way_back(name: str, tmp_path: Path) -> None:
    study = preset_study(name)
    (tmp_path / "s.toml").write_text(study_toml(study), encoding="utf-8")
    assert load_study(tmp_path / "s.toml") == study


def test_a_label_without_value_cannot_be_written() -> None:
    turn = Turn(speaker="a", text="hi", labels={"mood": None})
    study = Study(
        name="s",
        questions=(Question(criterion="q", text="?", scale=Likert()),),
        items=(
            Item(id="i", context=Dialogue(id="d", turns=(turn,)), outputs=(Output(system="a", text=""),)),
        ),
    )
    with pytest.raises(UserError, match=r"no word for that[\s\S]*items_from"):
        study_toml(study)


MANY = """\
name = 5
layout = "both"
raters_per_item = 0
seed = "x"
ordr = "random"
blind = "perhaps"

[[questions]]
criterion = "quality"
text = ""
scale = { kind = "likertt", low = 1 }

[[questions]]
criterion = "nat"
text = "x"
scale = "likert"
binary = 3

[[questions]]
criterion = "inf"
text = "x"
scale = { kind = "likert", low = 6, high = 1, lables = ["a"] }
beside = "nowhere"

[[questions]]
criterion = "inf"
text = "x"
shows = ["context"]
scale = { kind = "checkboxes", options = ["a"], exclusive = ["b"] }

[[items]]
id = "one"
context = 5
outputs = [
  { system = "A", text = "x" },
  { system = "B", text = 3 },
  { system = "", text = "x" },
]

[[items]]
id = "two"
context = { id = "x", turns = [ { speaker = "a", txt = "b" } ] }
outputs = [ { system = "A", text = "x", dialogue = { id = "d", turns = [] } } ]

[[items]]
id = "two"
outputs = []
"""


def test_all_mistakes_at_once_in_their_lines(tmp_path: Path) -> None:
    found = problems(MANY, tmp_path)
    expected = [
        "line 1: name: expected a text, found 5",
        "line 2: layout: expected 'joint' or 'separate', found 'both'",
        "line 3: raters_per_item: expected at least 1, found 0",
        "line 4: seed: expected a whole number, found 'x'",
        "line 5: ordr: there is no such field (did you mean 'order'?)",
        "line 6: blind: expected true or false, found 'perhaps'",
        "line 10: questions[1].text: must not be empty, found ''",
        "line 11: questions[1].scale: kind: expected one of likert, magnitude, rank-magnitude, pairwise, "
        "binary, ordinal, checkboxes, choice, slider, real, text, best-worst, "
        "ranking, found 'likertt' (did you mean 'likert'?)",
        "line 16: questions[2].scale: expected a table such as { kind = \"likert\" }, found 'likert'",
        "line 17: questions[2].binary: there is no such field",
        "line 22: questions[3].scale: high (1) must be above low (6)",
        "line 22: questions[3].scale.lables: there is no such field (did you mean 'labels'?)",
        "line 23: questions[3].beside: expected a criterion that stands alone (inf, nat, quality), "
        "found 'nowhere'",
        "line 26: questions[4].criterion: criterion 'inf' is asked twice",
        "line 29: questions[4].scale: exclusive: ['b'] not among the options ['a']",
        "line 33: items[1].context: expected a text or a dialogue, found 5",
        "line 36: items[1].outputs[2].text: expected a text, found 3",
        "line 37: items[1].outputs[3].system: must not be empty, found ''",
        "line 42: items[2].context.turns[1].text: is missing",
        "line 42: items[2].context.turns[1].txt: there is no such field (did you mean 'text'?)",
        "line 43: items[2].outputs[1]: an output is either a text or a dialogue: give exactly one of them",
        "line 46: items[3].id: item id 'two' is used twice",
        "line 47: items[3].outputs: expected at least 1, found []",
    ]
    assert found == expected


def test_no_internal_word_reaches_the_user(tmp_path: Path) -> None:
    text = "\n".join(problems(MANY, tmp_path))
    for word in ("tuple", "dictionary", "function-after", "NoneType", "pydantic", "Traceback", "union"):
        assert word not in text


def outcome(file: Path) -> tuple[Study | None, UserError | None]:
    try:
        return load_study(file), None
    except UserError as error:
        return None, error


@pytest.mark.parametrize("value", ["5", "true", '"x"', "[]", "[1]", "{}", "1979-05-27", "[[1]]", "1.5"])
@pytest.mark.parametrize(
    "field",
    [
        "name", "title", "instructions", "layout", "raters_per_item", "seed", "order", "blind", "questions",
        "items", "items_from", "nonsense",
    ],
)  # fmt: skip
def test_wrong_types_at_the_top(field: str, value: str, tmp_path: Path) -> None:
    """Whatever stands there is either accepted or refused with its line; nothing else is raised."""
    kept = {
        "questions": '[{ criterion = "q", text = "?", scale = { kind = "likert" } }]',
        "items": '[{ id = "i", outputs = [{ system = "a", text = "x" }] }]',
    }
    lines = ['name = "s"', *(f"{k} = {v}" for k, v in kept.items() if k != field)]
    if field == "items_from":
        lines = [line for line in lines if not line.startswith("items")]
    if field == "name":
        lines = lines[1:]
    lines.append(f"{field} = {value}")
    file = tmp_path / "s.toml"
    file.write_text("\n".join(lines), encoding="utf-8")
    study, error = outcome(file)
    if study is not None:
        assert getattr(study, field) == tomllib.loads(lines[-1])[field]
    elif isinstance(error, ConfigError):
        assert any(f"line {len(lines)}: {field}" in p for p in error.problems)
    else:
        assert field == "items_from"
        assert "there is no file" in str(error)


@pytest.mark.parametrize("value", ["5", "true", '"x"', "[]", "[1]", "{}", "[[1]]"])
@pytest.mark.parametrize("field", ["criterion", "text", "scale", "shows", "help", "required", "beside"])
def test_wrong_types_in_a_question(field: str, value: str, tmp_path: Path) -> None:
    question = {"criterion": '"quality"', "text": '"?"', "scale": '{ kind = "likert" }', field: value}
    body = "".join(f"{key} = {v}\n" for key, v in question.items())
    text = (
        f'name = "s"\n[[questions]]\n{body}[[items]]\nid = "i"\noutputs = [{{ system = "a", text = "x" }}]\n'
    )
    file = tmp_path / "s.toml"
    file.write_text(text, encoding="utf-8")
    _, error = outcome(file)
    if error is not None:
        line = 2 + list(question).index(field) + 1
        # what a question shows is checked as a whole, so it is the table that is named
        assert any(p.startswith(f"line {line}: questions[1].{field}") for p in error.problems) or (
            field == "shows" and any(p.startswith("line 2: questions[1]: shows") for p in error.problems)
        )


@pytest.mark.parametrize("value", ["5", "true", "[]", "[1]", "{}", "[{}]", '[{ system = "a" }]'])
@pytest.mark.parametrize("field", ["id", "context", "knowledge", "reference", "outputs"])
def test_wrong_types_in_an_item(field: str, value: str, tmp_path: Path) -> None:
    item = {"id": '"i"', "outputs": '[{ system = "a", text = "x" }]', field: value}
    body = "".join(f"{key} = {v}\n" for key, v in item.items())
    head = 'name = "s"\n[[questions]]\ncriterion = "q"\ntext = "?"\nscale = { kind = "likert" }\n'
    text = f"{head}[[items]]\n{body}"
    assert any(
        p.startswith(f"line {7 + list(item).index(field)}: items[1].{field}")
        for p in problems(text, tmp_path)
    )


def test_items_have_to_fit_the_scales(tmp_path: Path) -> None:
    text = (
        GOOD.replace('"likert"', '"pairwise"')
        + '[[items]]\nid = "one"\noutputs = [{ system = "a", text = "" }]\n'
    )
    assert problems(text, tmp_path) == [
        "line 8: items[1].outputs: item 'one' has 1 outputs, but 'quality' compares 2",
        "line 10: items[2].id: item id 'one' is used twice",
        "line 11: items[2].outputs: item 'one' has 1 outputs, but 'quality' compares 2",
    ]


def test_a_broken_question_is_still_one_that_others_stand_beside(tmp_path: Path) -> None:
    """A mistake must not cause the report of another that is none."""
    text = GOOD.replace('"likert"', '"likrt"') + (
        '[[questions]]\ncriterion = "boxes"\ntext = "?"\n'
        'beside = "quality"\nscale = { kind = "checkboxes" }\n'
    )
    found = problems(text, tmp_path)
    assert len(found) == 1
    assert "did you mean 'likert'" in found[0]


def test_missing_parts_are_named(tmp_path: Path) -> None:
    assert problems("# nothing here\n", tmp_path) == [
        "items: is missing",
        "name: is missing",
        "questions: is missing",
    ]


def test_not_toml(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('name = "x"\n= 3\n')
    with pytest.raises(UserError, match=r"not valid TOML.*line 2"):
        load_study(file)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_windows_files(ending: str, bom: bytes, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_bytes(bom + GOOD.replace("\n", ending).encode())
    assert load_study(file).name == "s"
    file.write_bytes(bom + GOOD.replace("likert", "lkert").replace("\n", ending).encode())
    with pytest.raises(ConfigError) as caught:
        load_study(file)
    assert caught.value.problems[0].startswith("line 5: questions[1].scale")


HEAD = GOOD[: GOOD.index("[[items]]")].replace('name = "s"\n', 'name = "s"\nitems_from = "items.jsonl"\n')


def test_items_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text(
        '{"id": "a", "outputs": [{"system": "x", "text": "1"}]}\n\n'
        '{"id": "b", "outputs": [{"system": "y", "text": "2"}]}\n'
    )
    (tmp_path / "s.toml").write_text(HEAD)
    study = load_study(tmp_path / "s.toml")
    assert [item.id for item in study.items] == ["a", "b"]
    assert study.systems == ("x", "y")


def test_mistakes_in_the_items_file_are_in_its_lines_and_said_once(tmp_path: Path) -> None:
    items = (
        '{"id":"a","outputs":[{"system":"A","text":"x"}]}\n\n5\n{"id":"b","outputs":[{"system":"A"}]}\n{bad\n'
        '{"id":"c","outputs":[{"system":"A","text":"x"}],"zzz":1}\n'
        '{"id":"a","outputs":[{"system":"A","text":"x"}]}\n'
    )
    found = problems(HEAD, tmp_path, more={"items.jsonl": items})
    assert [p.removeprefix("line 2: items_from: items.jsonl, ").split(":")[0] for p in found] == [
        f"line {n}" for n in (3, 4, 5, 6, 7)
    ]
    assert "item id 'a' is used twice" in found[-1]
    assert "not JSON" in found[2]


def test_items_from_must_name_a_file_with_items(tmp_path: Path) -> None:
    assert problems(HEAD, tmp_path, more={"items.jsonl": "\n \n"}) == [
        "line 2: items_from: expected the name of a file with at least one item, found 'items.jsonl'"
    ]
    assert problems(HEAD.replace('"items.jsonl"', "3"), tmp_path) == [
        "line 2: items_from: expected the name of a file with at least one item, found 3"
    ]
    both = GOOD.replace('name = "s"', 'name = "s"\nitems_from = "items.jsonl"')
    assert problems(both, tmp_path) == ["line 2: items_from: give either items or items_from, not both"]
    (tmp_path / "items.jsonl").unlink()
    (tmp_path / "study.toml").write_text(HEAD)
    with pytest.raises(UserError, match="there is no file"):
        load_study(tmp_path / "study.toml")


def test_items_from_is_looked_for_beside_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "deep"
    folder.mkdir()
    (folder / "items.jsonl").write_text('{"id": "a", "outputs": [{"system": "x", "text": "1"}]}\n')
    (folder / "s.toml").write_text(HEAD)
    monkeypatch.chdir(tmp_path)
    assert load_study("deep/s.toml").items[0].id == "a"


@pytest.mark.parametrize(
    ("head", "mistake"),
    [
        ('stop_criterion = "nope"', "line 1: stop_criterion: the study does not ask for 'nope'"),
        (
            'equivalent_within = 50\nstop = "when-sure"',
            "line 1: equivalent_within: a margin of 50 is as large",
        ),
    ],
)
def test_what_keeps_a_study_from_stopping_is_named_with_its_line(head: str, mistake: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_study(f"{head}\n{preset_text('likert')}", "study.toml")
    (problem,) = error.value.problems
    assert problem.startswith(mistake)
