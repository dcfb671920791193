"""What a collection asks of conversations and people, and what it pays: tables of its TOML file.

`[quality.NAME]` moves the thresholds of a check (`quality.toml` has them all), `[qualification]` says who may
take part, `[pay]` and `[bonus]` what for. Of the other tables only `fewest_turns` of `[conversation]` and
`compare` of `[partners]` are looked at: they are the threshold of `turns`, unless the file has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from palaver.config import config_error, parse_toml, read_toml
from palaver.errors import explain_mistake, nearest
from palaver.schema.base import Name, Noun, Text

Amount = Annotated[Decimal, Field(ge=0, max_digits=12, decimal_places=4)]


class Check(Noun):
    """A measure with its thresholds."""

    says: Text
    bad: Literal["low", "high"]
    review: float
    reject: float | None = None
    on: bool = True

    @model_validator(mode="after")
    def _reject_is_worse(self) -> Check:
        if self.reject is not None and self._badness(self.reject) < self._badness(self.review):
            side = "below" if self.bad == "low" else "above"
            raise ValueError(f"reject ({self.reject:g}) must not be better than review; expected it {side}")
        return self

    def _badness(self, value: float) -> float:
        return value if self.bad == "high" else -value

    def is_beyond(self, value: float, threshold: float | None) -> bool:
        """Whether a value is worse than a threshold."""
        return threshold is not None and self._badness(value) > self._badness(threshold)

    def score(self, value: float) -> float:
        """1 as long as nobody needs to look, 0 from `reject` on, in between by the distance."""
        if not self.is_beyond(value, self.review):
            return 1.0
        if self.reject is None or self.reject == self.review:
            return 0.5 if self.reject is None else 0.0
        return min(1.0, max(0.0, (value - self.reject) / (self.review - self.reject)))


@cache
def default_checks() -> dict[str, Check]:
    """The checks as they are without a word from the owner."""
    text = files("palaver.collection").joinpath("quality.toml").read_text(encoding="utf-8")
    tables, _ = parse_toml(text, "quality.toml")
    return TypeAdapter(dict[str, Check]).validate_python(tables)


class Qualification(Noun):
    """What the platform must say of a participant. The paper: 1,000 approved tasks, 99 % of all."""

    approved: int = Field(default=0, ge=0)
    approval_rate: float = Field(default=0, ge=0, le=1)

    def fault(self, known: Mapping[str, object]) -> str:
        """Why somebody does not qualify; empty if they do."""
        for name, least in (("approved", self.approved), ("approval_rate", self.approval_rate)):
            value = known.get(name)
            if not least:
                continue
            if not isinstance(value, int | float) or isinstance(value, bool):
                return f"{name.replace('_', ' ')} not known"
            if value < least:
                return f"{name.replace('_', ' ')} {value:g}, fewer than {least:g}"
        return ""


class Pay(Noun):
    """What is paid; without a word from the owner, in units of one conversation."""

    currency: Name = "conversations"
    conversation: Amount = Decimal(1)
    waiting: Amount = Decimal("0.1")
    """For the stated time without a partner."""


class Bonus(Noun):
    """For conversations that the partner rates very highly. 0 is no bonus."""

    amount: Amount = Decimal(0)
    messages: float = Field(default=4.5, ge=1, le=5)
    """The partner's ratings of the messages, on average, from 1 (Poor) to 5 (Excellent)."""
    conversation: float = Field(default=5, ge=1, le=5)
    """The partner's rating of the whole."""


class Standards(Noun):
    """All of it."""

    quality: Mapping[str, Check] = Field(default_factory=default_checks)
    qualification: Qualification = Qualification()
    pay: Pay = Pay()
    bonus: Bonus = Bonus()


_FIELDS = {
    "quality": ["review", "reject", "on"],
    "qualification": list(Qualification.model_fields),
    "pay": list(Pay.model_fields),
    "bonus": list(Bonus.model_fields),
}
"""What may stand in each table."""


def read_standards(path: Path) -> Standards:
    """The standards of a collection's file; the error names every mistake with its line."""
    tables, lines = read_toml(path)
    own = {name: tables[name] for name in Standards.model_fields if name in tables}
    mistakes: list[tuple[tuple[str | int, ...], str]] = []
    defaults = default_checks()
    thresholds = own.get("quality", {})
    checks: dict[str, object] = {name: check.model_dump() for name, check in defaults.items()}
    checks["turns"] = {**defaults["turns"].model_dump(), **_turns(tables)}
    if not isinstance(thresholds, dict):
        mistakes.append((("quality",), "expected tables such as [quality.turns]"))
        thresholds = {}
    for name, table in thresholds.items():
        place: tuple[str | int, ...] = ("quality", name)
        if name not in defaults:
            mistakes.append((place, f"there is no such check{nearest(name, list(defaults))}"))
        elif not isinstance(table, dict):
            mistakes.append((place, "expected a table with review, reject or on"))
        else:
            fixed = [field for field in ("says", "bad") if field in table]
            mistakes += [((*place, field), "cannot be changed") for field in fixed]
            checks[name] = {
                **defaults[name].model_dump(),
                **(_turns(tables) if name == "turns" else {}),
                **table,
            }
    try:
        standards = Standards.model_validate({**own, "quality": checks})
    except ValidationError as error:
        for mistake in error.errors():
            known = _FIELDS.get(str(mistake["loc"][0]), [])
            mistakes.append((mistake["loc"], explain_mistake(mistake, known)))
    if mistakes:
        raise config_error(path, lines, mistakes)
    return standards


def _turns(tables: Mapping[str, object]) -> dict[str, float]:
    """The thresholds of `turns` that follow from how long a conversation has to be."""
    course = tables.get("conversation")
    fewest = course.get("fewest_turns") if isinstance(course, dict) else None
    if not isinstance(fewest, int):
        return {}
    partners = tables.get("partners")
    is_beside = isinstance(partners, dict) and partners.get("compare") == "side by side"
    least = fewest * 2 / 3 if is_beside else fewest  # the other bot's replies are another conversation's
    return {"review": least, "reject": least / 2}
