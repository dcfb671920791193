"""A study file (TOML) into a `Study`, with every mistake named at once and in its line; and the presets."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from palaver.config import Lines, Location, config_error, parse_toml, read_toml, toml_value
from palaver.errors import UserError, nearest
from palaver.files import TextStream
from palaver.schema import Item, Question, Study
from palaver.schema.delivery import KnownItem, SurveyQuestion
from palaver.schema.media import Media
from palaver.schema.study import design_problems, stop_problems
from palaver.schema.translation import Translation, read_words, translation_problems
from palaver.studies.media import with_known_media, with_media
from palaver.studies.mistakes import ITEMS_FROM, explain, without_unknown_fields
from palaver.studies.turns import turn_problems

PRESETS = {
    "rankme": "rank-based magnitude estimation: all outputs of an item on one screen (Novikova et al. 2018)",
    "plain-me": "plain magnitude estimation: one output at a time against a reference of 100",
    "likert": "6-point Likert scales",
    "slider": "sliders from 0 to 100, one output at a time (direct assessment: Graham et al. 2017)",
    "pairwise": "two whole dialogues side by side, with 'cannot tell' (Liang et al. 2020)",
    "acute": "two whole dialogues side by side, four questions, no ties (Li et al. 2019)",
    "snippet": "one reply to a dialogue so far: five quick questions (Gopalakrishnan et al. 2019)",
    "complete": "consent, training, checks, comments, survey and a way out, around Likert scales",
    "triplet-check": "sentences changed by rule: good English, and what do they mean? (Zhu et al. 2018)",
}


def preset_text(name: str, *, layout: str | None = None) -> str:
    """The study file of a preset; `layout` replaces its set-up."""
    if name not in PRESETS:
        raise UserError(
            f"there is no preset {name!r}{nearest(name, list(PRESETS))}", f"known: {', '.join(PRESETS)}"
        )
    text = (files("palaver.studies") / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    if layout is not None:
        current = next(line for line in text.splitlines() if line.startswith("layout = "))
        comment = current[current.index("#") :] if "#" in current else ""
        text = text.replace(current, f'layout = "{layout}"'.ljust(27) + comment, 1)
    return text


def preset_study(name: str, *, layout: str | None = None) -> Study:
    """A preset as a value, with the few items of its own."""
    return parse_study(preset_text(name, layout=layout), f"preset {name}")


def load_study(path: str | Path) -> Study:
    """The study described by a TOML file. All mistakes are reported together."""
    data, lines = read_toml(path)
    study = _build(Path(path), data, lines, Path(path).parent)
    if study.stop_judge is None or study.stop_judge.file is None:
        return study
    from palaver.studies.stop_judge import with_verdicts

    try:
        return with_verdicts(study, Path(path).parent)
    except UserError as error:
        text = f"{error.message} ({error.hint})" if error.hint else error.message
        text = text.replace("--judge-criterion", "criterion").replace("--judge", "judge")
        raise config_error(Path(path), lines, [(("stop_judge",), text)]) from None


@dataclass(frozen=True, slots=True)
class Served:
    """A study that is being served, and its file, which may name others."""

    study: Study
    source: str


def parse_study(text: str, name: str, media: Media | None = None, *, served: Served | None = None) -> Study:
    """The study described by a text alone, which can name no file beside it; errors call it `name`.

    Images and sounds that it shows must be among those of `media`. Where the text changes a study that is
    `served`, a file that both name stands for what was read from it when the study was served.
    """
    data, lines = parse_toml(text, name)
    if served is not None:
        data = _with_files_of(served, data)
    if ITEMS_FROM in data:
        mistake = "a text alone cannot name a file of items: put the items into the text"
        raise config_error(Path(name), lines, [((ITEMS_FROM,), mistake)])
    study = _build(Path(name), data, lines, media=media)
    if study.stop_judge is not None and not study.stop_judge.verdicts:
        mistake = "a text alone cannot name a file of a judge's ratings"
        raise config_error(Path(name), lines, [(("stop_judge",), mistake)])
    return study


def _with_files_of(served: Served, data: dict[str, Any]) -> dict[str, Any]:
    """The tables of a changed study, with what stood in the files that it still names."""
    before = parse_toml(served.source, "the study that is served")[0]
    data = dict(data)
    if ITEMS_FROM in data and "items" not in data and data[ITEMS_FROM] == before.get(ITEMS_FROM):
        del data[ITEMS_FROM]
        data["items"] = list(served.study.items)
        # The judge has rated these items, and would have to have rated others, too.
        if "stop_judge" in data and data["stop_judge"] == before.get("stop_judge"):
            data["stop_judge"] = served.study.stop_judge
    return data


def _build(
    path: Path, data: dict[str, Any], lines: Lines, folder: Path | None = None, media: Media | None = None
) -> Study:
    """`folder` is that of the file; a text alone has none, and can show what is in `media`."""
    data, mistakes = read_words(data, folder)
    places: _Places = None
    if ITEMS_FROM in data:
        data, places = _items_from(path, data, mistakes)
    study: Study | None = None
    try:
        study = Study.model_validate(data)
        mistakes += turn_problems(study)
        study, problems = with_media(study, folder) if folder else with_known_media(study, media)
        mistakes += problems
    except ValidationError as error:
        mistakes += explain(error)
        mistakes += (m for m in _hidden(data, error) if m not in mistakes)
    if mistakes or study is None:
        raise config_error(path, lines, [_in_items_file(places, mistake) for mistake in mistakes])
    return study


def _hidden(data: dict[str, Any], error: ValidationError) -> Iterator[tuple[Location, str]]:
    """Mistakes that show only without the others.

    Pydantic checks a table as a whole when each of its fields is right, and what spans questions and items
    when all of them are.
    """
    mended = without_unknown_fields(data, error)
    try:
        Study.model_validate(mended)
    except ValidationError as later:
        yield from explain(later, only="value_error")
    questions, _ = _sound(mended, "questions", Question)
    items, repaired = _sound(mended, "items", Item)
    checks = mended.get("checks")
    active = mended.get("assignment") == "active"
    joint = mended.get("layout") == "joint"
    degraded = isinstance(checks, dict) and checks.get("degraded") is True
    known = dict(_sound_known(mended))
    problems = design_problems(questions, items, active=active, joint=joint, degraded=degraded, known=known)
    for place, text in problems:
        if not (place[-1] == "outputs" and place[1] in repaired):
            yield place, text
    survey, _ = _sound(mended, "survey", SurveyQuestion)
    translations = _sound_translations(mended)
    yield from translation_problems(translations, list(questions.values()), list(survey.values()))
    if all(not mistake["loc"] for mistake in error.errors()):  # every part is sound by itself
        parts: dict[str, Any] = {name: mended[name] for name in STOP if name in mended}
        parts |= {"questions": tuple(questions.values()), "items": tuple(items.values())}
        yield from stop_problems(Study.model_construct(**parts))


def _sound_translations(data: dict[str, Any]) -> dict[str, Translation]:
    """Translations that are valid by themselves."""
    tables = data.get("translations")
    sound = {}
    for language, table in tables.items() if isinstance(tables, dict) else ():
        with contextlib.suppress(ValidationError):
            sound[language] = Translation.model_validate(table)
    return sound


def _sound_known(data: dict[str, Any]) -> Iterator[tuple[Location, KnownItem]]:
    """Training items and checks that are valid by themselves, by their place in the file."""
    for section in ("training", "checks"):
        table = data.get(section)
        if isinstance(table, dict):
            for i, item in _sound(table, "items", KnownItem)[0].items():
                yield (section, "items", i), item


STOP = ("stop", "stop_criterion", "stop_judge", "equivalent_within")
_Places = tuple[Any, list[int]] | None
"""Name of the file with the items, and the line of each."""


def _items_from(
    path: Path, data: dict[str, Any], mistakes: list[tuple[Location, str]]
) -> tuple[dict[str, Any], _Places]:
    """The study with the items that its `items_from` names."""
    rest = {key: value for key, value in data.items() if key != ITEMS_FROM}
    if "items" in data:
        mistakes.append(((ITEMS_FROM,), "give either items or items_from, not both"))
        return rest, None
    if not isinstance(data[ITEMS_FROM], str):
        return {**rest, "items": []}, (data[ITEMS_FROM], [])
    source = path.parent / data[ITEMS_FROM]
    items: list[Any] = []
    at: list[int] = []
    with TextStream(source) as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                items.append(json.loads(line))
                at.append(number)
            except ValueError as error:
                mistakes.append(((ITEMS_FROM,), f"{source.name}, line {number}: not JSON: {error}"))
    return {**rest, "items": items}, (source.name, at)


def _in_items_file(places: _Places, mistake: tuple[Location, str]) -> tuple[Location, str]:
    """A mistake in an item that was read from a file of its own is in that file's line."""
    place, text = mistake
    if places is None or place[0] != "items":
        return mistake
    name, at = places
    if len(place) == 1:
        return (ITEMS_FROM,), f"expected the name of a file with at least one item, found {name!r}"
    inside = ".".join(str(p + 1) if isinstance(p, int) else p for p in place[2:])
    if inside:
        text = f"{inside}: {text}"
    return (ITEMS_FROM,), f"{name}, line {at[int(place[1])]}: {text}"


_STAND_INS: dict[str, dict[str, Any]] = {
    "questions": {"text": "?", "scale": {"kind": "binary"}},
    "items": {"outputs": [{"system": "?", "text": "?"}]},
    "survey": {"text": "?"},
}


def _sound(data: dict[str, Any], key: str, noun: type[BaseModel]) -> tuple[dict[int, Any], set[int]]:
    """The elements by their place in the file, and which of them were sound only with stand-ins."""
    sound: dict[int, Any] = {}
    repaired: set[int] = set()
    for i, element in enumerate(data[key] if isinstance(data.get(key), list) else []):
        try:
            sound[i] = noun.model_validate(element)
        except ValidationError:
            names = ("id", "criterion", "beside", "name")  # a condition on a stand-in would be wrong
            known = {n: element[n] for n in names if n in element} if isinstance(element, dict) else {}
            with contextlib.suppress(ValidationError):
                sound[i] = noun.model_validate({**known, **_STAND_INS[key]})
                repaired.add(i)
    return sound, repaired


def study_toml(study: Study) -> str:
    """The study as a TOML file that `load_study` reads back to the same value."""
    fields = study.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    if study.stop_judge is not None and study.stop_judge.file is not None:
        fields["stop_judge"].pop("verdicts", None)  # they are in the file
    if study.media is not None:
        fields["media"].pop("files", None)  # they are in the folder
    tables = {key: fields.pop(key) for key in ("questions", "items")}
    lines = [f"{key} = {toml_value(value)}" for key, value in fields.items()]
    for key, rows in tables.items():
        for row in rows:
            lines += ["", f"[[{key}]]", *(f"{name} = {toml_value(value)}" for name, value in row.items())]
    return "\n".join(lines) + "\n"
