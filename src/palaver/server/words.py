"""The words of the pages that raters and people who talk see: one catalogue a language.

English stands in templates, scripts and messages, and is the key: `t("Thank you!")`. A catalogue
(`languages/de.toml`) has a line for each text, grouped by page. What it lacks is said in English. The admin's
pages are English.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files
from string import Formatter
from typing import Any

from markupsafe import Markup, escape

from palaver.collection.settings import Collection
from palaver.errors import Sentence, UserError, nearest
from palaver.schema import Question, Study
from palaver.schema.scale import Choice
from palaver.schema.translation import Translation, default_labels, labels_of, untranslated

ENGLISH = "en"
BROWSER = "browser"
"""As a study's language: the one that the rater's browser asks for."""
LANGUAGE = "language"
"""In a link, the language to begin with; among a rater's parameters, the one that was shown. Both only where
there is a choice."""
NONE = Translation()
_FOLDER = files("palaver.server") / "languages"


class Words:
    """The words of one language: a function from the English text to what is shown."""

    def __init__(
        self, language: str, groups: Mapping[str, Mapping[str, str]], translation: Translation, direction: str
    ) -> None:
        self.language, self.groups, self.direction = language, groups, direction
        self.translation = translation
        """Of what the study's owner wrote."""
        self._texts = {key: text for group in groups.values() for key, text in group.items()}
        self._last: tuple[Study, Study] | None = None

    def __call__(self, text: str, **values: object) -> str:
        """The text in this language, with values for its placeholders.

        Markup among the values stays markup, and everything around it is escaped.
        """
        if isinstance(text, Sentence):
            values, text = text.values, text.template
        said = self._texts.get(text, text)
        if not values:
            return said
        parts = {name: self(part) if isinstance(part, Sentence) else part for name, part in values.items()}
        if any(isinstance(part, Markup) for part in parts.values()):
            return Markup(escape(said)).format(**parts)
        return said.format(**parts)

    def recognise(self, text: str) -> str:
        """A text that was stored, and has lost its parts: said by the template that fits it."""
        for template in self.groups.get("reasons", {}):
            parts = _pattern(template).fullmatch(text)
            if parts is not None:
                return self(template, **{name: self(part) for name, part in parts.groupdict().items()})
        return text

    # --- what the owner wrote -------------------------------------------------------------------------------

    def study(self, study: Study) -> Study:
        """A study as its pages show it: title, instructions, consent and survey in this language."""
        if self.translation == NONE:
            return study
        if self._last is None or self._last[0] is not study:
            told = self.translation
            texts = {name: getattr(told, name) for name in ("title", "instructions", "consent")}
            changed = {name: text for name, text in texts.items() if text}
            survey = [
                asked.model_copy(update={"text": told.survey[asked.name].text or asked.text})
                if asked.name in told.survey
                else asked
                for asked in study.survey
            ]
            self._last = study, study.model_copy(update={**changed, "survey": tuple(survey)})
        return self._last[1]

    def question(self, question: Question) -> Question:
        """A question as pages show it. The values of its scale stay as they are."""
        told = self.translation.questions.get(question.criterion)
        if told is None:
            return question
        scale = question.scale
        labels = {"labels": told.labels} if told.labels and getattr(scale, "labels", ()) else {}
        tie = {"tie_label": told.tie_label} if told.tie_label else {}
        if labels or tie:
            scale = scale.model_copy(update={**labels, **tie})
        texts = {"text": told.text or question.text, "help": told.help or question.help}
        return question.model_copy(update={**texts, "scale": scale})

    def choices(self, question: Question, outputs: Sequence[str] = ()) -> tuple[Choice, ...]:
        """What the widget of a question offers, in this language; what is sent and stored is the same."""
        shown = {text: self(text) for text in default_labels(question)}
        told = self.translation.questions.get(question.criterion)
        if told is not None and told.labels and not getattr(question.scale, "labels", ()):
            shown |= dict(zip(labels_of(question), told.labels, strict=True))
        offered = self.question(question).scale.choices(outputs)
        return tuple(replace(choice, label=shown.get(choice.label, choice.label)) for choice in offered)

    def survey_option(self, name: str, option: str, options: Sequence[str]) -> str:
        """An option of the survey as pages show it."""
        told = self.translation.survey.get(name)
        return told.options[options.index(option)] if told is not None and told.options else option

    def hint(self, feedback: str) -> str:
        """The training's feedback on an answer."""
        return self.translation.feedback.get(feedback, feedback)

    # --- scripts --------------------------------------------------------------------------------------------

    def block(self, *groups: str) -> Markup:
        """The words of a page's scripts, for the page; nothing where they are English anyway.

        It is data: the content policy, which forbids scripts in a page, lets it pass.
        """
        texts = {key: text for name in groups for key, text in self.groups.get(name, {}).items()}
        if all(key == text for key, text in texts.items()):
            return Markup()
        content = json.dumps(texts, ensure_ascii=False).replace("<", "\\u003c")
        return Markup(f'<script type="application/json" id="words">{content}</script>\n')


@cache
def _pattern(template: str) -> re.Pattern[str]:
    pieces = []
    for literal, name, _, _ in Formatter().parse(template):
        pieces.append(re.escape(literal) + (f"(?P<{name}>.+?)" if name else ""))
    return re.compile("".join(pieces), re.DOTALL)


@cache
def languages() -> tuple[str, ...]:
    """The languages that have a catalogue, English first."""
    names = sorted(
        entry.name.removesuffix(".toml") for entry in _FOLDER.iterdir() if entry.name[-5:] == ".toml"
    )
    return (ENGLISH, *(name for name in names if name != ENGLISH))


def catalogue_text(language: str) -> str:
    """The file of a language that has a catalogue."""
    return (_FOLDER / f"{language}.toml").read_text(encoding="utf-8")


@cache
def _catalogue(language: str) -> dict[str, Any]:
    return tomllib.loads(catalogue_text(language))


@lru_cache(maxsize=100)
def words_of(language: str, translation: Translation = NONE) -> Words:
    """The words of a language: of its catalogue, and what a study's translation has in their place."""
    if language not in languages() and not translation.words:
        names = [*languages(), BROWSER]
        raise UserError(
            f"language: there is no catalogue {language!r}{nearest(language, names)}",
            f"known: {', '.join(names)}; or put the words of your own under [translations.{language}] words",
        )
    known = _catalogue(language if language in languages() else ENGLISH)
    groups = {
        name: {text: translation.words.get(text, said) for text, said in group.items()}
        for name, group in known.items()
        if isinstance(group, dict)
    }
    return Words(language, groups, translation, translation.direction or known.get("direction", "ltr"))


def offered_languages(study: Study | Collection) -> tuple[str, ...]:
    """The languages in which people can read a study; the first where a browser asks for none of them."""
    own = languages() if study.language == BROWSER else (study.language,)
    return tuple(dict.fromkeys((*own, *study.translations)))


def language_notes(study: Study | Collection) -> list[str]:
    """What the owner should know about the languages of a study: what is not translated into which."""
    texts = {name: getattr(study, name) for name in ("title", "instructions", "consent")}
    training = study.training if isinstance(study, Study) else None
    hints = [e.feedback for k in training.items for e in k.expected if e.feedback] if training else []
    notes = []
    known = {text for group in _catalogue(ENGLISH).values() if isinstance(group, dict) for text in group}
    for language in offered_languages(study):
        translation = study.translations.get(language, NONE)
        words_of(language, translation)
        if translation.words:
            strange = [text for text in translation.words if text not in known]
            notes += [f"{language}: no page says {text!r}" for text in strange]
            n_missing = 0 if language in languages() else len(known - set(translation.words))
            if n_missing:
                notes.append(f"{language}: texts of the pages that are said in English: {n_missing:,}")
        if language in study.translations and language != study.language:
            lacking = untranslated(translation, texts, study.questions, study.survey, hints)
            notes += [f"{language}: not translated: {', '.join(lacking)}"] if lacking else []
    return notes


def choose_language(accepted: str, offered: Sequence[str]) -> str:
    """Which of the offered languages a browser wants most (RFC 9110, 12.5.4); the first if it wants none.

    `de-AT` is served by `de`. What the browser refuses (`q=0`) is not chosen.
    """
    wishes: list[tuple[float, str]] = []
    for part in accepted[:1000].split(","):
        tag, _, quality = part.partition(";")
        number = re.fullmatch(r"\s*q\s*=\s*(0(\.\d{0,3})?|1(\.0{0,3})?)\s*", quality)
        if tag.strip():
            wishes.append((float(number[1]) if number else 1.0, tag.strip().casefold()))
    by_tag = {name.casefold(): name for name in offered}
    for weight, tag in sorted(wishes, key=lambda wish: -wish[0]):
        if weight <= 0:
            break
        if tag == "*":
            return offered[0]
        parts = tag.split("-")
        for length in range(len(parts), 0, -1):
            name = by_tag.get("-".join(parts[:length]))
            if name is not None:
                return name
    return offered[0]
