"""What a rating page shows, worked out before the template sees it. Outputs are known by their place alone.

Nothing that names a system leaves this module in a blind study: not as a label, a field's name or a speaker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from palaver.schema import Dialogue, Item, Output, Question, Study
from palaver.schema.scale import Choice
from palaver.server.study_state import Task
from palaver.server.words import ENGLISH, Words, words_of
from palaver.studies.conditions import is_asked
from palaver.studies.screens import side_by_side
from palaver.studies.turns import judged_turns

_PAIR = r"[^\[\],]+\[[^\]]*\]"
_MEANING = re.compile(rf"\s*{_PAIR}(\s*,\s*{_PAIR})*\s*")
_LONG = 500
"""Characters from which a text may need to scroll."""


# --- the parts of a page ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bubble:
    side: str
    speaker: str
    text: str
    widgets: tuple[Widget, ...] = ()
    """The questions about this turn."""


@dataclass(frozen=True, slots=True)
class Box:
    """Something to read: a text, a table of slots, or a conversation."""

    title: str
    text: str = ""
    rows: tuple[tuple[str, str], ...] = ()
    bubbles: tuple[Bubble, ...] = ()
    judged: bool = False

    @property
    def is_asked_about(self) -> bool:
        """Whether questions stand beside its turns."""
        return any(bubble.widgets for bubble in self.bubbles)

    @property
    def long(self) -> bool:
        return len(self.text) > _LONG or len(self.bubbles) > 3


@dataclass(frozen=True, slots=True)
class Widget:
    """One question about one place of the page. The macro called `kind` draws it."""

    question: Question
    position: int
    about: str
    """Which output, for those who cannot see where the widget stands."""
    choices: tuple[Choice, ...]
    value: str
    """What was answered before, as the page sends it; empty if nothing was."""
    turn: int | None = None
    condition: Mapping[str, object] | None = None
    """When it is shown, for the script of the page."""

    @property
    def is_required(self) -> bool:
        """Whether the page must have an answer, whatever else is answered."""
        return self.question.required and self.question.shown_if is None

    @property
    def kind(self) -> str:
        return self.question.scale.widget

    @property
    def attributes(self) -> dict[str, object]:
        """What the scripts of the page read."""
        rule = None if self.condition is None else json.dumps(self.condition)
        names = {"criterion": self.question.criterion, "position": self.position, "turn": self.turn}
        return {f"data-{name}": value for name, value in names.items()} | {"data-shown-if": rule}

    @property
    def name(self) -> str:
        """An answer is told by place, turn and criterion, which comes last as it may have a colon."""
        place = self.position if self.turn is None else f"{self.position}.{self.turn}"
        return f"answer:{place}:{self.question.criterion}"

    @property
    def chosen(self) -> list[str]:
        return self.value.split("|")


@dataclass(frozen=True, slots=True)
class OutputView:
    """An output with the questions about it."""

    box: Box
    widgets: tuple[Widget, ...]


@dataclass(frozen=True, slots=True)
class RatingPage:
    """A rating page. `layout`: one output at a time (single), all as cards, or two side by side (pair)."""

    assignment: int
    layout: str
    training: bool
    done: int
    total: int
    part: tuple[int, int] | None
    """Which output of how many, where they come one after the other."""
    position: int
    material: tuple[Box, ...]
    outputs: tuple[OutputView, ...]
    shared: tuple[Widget, ...]
    asked: tuple[Question, ...]
    """Questions that are put once for all outputs of the page."""
    attempt: int = 0
    """Which attempt at the training this is, from 1."""
    is_correction: bool = False
    """Whether it was answered before and comes back to be corrected."""

    @property
    def can_go_back(self) -> bool:
        return not self.training and not self.is_correction and (self.done > 0 or self.position > 0)

    @property
    def kinds(self) -> list[str]:
        """The kinds of its widgets."""
        widgets = [w for output in self.outputs for w in output.widgets]
        widgets += [w for output in self.outputs for bubble in output.box.bubbles for w in bubble.widgets]
        return sorted({w.kind for w in (*widgets, *self.shared)})


def rating_page(
    study: Study, task: Task, at: int | None = None, *, together: bool = False, t: Words | None = None
) -> RatingPage:
    """The page for a screen in a rater's hands; with `at`, the page of that output, to be corrected.

    `together`: all outputs on one page, however they were rated.
    """
    t = t or words_of(ENGLISH)
    questions = tuple(t.question(question) for question in task.questions)
    everything = range(len(task.order))
    # If nothing is required, the first answer ends the screen, so everything must be on one page.
    always_required = [q for q in questions if q.required and q.shown_if is None]
    together = together or side_by_side(questions) or not always_required
    places = everything if together else [_next_position(task) if at is None else at]
    per_output = [q for q in questions if q.scale.form != "pair" and q.per == "output"]
    comparisons = [q for q in questions if q.scale.form == "pair"]
    labels = _labels(study, task, t)
    views = []
    for place in places:
        output = task.item.outputs[task.order[place]]
        label = labels[place] if together and len(labels) > 1 else _noun(task.item, output, t)
        widgets = tuple(_widget(q, task, place, label, labels, t) for q in per_output)
        box = _with_turns(_output_box(study, output, label, t), output, task, place, t)
        views.append(OutputView(box, widgets))
    return RatingPage(
        assignment=task.assignment,
        layout="pair" if comparisons else "cards" if together else "single",
        training=task.kind == "training",
        done=task.done,
        total=task.total,
        part=None if together or len(everything) < 2 else (places[0] + 1, len(everything)),
        position=places[0],
        material=tuple(_material(study, task.item, questions, t)),
        outputs=tuple(views),
        shared=tuple(_widget(q, task, 0, "", labels, t) for q in comparisons),
        asked=tuple(per_output) if together and len(per_output) == 1 else (),
        attempt=task.attempt,
        is_correction=at is not None,
    )


def _next_position(task: Task) -> int:
    values = {(c, str(position), turn): value for (c, position, turn), value in task.answered.items()}
    for position, output in enumerate(task.order):
        for question in (q for q in task.questions if q.required):
            for turn in judged_turns(question, task.item.outputs[output]):
                if (question.criterion, position, turn) not in task.answered and is_asked(
                    question, str(position), turn, values, task.questions
                ):
                    return position
    return 0


def _noun(item: Item, output: Output, t: Words) -> str:
    if output.dialogue is not None:
        return t("Conversation")
    return t("Reply") if isinstance(item.context, Dialogue) else t("Text")


def _labels(study: Study, task: Task, t: Words) -> list[str]:
    outputs = [task.item.outputs[o] for o in task.order]
    if not study.blind:
        return [output.system for output in outputs]
    return [f"{_noun(task.item, output, t)} {place}" for place, output in enumerate(outputs, 1)]


def _material(study: Study, item: Item, questions: Sequence[Question], t: Words) -> list[Box]:
    """What is shown besides the outputs: whatever one of the questions on this page wants shown."""
    wanted = {part for q in questions for part in q.shows}
    boxes = []
    if item.context is not None and "context" in wanted:
        boxes.append(
            _dialogue_box(study, item.context, t("Conversation so far"), t)
            if isinstance(item.context, Dialogue)
            else _text_box(item.context, t)
        )
    if item.knowledge and "knowledge" in wanted:
        boxes.append(Box(t("Background"), item.knowledge))
    if item.reference and "reference" in wanted:
        standards = [q.scale.standard for q in questions if q.scale.standard]
        boxes.append(Box(t(standards[0]) if standards else t("Reference"), item.reference))
    return boxes


def _text_box(text: str, t: Words) -> Box:
    """A context in words; a meaning representation (`name[Almond Court], type[café]`) becomes a table."""
    if not _MEANING.fullmatch(text):
        return Box(t("Context"), text)
    rows = [tuple(part.strip() for part in slot[:-1].split("[", 1)) for slot in re.findall(_PAIR, text)]
    return Box(t("Table"), rows=tuple((r[0], r[1]) for r in rows))


def _dialogue_box(study: Study, dialogue: Dialogue, title: str, t: Words, *, judged: bool = False) -> Box:
    side = {name: "ab"[place % 2] for place, name in enumerate(dialogue.speakers)}
    # A log may name its speaker after the system that spoke.
    hidden = set(study.systems) if study.blind else set()
    bubbles = tuple(
        Bubble(
            side[turn.speaker], t("System") if turn.speaker in hidden else turn.speaker, _said(turn.text, t)
        )
        for turn in dialogue.turns
    )
    return Box(title, bubbles=bubbles, judged=judged)


def _output_box(study: Study, output: Output, title: str, t: Words) -> Box:
    if output.dialogue is not None:
        return _dialogue_box(study, output.dialogue, title, t, judged=True)
    return Box(title, _said(output.text or "", t), judged=True)


def _said(text: str, t: Words) -> str:
    """A silent system is judged as well, so its silence must show."""
    return text if text.strip() else t("(says nothing)")


def _with_turns(box: Box, output: Output, task: Task, position: int, t: Words) -> Box:
    """The dialogue with the questions about its turns beside them."""
    asked = {t.question(q): set(judged_turns(q, output)) for q in task.questions if q.per == "turn"}
    if not asked:
        return box
    bubbles = []
    for number, bubble in enumerate(box.bubbles):
        about = f"{box.title}, {number + 1}, {bubble.speaker}"
        widgets = (_widget(q, task, position, about, (), t, number) for q in asked if number in asked[q])
        bubbles.append(replace(bubble, widgets=tuple(widgets)))
    return replace(box, bubbles=tuple(bubbles))


def _widget(
    question: Question,
    task: Task,
    position: int,
    about: str,
    labels: Sequence[str],
    t: Words,
    turn: int | None = None,
) -> Widget:
    answered = task.answered.get((question.criterion, position, turn), "")
    value = question.scale.show_answer(answered, task.order)
    choices, condition = t.choices(question, labels), _condition(question, task.questions)
    return Widget(question, position, about, choices, value, turn, condition)


def _condition(question: Question, questions: Sequence[Question]) -> dict[str, object] | None:
    """The condition as the page's script reads it."""
    rule = question.shown_if
    if rule is None:
        return None
    host = next(q for q in questions if q.criterion == rule.criterion)
    if rule.wanted:
        return {"criterion": rule.criterion, "values": rule.values(host.scale)}
    return {"criterion": rule.criterion, "low": rule.at_least, "high": rule.at_most}
