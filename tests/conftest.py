"""What all tests share: real data, a browser, the command line, and how hypothesis draws each noun.

The strategies are registered by type (`st.from_type(Dialogue)` draws one), because test files are no package
and cannot import from each other.
"""

from __future__ import annotations

import gc
import os
import shutil
import string
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from palaver import schema as s
from palaver.cli.main import run

ROOT = Path(__file__).parent.parent
# Ray would leave a token in the home folder, and ask for one that is there.
os.environ.setdefault("RAY_AUTH_MODE", "disabled")


def pytest_collection() -> None:
    """Almost everything that collection makes stays to the end: the garbage collector would look in vain."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Thousands of collected tests stay to the end: the garbage collector need not walk them each time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)  # what is not frozen is walked often enough so, too
    gc.enable()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real data, which is never part of the repository: `PALAVER_DATA`, or `shared/data` beside it."""
    named = os.environ.get("PALAVER_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"real data needed: {folder} is missing; say where it is with PALAVER_DATA")
    return folder


@pytest.fixture(
    scope="module"
)  # no longer: while it is open nothing else in this thread can run an event loop
def browser() -> Iterator[Any]:
    """A real Chromium."""
    playwright = pytest.importorskip("playwright.sync_api")
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no Chromium found (Debian: apt-get install chromium)")
    options = ["no-sandbox", "disable-gpu", "disable-background-networking", "disable-component-update"]
    options += ["disable-sync", "no-first-run"]
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=found, args=[f"--{name}" for name in options])
        yield made
        made.close()


NASTY = ["", " ", "\n", "\r\n", "\r", "\t", "\0", "a|b", "[", "{}", '"', '""', "'", "\\", ",", ";", "=1+1"]
NASTY += [
    "\u2028",
    "\u200f",
    "\ufeff",
    "e\u0301",
    "😀",
    "👩‍👩‍👧",
    "NaN",
    "null",
    "\x85",
    "\x1c",
    "ﬀ",
    "\uffff",
]
texts = st.one_of(
    st.sampled_from(NASTY),
    st.text(string.ascii_letters + " ", max_size=12),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
names = texts.filter(bool)
numbers = st.floats(allow_nan=False, allow_infinity=False)
labels = st.dictionaries(
    texts, st.one_of(texts, st.booleans(), st.integers(), numbers, st.none()), max_size=3
)
SYSTEMS = ("TGen", "Slug2Slug", "Sheffield", "ø|\n")


def tuples(of: st.SearchStrategy[Any], **sizes: int) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(of, **sizes).map(tuple)  # type: ignore[arg-type]


def optional(of: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | of


turns = st.builds(s.Turn, speaker=names, text=texts, knowledge=tuples(texts, max_size=3), labels=labels)
entities = st.builds(s.Entity, id=names, name=names, topic=texts)
facts = st.builds(s.Fact, id=names, text=names, entity=optional(texts), source=texts)
sections = st.builds(
    s.Section,
    entity=entities,
    lead=texts,
    lead_form=st.sampled_from(["full", "shortened", "summarised", "none"]),
    facts=tuples(facts, max_size=2),
)
articles = st.builds(s.Article, id=names, title=texts, parts=tuples(texts, max_size=2), url=texts)
reading_sets = st.builds(
    s.ReadingSet,
    id=names,
    sections=tuples(sections, max_size=2),
    article=optional(articles),
    configuration=st.sampled_from([None, "A", "B", "C", "D"]),
)


@st.composite
def dialogues(draw: st.DrawFn) -> s.Dialogue:
    said = draw(tuples(turns, max_size=4))
    speakers = {turn.speaker for turn in said} | draw(st.sets(names, max_size=1))
    order = draw(st.one_of(st.just(()), st.permutations(sorted(speakers))))
    return s.Dialogue(
        id=draw(names),
        turns=said,
        speakers=order,
        source=draw(texts),
        knowledge=draw(optional(tuples(reading_sets, max_size=2))),
        labels=draw(labels),
    )


@st.composite
def steps(draw: st.DrawFn, kind: type[Any]) -> Any:
    low = draw(st.integers(-3, 3))
    high = low + draw(st.integers(1, 9))
    count = draw(st.sampled_from([0, 2, high - low + 1]))
    return kind(low=low, high=high, labels=draw(tuples(texts, min_size=count, max_size=count)))


@st.composite
def sliders(draw: st.DrawFn) -> s.Slider:
    low, step = draw(st.integers(-100, 100)), draw(st.sampled_from([0.1, 0.25, 0.5, 1, 5]))
    high = low + step * draw(st.integers(1, 200))
    count = draw(st.sampled_from([0, 2]))
    return s.Slider(low=low, high=high, step=step, labels=draw(tuples(texts, min_size=count, max_size=count)))


@st.composite
def reals(draw: st.DrawFn) -> s.Real:
    low, width = draw(st.none() | st.floats(-1e6, 1e6)), draw(st.none() | st.floats(0.1, 1e6))
    return s.Real(low=low, high=None if width is None else (low or 0) + width)


def magnitudes(kind: type[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        kind,
        reference=st.floats(1e-300, 1e300, allow_subnormal=False),
        whole_numbers=st.booleans(),
        max_digits=st.integers(1, 15),
    )


@st.composite
def checkboxes(draw: st.DrawFn) -> s.Checkboxes:
    option = names.filter(lambda t: t == t.strip() and not set("|\n\0") & set(t))
    options = draw(st.lists(option, min_size=1, max_size=4, unique=True))
    alone = draw(st.sets(st.sampled_from(options)))
    return s.Checkboxes(options=tuple(options), exclusive=tuple(o for o in options if o in alone))


@st.composite
def choices(draw: st.DrawFn) -> s.SingleChoice:
    option = names.filter(lambda t: t == t.strip() and not set("|\n\0") & set(t))
    return s.SingleChoice(options=tuple(draw(st.lists(option, min_size=2, max_size=4, unique=True))))


@st.composite
def free_texts(draw: st.DrawFn) -> s.FreeText:
    shortest, longest = sorted(draw(st.tuples(st.integers(1, 2000), st.integers(1, 2000))))
    return s.FreeText(min_length=shortest, max_length=longest, lines=draw(st.integers(1, 40)))


KINDS: dict[type[Any], st.SearchStrategy[Any]] = {
    s.Likert: steps(s.Likert),
    s.Ordinal: steps(s.Ordinal),
    s.Binary: st.builds(s.Binary, labels=st.tuples(names, names)),
    s.Magnitude: magnitudes(s.Magnitude),
    s.RankMagnitude: magnitudes(s.RankMagnitude),
    s.Pairwise: st.builds(s.Pairwise, ties=st.booleans(), tie_label=names),
    s.Checkboxes: checkboxes(),
    s.SingleChoice: choices(),
    s.Slider: sliders(),
    s.Real: reals(),
}
scales = st.one_of(*KINDS.values())
shown = st.sets(st.sampled_from(["context", "knowledge", "reference"])).map(lambda p: (*sorted(p), "output"))


def questions(criterion: st.SearchStrategy[str] = names) -> st.SearchStrategy[s.Question]:
    return st.builds(
        s.Question,
        criterion=criterion,
        text=names,
        scale=scales,
        shows=shown,
        help=texts,
        required=st.booleans(),
    )


@st.composite
def outputs(draw: st.DrawFn, system: str | None = None) -> s.Output:
    said = draw(st.one_of(texts, dialogues()))
    kind = {"text": said} if isinstance(said, str) else {"dialogue": said}
    return s.Output(system=system or draw(names), id=draw(optional(texts)), **kind)


@st.composite
def items(draw: st.DrawFn, id: str | None = None, n_outputs: int | None = None) -> s.Item:
    count = n_outputs or draw(st.integers(1, 3))
    return s.Item(
        id=id or draw(names),
        context=draw(optional(st.one_of(texts, dialogues()))),
        knowledge=draw(optional(texts)),
        reference=draw(optional(texts)),
        outputs=tuple(draw(outputs(system)) for system in SYSTEMS[:count]),
    )


@st.composite
def studies(draw: st.DrawFn) -> s.Study:
    criteria = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    asked = [draw(questions(st.just(criterion))) for criterion in criteria]
    if len(criteria) > 1:
        asked[0] = asked[0].model_copy(update={"beside": draw(st.sampled_from([None, *criteria[1:]]))})
    two = any(isinstance(q.scale, s.Pairwise | s.RankMagnitude) for q in asked)
    ids = draw(st.lists(names, min_size=1, max_size=2, unique=True))
    return s.Study(
        name=draw(names),
        title=draw(texts),
        instructions=draw(texts),
        layout=draw(st.sampled_from(["joint", "separate"])),
        raters_per_item=draw(st.integers(1, 9)),
        seed=draw(st.integers()),
        order=draw(st.sampled_from(["counterbalanced", "random", "fixed"])),
        blind=draw(st.booleans()),
        questions=tuple(asked),
        items=tuple(draw(items(i, 2 if two else None)) for i in ids),
    )


responses = st.builds(
    s.Response,
    id=names,
    system=names,
    context=tuples(turns, max_size=3),
    response=optional(texts),
    speaker=optional(texts),
    ocean=optional(tuples(st.floats(1, 7), min_size=5, max_size=5)),
    reference=st.one_of(st.none(), texts, tuples(texts, min_size=1, max_size=2)),
    knowledge=optional(texts),
    logprob=optional(numbers),
    labels=labels,
)
zones = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
ratings = st.builds(
    s.Rating,
    study=texts,
    item=names,
    system=names,
    against=optional(texts),
    output=optional(texts),
    rater=names,
    criterion=names,
    value=st.one_of(numbers, st.integers(-1000, 1000), texts, tuples(texts, max_size=3)),
    given_at=optional(st.datetimes(timezones=st.one_of(st.none(), zones))),
    seconds=optional(st.floats(0, 1e9)),
    shown_position=optional(st.integers(0, 99)),
)
runs = st.builds(
    s.RunRecord, command=texts, config=labels, seed=optional(st.integers()), versions=labels, data=labels
)

STRATEGIES: dict[type[Any], st.SearchStrategy[Any]] = {
    **KINDS,
    s.FreeText: free_texts(),
    s.Turn: turns,
    s.Dialogue: dialogues(),
    s.Entity: entities,
    s.Fact: facts,
    s.Section: sections,
    s.Article: articles,
    s.ReadingSet: reading_sets,
    s.Question: questions(),
    s.Output: outputs(),
    s.Item: items(),
    s.Study: studies(),
    s.Response: responses,
    s.Rating: ratings,
    s.RunRecord: runs,
}
for _noun, _strategy in STRATEGIES.items():
    st.register_type_strategy(_noun, _strategy)


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


Palaver = Callable[..., Ran]


@pytest.fixture
def palaver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Palaver:
    """`palaver("study", "check", file)` as the console script runs it, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def call(*words: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["palaver", *map(str, words)])
        code = 0
        try:
            run()
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
        written = capsys.readouterr()
        assert "Traceback" not in written.err
        return Ran(code, written.out, written.err)

    return call
