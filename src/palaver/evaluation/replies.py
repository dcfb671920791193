"""The first step of an evaluation: every system answers every context, and `responses.jsonl` is written."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from palaver.engine import Engine, Failures, Recipe, RowError, batches, map_rows
from palaver.errors import UserError
from palaver.evaluation.experiment import Experiment
from palaver.evaluation.store import Store, cell_key, owner_of
from palaver.files import write_atomically
from palaver.generation.contexts import Context, Contexts
from palaver.generation.system import chunk_size, notes, request_key, settings, takes
from palaver.readers import read_responses
from palaver.schema import Reply, Request, System

_encode = json.JSONEncoder(ensure_ascii=False).encode


class Knowledge(Protocol):
    """Chooses the sentence for each context's reply."""

    def choose_for(self, contexts: Sequence[Context]) -> list[str | None]: ...


OpenKnowledge = Callable[[Experiment, Contexts], Knowledge | None]
"""Opens what [test] says about knowledge; it needs rooms that the evaluation does not know."""


@dataclass
class SystemOutcome:
    """What became of one system's replies."""

    system: str
    n_contexts: int
    n_there: int = 0
    """Replies that were kept from before."""
    n_replies: int = 0
    n_skipped: int = 0
    """Replies that the system left out, saying why."""
    failures: Failures = field(default_factory=Failures)
    notes: Sequence[str] = ()
    """What the system has to say about its replies."""

    @property
    def error(self) -> str:
        """What went wrong, in a sentence; empty where every reply is there."""
        if not self.failures.rows:
            return ""
        missing = self.n_contexts - self.n_replies - self.n_skipped
        return f"{missing:,} of {self.n_contexts:,} replies are missing: {self.failures.last}"


@dataclass(frozen=True)
class Question:
    """One context put to one system, and the key of its reply."""

    context: Context
    request: Request
    key: bytes


def read_contexts(experiment: Experiment, data: Path | None = None) -> Contexts:
    """The test contexts of an experiment; none is read yet."""
    test = experiment.test
    return Contexts(
        experiment.contexts_source,
        split=test.split,
        every_turn=test.every_turn,
        limit=test.limit,
        root=data,
        columns=test.columns or None,
    )


def system_opener(experiment: Experiment, name: str, device: str = "auto") -> Callable[[], System]:
    """Opens one system of an experiment, wherever it is called."""
    where = None if device == "auto" else device
    defaults = {} if experiment.seed is None else {"seed": experiment.seed}
    return partial(experiment.systems[name], device=where, defaults=defaults)


def open_systems(experiment: Experiment, device: str = "auto") -> dict[str, System]:
    """All systems, opened; what is wrong with any of them is told together, before the work."""
    systems: dict[str, System] = {}
    problems, hints = [], []
    for name in experiment.systems:
        try:
            systems[name] = system_opener(experiment, name, device)()
        except UserError as error:
            problems += [f"{name}: {error.message}", *(f"{name}: {text}" for text in error.problems)]
            hints.append(error.hint)
    if problems:
        raise UserError("these systems cannot be opened:", next(filter(None, hints), ""), problems)
    return systems


class TestSet:
    """The contexts of an experiment, each once, with the knowledge that goes with it."""

    __test__ = False  # it is no test of ours

    def __init__(self, contexts: Sequence[Context], chosen: Sequence[str | None] | None) -> None:
        self.contexts = contexts
        own = [context.knowledge for context in contexts]
        self.knowledge = list(chosen) if chosen is not None else own

    def __len__(self) -> int:
        return len(self.contexts)

    def questions(self, system: System) -> Iterator[Question]:
        """Every context as this system is asked; a reply's key holds all that the reply may depend on."""
        owner = owner_of(settings(system))
        takes_knowledge = "knowledge" in takes(system)
        for context, sentence in zip(self.contexts, self.knowledge, strict=True):
            request = Request(context.dialogue, knowledge=sentence if takes_knowledge else None)
            turns = [(turn.speaker, turn.text) for turn in context.dialogue.turns]
            asked = (context.dialogue.id, turns, request.knowledge, request_key(request))
            yield Question(context, request, cell_key(owner, json.dumps(asked).encode()))


def read_test_set(contexts: Contexts, knowledge: Knowledge | None) -> TestSet:
    """All contexts, read."""
    listed = _filled(contexts) if contexts.of_responses else list(contexts)
    chosen = None
    if knowledge is not None:
        chosen = [one for batch in batches(listed, 1024) for one in knowledge.choose_for(batch)]
    return TestSet(listed, chosen)


def _filled(contexts: Contexts) -> list[Context]:
    """Contexts of responses: where the first response has no reference or knowledge, another one may."""
    references: dict[str, str | tuple[str, ...]] = {}
    knowledge: dict[str, str] = {}
    for response in read_responses(contexts.source, skip_repeats=True):
        if response.reference:
            references.setdefault(response.id, response.reference)
        if response.knowledge:
            knowledge.setdefault(response.id, response.knowledge)
    return [
        replace(
            context,
            reference=context.reference or references.get(context.id),
            knowledge=context.knowledge or knowledge.get(context.id),
        )
        for context in contexts
    ]


def ask_system(
    system: System,
    test_set: TestSet,
    store: Store,
    tell: Callable[[int, int], None],
    *,
    engine: Engine | str = "local",
    opener: Callable[[], System] | None = None,
) -> SystemOutcome:
    """Let one system answer whatever it has not answered yet; workers of an `engine` open it by `opener`."""
    outcome = SystemOutcome(system.name, len(test_set))
    owner = owner_of(settings(system))
    done = 0

    def count(replies: Iterable[Reply], n: int) -> None:
        nonlocal done
        skipped = [reply.skipped is not None for reply in replies]
        outcome.n_skipped += sum(skipped)
        outcome.n_replies += len(skipped) - sum(skipped)
        done += n
        tell(done, len(test_set))

    def unanswered() -> Iterator[list[Question]]:
        for batch in batches(test_set.questions(system), chunk_size(system)):
            replies = store.replies([question.key for question in batch])
            missing = [question for question in batch if question.key not in replies]
            outcome.n_there += len(replies)
            is_asked = missing and not outcome.failures.given_up
            count(replies.values(), len(replies) if is_asked else len(batch))
            if is_asked:
                yield missing

    asking = _Asking(Recipe.of(system, opener))
    for _, parts in map_rows(asking, unanswered(), engine=engine, wants_gpu=True):
        for questions, made in parts:
            if isinstance(made, RowError):
                outcome.failures.note(questions[0].context.id, made)
                count((), 1)
            else:
                outcome.failures.in_a_row = 0
                store.put_replies(owner, made.replies, made.notes)
                count(made.replies.values(), len(questions))
    outcome.notes = store.notes(owner)
    return outcome


@dataclass(frozen=True)
class _Answers:
    replies: dict[bytes, Reply]
    notes: tuple[str, ...]


class _Asking:
    """Asks a system, in whichever process it is."""

    def __init__(self, recipe: Recipe[System]) -> None:
        self.recipe = recipe

    def __call__(self, questions: Sequence[Question]) -> _Answers:
        system = self.recipe.model
        return _Answers(_ask(system, questions), notes(system))


def _ask(system: System, questions: Sequence[Question]) -> dict[bytes, Reply]:
    replies = system.reply([question.request for question in questions])
    if len(replies) != len(questions):
        raise UserError(f"{system.name} gave {len(replies)} replies to {len(questions)} requests")
    for reply in replies:
        if not isinstance(reply, Reply):
            raise UserError(f"{system.name} should return a Reply, returned {type(reply).__name__}")
        try:
            reply.text.encode()
        except UnicodeEncodeError:
            raise UserError(f"{system.name} returned what is no text: half of a surrogate pair") from None
    return {question.key: reply for question, reply in zip(questions, replies, strict=True)}


class ResponseFacts(NamedTuple):
    """What decides whether a judge can rate a response."""

    is_given: bool
    has_reference: bool
    has_knowledge: bool
    has_context: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRow:
    """What is known of a line of `responses.jsonl` without reading it again."""

    id: str
    system: str
    facts: ResponseFacts


def response_lines(
    systems: Mapping[str, System], test_set: TestSet, store: Store
) -> Iterator[tuple[bytes, ResponseRow]]:
    """Every reply that is there, system by system in the order of the contexts: always the same bytes."""
    for name, system in systems.items():
        place = 0
        has_reference = not is_the_reference(system, test_set, store)
        for batch in batches(test_set.questions(system), 1000):
            replies = store.replies([question.key for question in batch])
            for question in batch:
                sentence = test_set.knowledge[place]
                place += 1
                reply = replies.get(question.key)
                if reply is None:
                    continue
                context = question.context
                reference = context.reference if has_reference else None
                facts = ResponseFacts(
                    is_given=reply.skipped is None,
                    has_reference=bool(reference),
                    has_knowledge=bool(sentence),
                    has_context=bool(context.dialogue.turns),
                )
                row = ResponseRow(id=context.id, system=name, facts=facts)
                yield encode_response(name, context, reference, sentence, reply), row


def write_responses(
    systems: Mapping[str, System], test_set: TestSet, store: Store, path: Path
) -> list[ResponseRow]:
    """Write `responses.jsonl`; what is known of each of its lines."""
    rows = []
    with write_atomically(path, "wb") as file:
        for line, row in response_lines(systems, test_set, store):
            file.write(line)
            rows.append(row)
    return rows


def is_the_reference(system: System, test_set: TestSet, store: Store) -> bool:
    """Whether a system says nothing but the references: it cannot be judged against what it is."""
    n_given = 0
    for batch in batches(test_set.questions(system), 100):
        replies = store.replies([question.key for question in batch])
        for question in batch:
            reply = replies.get(question.key)
            if reply is not None and reply.skipped is None:
                n_given += 1
                if reply.text.strip() != str(question.context.reference or "").strip() or not reply.text:
                    return False
    return n_given > 0


def encode_response(
    system: str,
    context: Context,
    reference: str | tuple[str, ...] | None,
    knowledge: str | None,
    reply: Reply,
) -> bytes:
    """A line of `responses.jsonl`."""
    turns = [{"speaker": turn.speaker, "text": turn.text} for turn in context.dialogue.turns]
    line: dict[str, Any] = {"id": context.id, "system": system, "context": turns}
    if knowledge is not None:
        line["knowledge"] = knowledge
    if reference is not None:
        line["reference"] = reference
    if reply.skipped is not None:
        line |= {"response": None, "skipped": reply.skipped}
    else:
        line["response"] = reply.text
        if reply.logprob is not None and math.isfinite(reply.logprob):
            line["logprob"] = reply.logprob
    return _encode(line).encode() + b"\n"
