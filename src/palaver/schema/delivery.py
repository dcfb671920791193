"""What a study served to real people needs besides its questions: training, checks, a survey, a way out."""

from __future__ import annotations

from pydantic import Field, model_validator

from palaver.schema.base import Name, Noun, Text
from palaver.schema.item import Item


class Expected(Noun):
    """What a careful rater answers: a number between `low` and `high`, or one of `values`."""

    criterion: Name
    system: Name
    turn: int | None = Field(default=None, ge=0)
    """Of a question about each turn: which one, from 0."""
    low: float | None = None
    high: float | None = None
    values: tuple[str, ...] = ()
    feedback: Text = ""
    """Shown after a wrong answer in the training."""

    @model_validator(mode="after")
    def _check(self) -> Expected:
        if not self.values and self.low is None and self.high is None:
            raise ValueError("say what is expected: low, high, or values")
        return self

    def met_by(self, value: str) -> bool:
        """Whether a stored value (as text) is what was expected."""
        if self.values:
            return value in self.values
        try:
            number = float(value)
        except ValueError:
            return False
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)


class KnownItem(Noun):
    """An item whose right answers are known: for training, or as a gold or attention check."""

    item: Item
    expected: tuple[Expected, ...] = Field(min_length=1)


class Training(Noun):
    """Items with feedback before the real ones; `pass_mark` is the share of expectations to meet."""

    items: tuple[KnownItem, ...] = Field(min_length=1)
    pass_mark: float = Field(default=0.7, ge=0, le=1)
    attempts: int = Field(default=2, ge=1)


class Checks(Noun):
    """Known items, and deliberately broken outputs, mixed in among the real ones."""

    items: tuple[KnownItem, ...] = ()
    rate: float = Field(default=0.1, gt=0, le=0.5)
    """Checks per real screen."""
    allowed_failures: int = Field(default=1, ge=0)
    degraded: bool = False
    """Show an item again with one output broken: it must be rated lower than before."""


class Verdict(Noun):
    """A judge's score of one system's output in a dialogue; of two systems: the first one's share of wins."""

    dialogue: Name
    systems: tuple[Name, ...] = Field(min_length=1, max_length=2)
    score: float = Field(allow_inf_nan=False)


class StopJudge(Noun):
    """A judge whose scores make a study sure earlier: they are corrected by people's answers.

    A study file names `file`; its scores are taken into the study when it is read.
    """

    file: Text | None = None
    judge: Text | None = None
    """Of several judges in the file the one to use."""
    criterion: Text | None = None
    """What the judge measures, where it is not called as the study's criterion."""
    verdicts: tuple[Verdict, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> StopJudge:
        if self.file is None and not self.verdicts:
            raise ValueError("say where the judge's ratings are: file")
        return self


class SurveyQuestion(Noun):
    """Asked once at the end: a choice among `options`, or free text without them."""

    name: Name
    text: Text
    options: tuple[Name, ...] = ()
    required: bool = False


class Completion(Noun):
    """How raters leave: a code they paste, or an address they are sent to (Prolific's completion URL).

    Somebody who came when nothing was left to answer gets `no_work_code` or `no_work_url`, never the others.
    """

    code: Text | None = None
    url: str | None = Field(default=None, pattern=r"^https?://")
    screen_out_code: Text | None = None
    screen_out_url: str | None = Field(default=None, pattern=r"^https?://")
    no_work_code: Text | None = None
    no_work_url: str | None = Field(default=None, pattern=r"^https?://")
