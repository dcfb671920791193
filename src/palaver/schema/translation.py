"""What the owner of a study wrote, in another language. Answers are stored as they would be without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from palaver.config import read_toml
from palaver.errors import UserError, nearest
from palaver.schema.base import FrozenDict, Name, Noun, Text
from palaver.schema.delivery import SurveyQuestion
from palaver.schema.item import Question

Location = tuple[str | int, ...]


class QuestionTranslation(Noun):
    """A question in another language; what is left out is shown as the study has it."""

    text: Text = ""
    help: Text = ""
    labels: tuple[Text, ...] = ()
    """Of the scale: its labels, or else its options, in their order."""
    tie_label: Text = ""


class SurveyTranslation(Noun):
    """A question of the survey in another language."""

    text: Text = ""
    options: tuple[Text, ...] = ()


class Translation(Noun):
    """A study in another language."""

    title: Text = ""
    instructions: Text = ""
    consent: Text = ""
    questions: Annotated[Mapping[str, QuestionTranslation], AfterValidator(FrozenDict)] = Field(
        default_factory=dict, validate_default=True
    )
    """By criterion."""
    survey: Annotated[Mapping[str, SurveyTranslation], AfterValidator(FrozenDict)] = Field(
        default_factory=dict, validate_default=True
    )
    """By name."""
    feedback: Annotated[Mapping[str, Text], AfterValidator(FrozenDict)] = Field(
        default_factory=dict, validate_default=True
    )
    """Of the training: the text in the study -> the text in this language."""
    words: Annotated[Mapping[str, Text], AfterValidator(FrozenDict)] = Field(
        default_factory=dict, validate_default=True
    )
    """Of the pages, for a language that has no catalogue, or in place of those of the catalogue."""
    direction: Literal["ltr", "rtl"] | None = None
    """In which the language is written, where it has no catalogue."""


Translations = Annotated[Mapping[Name, Translation], AfterValidator(FrozenDict)]
"""By language: `de`, `pt-BR`."""


def labels_of(question: Question) -> tuple[str, ...]:
    """What a question's scale shows and a translation replaces."""
    scale: Any = question.scale
    return tuple(getattr(scale, "labels", ()) or getattr(scale, "options", ()))


def placeholders(text: str) -> set[str]:
    """The names in braces; of a text with a lone brace, nothing that another one has."""
    try:
        return {name for _, name, _, _ in Formatter().parse(text) if name is not None}
    except ValueError:
        return {text}


def translation_problems(
    translations: Mapping[str, Translation], questions: Sequence[Question], survey: Sequence[SurveyQuestion]
) -> Iterator[tuple[Location, str]]:
    """Every way in which translations do not fit what they translate, with the place of each."""
    asked = {question.criterion: question for question in questions}
    surveyed = {question.name: question for question in survey}
    for language, translation in translations.items():
        place: Location = ("translations", language)
        for criterion, texts in translation.questions.items():
            where = (*place, "questions", criterion)
            if criterion not in asked:
                yield where, f"the study does not ask for {criterion!r}{nearest(criterion, list(asked))}"
                continue
            labels = labels_of(asked[criterion])
            if texts.labels and len(texts.labels) != len(labels):
                text = f"expected {len(labels)}, one for each of the scale's, found {len(texts.labels)}"
                yield (*where, "labels"), text
            if texts.tie_label and not hasattr(asked[criterion].scale, "tie_label"):
                yield (*where, "tie_label"), "only a pairwise question has one"
        for name, texts_of_survey in translation.survey.items():
            where = (*place, "survey", name)
            if name not in surveyed:
                yield where, f"the survey has no question {name!r}{nearest(name, list(surveyed))}"
                continue
            n_options, n_found = len(surveyed[name].options), len(texts_of_survey.options)
            if n_found and n_found != n_options:
                yield (
                    (*where, "options"),
                    f"expected {n_options}, one for each of the study's, found {n_found}",
                )
        for text, words in translation.words.items():
            if placeholders(text) != placeholders(words):
                wanted = ", ".join(f"{{{name}}}" for name in sorted(placeholders(text))) or "none"
                yield (
                    (*place, "words", text),
                    f"expected the same names in braces ({wanted}), found {words!r}",
                )


def read_words(
    data: dict[str, Any], folder: Path | None
) -> tuple[dict[str, Any], list[tuple[Location, str]]]:
    """The tables of a study or collection with the words of the files that its translations name.

    `words = "nl.toml"` names a file like those of the languages that ship: texts in tables, with `direction`
    before them. Without a folder there can be none.
    """
    mistakes: list[tuple[Location, str]] = []
    tables = data.get("translations")
    if not isinstance(tables, dict):
        return data, mistakes
    translations = dict(tables)
    for language, table in tables.items():
        name = table.get("words") if isinstance(table, dict) else None
        if not isinstance(name, str):
            continue
        catalogue: dict[str, Any] = {}
        place = ("translations", language, "words")
        if folder is None:
            mistakes.append((place, "a text alone cannot name a file of words: put them into a table"))
        else:
            try:
                catalogue = read_toml(folder / name)[0]
            except UserError as error:
                mistakes.append((place, error.message))
        groups = [group for group in catalogue.values() if isinstance(group, dict)]
        words = {text: said for group in groups for text, said in group.items()}
        direction = {"direction": catalogue["direction"]} if "direction" in catalogue else {}
        translations[language] = {**direction, **table, "words": words}
    return {**data, "translations": translations}, mistakes


def untranslated(
    translation: Translation,
    texts: Mapping[str, str],
    questions: Sequence[Question],
    survey: Sequence[SurveyQuestion],
    feedback: Sequence[str] = (),
) -> list[str]:
    """What of the owner's texts a translation leaves as it is. `texts`: title, instructions, consent."""
    lacking = [name for name, text in texts.items() if text and not getattr(translation, name)]
    for question in questions:
        said = translation.questions.get(question.criterion, QuestionTranslation())
        lacking += [
            f"questions.{question.criterion}.{name}"
            for name in ("text", "help")
            if getattr(question, name) and not getattr(said, name)
        ]
        if _own_labels(question) and not said.labels:
            lacking.append(f"questions.{question.criterion}.labels")
    for asked in survey:
        said_there = translation.survey.get(asked.name, SurveyTranslation())
        lacking += [
            f"survey.{asked.name}.{name}"
            for name in ("text", "options")
            if getattr(asked, name) and not getattr(said_there, name)
        ]
    lacking += [f"feedback: {text!r}" for text in dict.fromkeys(feedback) if text not in translation.feedback]
    return lacking


def default_labels(question: Question) -> tuple[str, ...]:
    """Words that the scale has by itself, which catalogues translate: of a field left as it is."""
    defaults: list[str] = []
    for name in ("labels", "options", "tie_label"):
        field = type(question.scale).model_fields.get(name)
        if field is not None and getattr(question.scale, name) == field.default:
            defaults += (field.default,) if isinstance(field.default, str) else field.default
    return tuple(defaults)


def _own_labels(question: Question) -> bool:
    return any(label not in default_labels(question) for label in labels_of(question))
