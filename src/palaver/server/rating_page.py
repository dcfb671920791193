"""What a rating page shows, worked out before the template sees it. Outputs are known by their place alone.

Nothing that names a system leaves this module in a blind study: not as a label, a field's name or a speaker.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from palaver.schema import Dialogue, Item, Output, Question, Study
from palaver.schema.scale import Choice, Scale
from palaver.server.study_state import Task
from palaver.server.words import ENGLISH, Words, words_of
from palaver.studies.screens import side_by_side

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


@dataclass(frozen=True, slots=True)
class Box:
    """Something to read: a text, a table of slots, or a conversation."""

    title: str
    text: str = ""
    rows: tuple[tuple[str, str], ...] = ()
    bubbles: tuple[Bubble, ...] = ()
    judged: bool = False

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

    @property
    def kind(self) -> str:
        return self.question.scale.widget

    @property
    def name(self) -> str:
        """An answer is told by place and criterion; the place comes first because it has no colon."""
        return f"answer:{self.position}:{self.question.criterion}"

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
        return sorted({w.kind for w in (*widgets, *self.shared)})


def rating_page(
    study: Study, task: Task, at: int | None = None, *, together: bool = False, t: Words | None = None
) -> RatingPage:
    """The page for a screen in a rater's hands; with `at`, the page of that output, to be corrected.

    `together`: all outputs on one page, however they were rated.
    """
    t = t or words_of(ENGLISH)
    questions = task.questions
    everything = range(len(task.order))
    # If nothing is required, the first answer ends the screen, so everything must be on one page.
    together = together or side_by_side(questions) or not any(q.required for q in questions)
    places = everything if together else [_next_position(task) if at is None else at]
    per_output = [q for q in questions if q.scale.form != "pair"]
    comparisons = [q for q in questions if q.scale.form == "pair"]
    labels = _labels(study, task, t)
    views = []
    for place in places:
        output = task.item.outputs[task.order[place]]
        label = labels[place] if together and len(labels) > 1 else _noun(task.item, output, t)
        widgets = tuple(_widget(q, task, place, label, labels, t) for q in per_output)
        views.append(OutputView(_output_box(study, output, label, t), widgets))
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
    required = [q.criterion for q in task.questions if q.required]
    for position in range(len(task.order)):
        if any((criterion, position) not in task.answered for criterion in required):
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


def _widget(
    question: Question, task: Task, position: int, about: str, labels: Sequence[str], t: Words
) -> Widget:
    answered = task.answered.get((question.criterion, position), "")
    value = question.scale.show_answer(answered, task.order)
    return Widget(question, position, about, choices_in(t, question.scale, labels), value)


def choices_in(t: Words, scale: Scale, outputs: Sequence[str] = ()) -> tuple[Choice, ...]:
    """What a scale offers, with the words that it has by default in the language of the page."""
    by_default = {
        scale_text for name in ("labels", "options", "tie_label") for scale_text in _defaults(scale, name)
    }
    return tuple(
        replace(choice, label=t(choice.label)) if choice.label in by_default else choice
        for choice in scale.choices(outputs)
    )


def _defaults(scale: Scale, name: str) -> tuple[str, ...]:
    """The texts of a field that the owner has left as it is."""
    field = type(scale).model_fields.get(name)
    if field is None or getattr(scale, name) != field.default:
        return ()
    return (field.default,) if isinstance(field.default, str) else tuple(field.default)
