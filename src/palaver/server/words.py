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
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Any

from markupsafe import Markup, escape

from palaver.errors import Sentence, UserError, nearest
from palaver.schema import Study

ENGLISH = "en"
BROWSER = "browser"
"""As a study's language: the one that the rater's browser asks for."""
_FOLDER = files("palaver.server") / "languages"


class Words:
    """The words of one language: a function from the English text to what is shown."""

    def __init__(self, language: str, catalogue: Mapping[str, Any]) -> None:
        self.language = language
        self.name: str = catalogue["name"]
        """What the language calls itself."""
        self.direction: str = catalogue.get("direction", "ltr")
        self.groups: dict[str, dict[str, str]] = {k: v for k, v in catalogue.items() if isinstance(v, dict)}
        self._texts = {key: text for group in self.groups.values() for key, text in group.items()}

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


@cache
def words_of(language: str) -> Words:
    """The words of a language that has a catalogue."""
    if language not in languages():
        known = ", ".join((*languages(), BROWSER))
        raise UserError(
            f"language: there is no catalogue {language!r}{nearest(language, (*languages(), BROWSER))}",
            f"known: {known}",
        )
    text = (_FOLDER / f"{language}.toml").read_text(encoding="utf-8")
    return Words(language, tomllib.loads(text))


def offered_languages(study: Study) -> tuple[str, ...]:
    """The languages in which raters can read a study; the first where a browser asks for none of them."""
    return languages() if study.language == BROWSER else (study.language,)


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
