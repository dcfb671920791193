"""The methods behind the numbers in plain words, each with the work that introduced it (`methods.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from palaver.reports.wording import conventions_used
from palaver.studies.results import Analysis

_TEXTS = Path(__file__).with_name("methods.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method in plain words, with the work that introduced it."""

    title: str
    text: str
    reference: str
    link: str = ""


def methods_of(
    page: str, keys: Collection[str] | None = None, facts: Mapping[str, object] | None = None
) -> list[Method]:
    """The methods that a page explains, in the order of the file, or those of `keys` alone.

    `facts` are the numbers and names that stand in braces in the texts.
    """
    texts = tomllib.loads(_TEXTS.read_text(encoding="utf-8"))[page]
    return [
        Method(**{field: text.format_map(facts or {}) for field, text in fields.items()})
        for key, fields in texts.items()
        if keys is None or key in keys
    ]


def methods_used(analysis: Analysis) -> list[Method]:
    """The methods behind the numbers of this analysis, and no others."""
    used = {row.method for row in analysis.ranking}
    used |= {convention.measure for convention in conventions_used(analysis)}
    if analysis.correlation:
        used.add("correlation")
    if analysis.intervals:
        used.add("clusters")
    return methods_of("analysis", used)
