"""The design of a human study as one value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal

from pydantic import Field, model_validator

from palaver.errors import UserError, count_of, nearest
from palaver.schema.base import Name, Noun, Text
from palaver.schema.condition import condition_problems
from palaver.schema.delivery import Checks, Completion, KnownItem, StopJudge, SurveyQuestion, Training
from palaver.schema.dialogue import Dialogue
from palaver.schema.item import Item, Question
from palaver.schema.media import Media
from palaver.schema.scale.order import MOST_OUTPUTS
from palaver.schema.translation import Translations, translation_problems
from palaver.tabular import Tabular, few

Location = tuple[str | int, ...]


class Study(Tabular, Noun):
    """A whole design. `layout = "joint"` asks all criteria of an item together (the paper's Setup 1),
    `"separate"` each in a task of its own (Setup 2)."""

    name: Name
    title: Text = ""
    instructions: Text = ""
    language: Name = "en"
    """Of this file's texts, and of the words that pages add: `"de"`. `"browser"`: the words are in the
    language that the rater's browser asks for."""
    translations: Translations = Field(default_factory=dict, validate_default=True)
    """The texts in other languages: the rater's browser chooses among them."""
    layout: Literal["joint", "separate"] = "separate"
    raters_per_item: int = Field(default=3, ge=1, strict=True)
    seed: int = Field(default=0, strict=True)
    order: Literal["counterbalanced", "random", "fixed"] = "counterbalanced"
    blind: bool = Field(default=True, strict=True)
    assignment: Literal["balanced", "active"] = "balanced"
    """`"active"`: in a pairwise study, hand out the comparison that teaches most about the order."""
    stop: Literal["when-full", "when-sure"] = "when-full"
    """`"when-sure"`: no more screens are handed out once every two systems are decided."""
    stop_criterion: Text | None = None
    """The question that decides; the first with numbers or pairs if not given."""
    equivalent_within: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Systems that differ by less count as equivalent, which is a decision, too."""
    stop_judge: StopJudge | None = None
    """A judge whose scores help to be sure earlier."""
    items_per_rater: int | None = Field(default=None, ge=1, strict=True)
    lease_minutes: float = Field(default=30, gt=0)
    """How long a screen stays reserved for somebody who does not answer."""
    wait_minutes: float = Field(default=5, ge=0)
    """How long somebody waits, at most, while others hold all screens that are left."""
    consent: Text = ""
    contact: Text = ""
    """Whom raters may write to: shown where they agree, leave or are turned away."""
    comments: bool = Field(default=False, strict=True)
    """Whether raters may leave a free comment on each screen."""
    markdown: bool = Field(default=False, strict=True)
    """Whether items are Markdown, too; instructions and consent always are."""
    media: Media | None = None
    """The images and sounds that Markdown may show; without it none is."""
    training: Training | None = None
    checks: Checks = Checks()
    survey: tuple[SurveyQuestion, ...] = ()
    completion: Completion = Completion()
    questions: tuple[Question, ...] = Field(min_length=1)
    items: tuple[Item, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Study:
        known: dict[Location, KnownItem] = {
            ("checks", "items", i): k for i, k in enumerate(self.checks.items)
        }
        if self.training is not None:
            known |= {("training", "items", i): k for i, k in enumerate(self.training.items)}
        problems = design_problems(
            dict(enumerate(self.questions)),
            dict(enumerate(self.items)),
            active=self.assignment == "active",
            joint=self.layout == "joint",
            degraded=self.checks.degraded,
            known=known,
        )
        translated = translation_problems(self.translations, self.questions, self.survey)
        texts = [text for _, text in (*problems, *stop_problems(self), *translated)]
        if texts:
            raise ValueError("; ".join(texts))
        return self

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems judged, in order of first appearance."""
        return tuple(dict.fromkeys(output.system for item in self.items for output in item.outputs))

    @property
    def deciding_criterion(self) -> str | None:
        """The criterion by which a study stops when it is sure; None where none has numbers or pairs."""
        if self.stop_criterion is not None:
            return self.stop_criterion
        return next((q.criterion for q in self.questions if _decides(q)), None)

    def _headline(self) -> str:
        criteria = few([question.criterion for question in self.questions])
        return f"{self.name!r}: {criteria}; {count_of(len(self.items), 'item')} of {few(self.systems)}"

    def _tables(self) -> dict[str, Any]:
        outputs = [(item, output) for item in self.items for output in item.outputs]
        return {
            "items": {
                "item": [item.id for item, _ in outputs],
                "context": [plain_text(item.context) for item, _ in outputs],
                "system": [output.system for _, output in outputs],
                "text": [plain_text(output.text or output.dialogue) for _, output in outputs],
            },
            "questions": {
                "criterion": [question.criterion for question in self.questions],
                "text": [question.text for question in self.questions],
                "scale": [question.scale.kind for question in self.questions],
            },
        }

    def question(self, criterion: str) -> Question:
        """The question that asks for `criterion`."""
        asked = {q.criterion: q for q in self.questions}
        if criterion not in asked:
            raise UserError(
                f"the study {self.name!r} does not ask for {criterion!r}{nearest(criterion, list(asked))}"
            )
        return asked[criterion]


def _decides(question: Question) -> bool:
    return question.scale.form in ("number", "pair")


def stop_problems(study: Study) -> Iterator[tuple[Location, str]]:
    """What keeps a study from stopping by itself."""
    asked = {question.criterion: question for question in study.questions}
    name = study.stop_criterion
    if name is not None and name not in asked:
        yield ("stop_criterion",), f"the study does not ask for {name!r}{nearest(name, list(asked))}"
        return
    deciding = study.deciding_criterion
    if study.stop == "when-sure" and (deciding is None or not _decides(asked[deciding])):
        yield ("stop",), "stopping when sure needs a question whose answers are numbers or pairs"
    elif study.stop == "when-sure" and len(study.systems) < 2:
        yield ("stop",), "stopping when sure compares systems: there is only one"
    elif study.stop_judge is not None and study.stop != "when-sure":
        yield ("stop_judge",), 'a judge helps a study that stops by itself: say stop = "when-sure"'
    elif study.equivalent_within is not None and deciding is not None:
        scale = asked[deciding].scale
        span = 0.5 if scale.form == "pair" else scale.bounds.high - scale.bounds.low
        if study.equivalent_within >= span:
            text = f"a margin of {study.equivalent_within:g} is as large as the scale ({span:g})"
            yield ("equivalent_within",), text


def plain_text(shown: str | Dialogue | None) -> str | None:
    """What is shown as text: of a dialogue a line for each turn."""
    if isinstance(shown, Dialogue):
        return "\n".join(f"{turn.speaker}: {turn.text}" for turn in shown.turns)
    return shown


def design_problems(
    questions: Mapping[int, Question],
    items: Mapping[int, Item],
    *,
    active: bool = False,
    joint: bool = False,
    degraded: bool = False,
    known: Mapping[Location, KnownItem] = MappingProxyType({}),
) -> Iterator[tuple[Location, str]]:
    """Every way in which sound questions and items do not fit together, with the place of each."""
    if active and not all(q.scale.form == "pair" for q in questions.values()):
        yield ("assignment",), "active assignment chooses comparisons: every question must be pairwise"
    if degraded and not any(q.scale.form == "number" for q in questions.values()):
        yield ("checks", "degraded"), "degraded outputs need a question whose answer is a number"
    yield from _known_problems(questions, known)
    yield from condition_problems(questions, joint=joint)
    seen: dict[str, int] = {}
    for q, question in questions.items():
        if question.criterion in seen:
            yield ("questions", q, "criterion"), f"criterion {question.criterion!r} is asked twice"
        seen.setdefault(question.criterion, q)
    hosts = {question.criterion for question in questions.values() if question.beside is None}
    for q, question in questions.items():
        if question.beside is not None and question.beside not in hosts:
            others = ", ".join(sorted(hosts)) or "none"
            text = f"expected a criterion that stands alone ({others}), found {question.beside!r}"
            yield ("questions", q, "beside"), text
    ids: set[str] = set()
    for i, item in items.items():
        if item.id in ids:
            yield ("items", i, "id"), f"item id {item.id!r} is used twice"
        ids.add(item.id)
        systems = [output.system for output in item.outputs]
        if len(set(systems)) != len(systems):
            yield ("items", i, "outputs"), f"item {item.id!r} has two outputs of one system: {systems}"
        for question in questions.values():
            if question.scale.form == "pair" and len(systems) != 2:
                text = f"item {item.id!r} has {len(systems)} outputs, but {question.criterion!r} compares 2"
                yield ("items", i, "outputs"), text
            elif question.scale.side_by_side and len(systems) < question.scale.fewest_outputs:
                n = "one output" if len(systems) == 1 else f"{len(systems)} outputs"
                several = "several" if question.scale.fewest_outputs == 2 else question.scale.fewest_outputs
                text = f"item {item.id!r} has {n}, but {question.criterion!r} ranks {several} on a screen"
                yield ("items", i, "outputs"), text
            elif question.scale.relative and len(systems) > MOST_OUTPUTS:
                text = (
                    f"item {item.id!r} has {len(systems)} outputs; at most {MOST_OUTPUTS} can be put in order"
                )
                yield ("items", i, "outputs"), text
            elif question.per == "turn" and not all(output.dialogue for output in item.outputs):
                text = (
                    f"item {item.id!r} has a text, but {question.criterion!r} is about the turns of dialogues"
                )
                yield ("items", i, "outputs"), text


def _known_problems(
    questions: Mapping[int, Question], known: Mapping[Location, KnownItem]
) -> Iterator[tuple[Location, str]]:
    """Known items must be answerable, and what is expected of them must be asked."""
    criteria = {q.criterion: q for q in questions.values()}
    seen: dict[str, KnownItem] = {}
    for place, k in known.items():
        if seen.setdefault(k.item.id, k) != k:
            yield (*place, "item", "id"), f"another known item has the id {k.item.id!r}"
        systems = [output.system for output in k.item.outputs]
        for e, expected in enumerate(k.expected):
            where = (*place, "expected", e)
            if expected.criterion not in criteria:
                close = nearest(expected.criterion, list(criteria))
                yield (*where, "criterion"), f"the study does not ask for {expected.criterion!r}{close}"
            elif criteria[expected.criterion].scale.form == "pair" and len(systems) != 2:
                text = f"has {len(systems)} outputs, but {expected.criterion!r} compares 2"
                yield (*place, "item"), text
            elif (criteria[expected.criterion].per == "turn") != (expected.turn is not None):
                about = "each turn: say which turn" if expected.turn is None else "the output as a whole"
                yield where, f"{expected.criterion!r} is asked about {about}"
            if expected.system not in systems:
                close = nearest(expected.system, systems)
                yield (*where, "system"), f"the item has no output of {expected.system!r}{close}"
