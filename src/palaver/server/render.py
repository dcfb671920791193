"""What a page shows, worked out before the template sees it. Outputs are known by their place alone.

Nothing that names a system leaves this module in a blind study: not as a label, a field's name or a speaker.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from palaver.schema import Dialogue, Item, Output, Pairwise, Question, RankMagnitude, Study
from palaver.schema.scale import Binary, Checkboxes, Likert, Magnitude, Ordinal
from palaver.server.service import Task

_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_PAIR = r"[^\[\],]+\[[^\]]*\]"
_MEANING = re.compile(rf"\s*{_PAIR}(\s*,\s*{_PAIR})*\s*")
_LONG = 500
"""Characters from which a text may need to scroll."""


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A style sheet or script, read once."""

    content: bytes
    media_type: str
    version: str


def static_files() -> dict[str, StaticFile]:
    """Everything under `static/` by name: what is not in here is not served."""
    found = {}
    for entry in (files("palaver.server") / "static").iterdir():
        suffix = "." + entry.name.rpartition(".")[2]
        if suffix in _TYPES:
            content = entry.read_bytes()
            found[entry.name] = StaticFile(content, _TYPES[suffix], hashlib.sha256(content).hexdigest()[:12])
    return found


def environment(root_path: str, static: dict[str, StaticFile]) -> Environment:
    """The templates. `url("/study")` and `asset("palaver.css")` respect the root path."""
    jinja = Environment(
        loader=PackageLoader("palaver.server"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )

    def asset(name: str) -> str:
        return f"{root_path}/static/{name}?v={static[name].version}"

    jinja.globals["url"] = lambda path: f"{root_path}{path}"
    jinja.globals["asset"] = asset
    return jinja


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
class Choice:
    value: str
    label: str
    key: str
    """The digit that chooses it."""
    chosen: bool
    alone: bool = False
    caption: str = ""
    """What the end of a scale means, where only the ends have words."""


@dataclass(frozen=True, slots=True)
class Widget:
    """One question about one place of the page."""

    kind: str
    """steps, words, boxes, number or pair."""
    name: str
    criterion: str
    position: int
    text: str
    help: str
    about: str
    """Which output, for those who cannot see where the widget stands."""
    required: bool
    choices: tuple[Choice, ...] = ()
    ends: tuple[str, str] | None = None
    value: str = ""
    pattern: str = ""
    mode: str = ""
    expected: str = ""
    standard: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """An output with the questions about it."""

    label: str
    box: Box
    widgets: tuple[Widget, ...]


@dataclass(frozen=True, slots=True)
class Rate:
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
    outputs: tuple[Shown, ...]
    shared: tuple[Widget, ...]
    asked: tuple[Question, ...]
    """Questions that are put once for all outputs of the page."""


def rate(study: Study, task: Task) -> Rate:
    """The page for a screen in a rater's hands."""
    questions = task.questions
    everything = range(len(task.order))
    # If nothing is required, the first answer ends the screen, so everything must be on one page.
    together = task.side_by_side or not any(q.required for q in questions)
    places = everything if together else [_next_position(task)]
    per_output = [q for q in questions if not isinstance(q.scale, Pairwise)]
    pair = len(per_output) < len(questions)
    labels = _labels(study, task)
    shown = []
    for place in places:
        output = task.item.outputs[task.order[place]]
        label = labels[place] if together and len(labels) > 1 else _noun(task.item, output)
        widgets = tuple(_widget(q, task, place, label, labels) for q in per_output)
        shown.append(Shown(label, _output_box(study, output, label), widgets))
    shared = tuple(_widget(q, task, 0, "", labels) for q in questions if isinstance(q.scale, Pairwise))
    return Rate(
        assignment=task.assignment,
        layout="pair" if pair else "cards" if together else "single",
        training=task.kind == "training",
        done=task.done,
        total=task.total,
        part=None if together or len(everything) < 2 else (places[0] + 1, len(everything)),
        position=places[0],
        material=tuple(_material(study, task.item, questions)),
        outputs=tuple(shown),
        shared=shared,
        asked=tuple(per_output) if together and len(per_output) == 1 else (),
    )


def _next_position(task: Task) -> int:
    required = [q.criterion for q in task.questions if q.required]
    for position in range(len(task.order)):
        if any((criterion, position) not in task.answered for criterion in required):
            return position
    return 0


def _noun(item: Item, output: Output) -> str:
    if output.dialogue is not None:
        return "Conversation"
    return "Reply" if isinstance(item.context, Dialogue) else "Text"


def _labels(study: Study, task: Task) -> list[str]:
    outputs = [task.item.outputs[o] for o in task.order]
    if not study.blind:
        return [output.system for output in outputs]
    return [f"{_noun(task.item, output)} {place}" for place, output in enumerate(outputs, 1)]


def _material(study: Study, item: Item, questions: Sequence[Question]) -> list[Box]:
    """What is shown besides the outputs: whatever one of the questions on this page wants shown."""
    wanted = {part for q in questions for part in q.shows}
    boxes = []
    if item.context is not None and "context" in wanted:
        boxes.append(
            _dialogue_box(study, item.context, "Conversation so far")
            if isinstance(item.context, Dialogue)
            else _text_box(item.context)
        )
    if item.knowledge and "knowledge" in wanted:
        boxes.append(Box("Background", item.knowledge))
    if item.reference and "reference" in wanted:
        scale = next((q.scale for q in questions if isinstance(q.scale, Magnitude)), None)
        title = "Reference"
        if scale is not None:
            title = f"{_standard(scale)}: worth {scale.reference:g}"
        boxes.append(Box(title, item.reference))
    return boxes


def _standard(scale: Magnitude) -> str:
    return "Standard" if isinstance(scale, RankMagnitude) else "Reference"


def _text_box(text: str) -> Box:
    """A context in words; a meaning representation (`name[Almond Court], type[café]`) becomes a table."""
    if not _MEANING.fullmatch(text):
        return Box("Context", text)
    rows = [tuple(part.strip() for part in slot[:-1].split("[", 1)) for slot in re.findall(_PAIR, text)]
    return Box("Table", rows=tuple((r[0], r[1]) for r in rows))


def _dialogue_box(study: Study, dialogue: Dialogue, title: str, *, judged: bool = False) -> Box:
    side = {name: "ab"[place % 2] for place, name in enumerate(dialogue.speakers)}
    # A log may name its speaker after the system that spoke.
    hidden = set(study.systems) if study.blind else set()
    bubbles = tuple(
        Bubble(side[turn.speaker], "System" if turn.speaker in hidden else turn.speaker, turn.text)
        for turn in dialogue.turns
    )
    return Box(title, bubbles=bubbles, judged=judged)


def _output_box(study: Study, output: Output, title: str) -> Box:
    if output.dialogue is not None:
        return _dialogue_box(study, output.dialogue, title, judged=True)
    return Box(title, output.text or "", judged=True)


# --- one widget for every scale -----------------------------------------------------------------------------


def _widget(question: Question, task: Task, position: int, about: str, labels: Sequence[str]) -> Widget:
    given = task.answered.get((question.criterion, position), "")
    scale = question.scale
    # The page of an answer is found by place and criterion; the place comes first because it has no colon.
    make = _Maker(f"answer:{position}:{question.criterion}", question, position, about)
    if isinstance(scale, Likert | Ordinal):
        return _steps(make, scale, given)
    if isinstance(scale, Binary):
        words = [(str(v), scale.labels[v], str(v)) for v in (1, 0)]
        return make("words", choices=_choices(words, given))
    if isinstance(scale, Checkboxes):
        return _boxes(make, scale, given)
    if isinstance(scale, Pairwise):
        return _pair(make, scale, given, task, labels)
    return _number(make, scale, given)


class _Maker:
    """A widget's constructor with what is the same for all scales filled in."""

    def __init__(self, name: str, question: Question, position: int, about: str) -> None:
        self._make: Callable[..., Widget] = lambda kind, **rest: Widget(
            kind=kind,
            name=name,
            criterion=question.criterion,
            position=position,
            text=question.text,
            help=question.help,
            about=about,
            required=question.required,
            **rest,
        )

    def __call__(self, kind: str, **rest: object) -> Widget:
        return self._make(kind, **rest)


def _choices(options: Sequence[tuple[str, str, str]], given: str) -> tuple[Choice, ...]:
    return tuple(Choice(value, label, key, value == given) for value, label, key in options)


def _steps(make: _Maker, scale: Likert | Ordinal, given: str) -> Widget:
    values = range(scale.low, scale.high + 1)
    keyed = scale.low >= 0 and scale.high <= 9
    keys = [str(v) if keyed else "" for v in values]
    if len(scale.labels) == len(values):
        options = [(str(v), label, k) for v, label, k in zip(values, scale.labels, keys, strict=True)]
        return make("words", choices=_choices(options, given))
    numbers = [(str(v), str(v), k) for v, k in zip(values, keys, strict=True)]
    choices = list(_choices(numbers, given))
    ends = (scale.labels[0], scale.labels[-1]) if scale.labels else None
    if ends:
        for place, caption in ((0, ends[0]), (-1, ends[1])):
            c = choices[place]
            choices[place] = Choice(c.value, c.label, c.key, c.chosen, caption=caption)
    return make("steps", choices=tuple(choices), ends=ends)


def _boxes(make: _Maker, scale: Checkboxes, given: str) -> Widget:
    ticked = set(given.split("|"))
    choices = tuple(
        Choice(o, o, str(n) if n <= 9 else "", o in ticked, o in scale.exclusive)
        for n, o in enumerate(scale.options, 1)
    )
    return make("boxes", choices=choices)


def _pair(make: _Maker, scale: Pairwise, given: str, task: Task, labels: Sequence[str]) -> Widget:
    """The stored value is about the item's first output; the page asks for a place."""
    first = task.order.index(0)
    place = {"win": str(first), "loss": str(1 - first), "tie": "tie"}.get(given, "")
    options = [("0", labels[0], "1"), ("1", labels[1], "2")]
    if scale.ties:
        options.append(("tie", scale.tie_label, "3"))
    return make("pair", choices=_choices(options, place))


def _number(make: _Maker, scale: Magnitude, given: str) -> Widget:
    digits = scale.max_digits
    whole = rf"\s*0*[1-9][0-9]{{0,{digits - 1}}}\s*"
    real = rf"\s*(?=.*[1-9])[0-9]{{0,{digits}}}([.,][0-9]+)?\s*"
    return make(
        "number",
        value=given,
        pattern=whole if scale.whole_numbers else real,
        mode="numeric" if scale.whole_numbers else "decimal",
        expected=scale.describe(),
        standard=f"{scale.reference:g} = as good as the {_standard(scale).lower()}",
    )
