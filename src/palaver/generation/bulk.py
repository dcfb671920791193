"""Replies to whole files of contexts: streamed, and taken up again where a run was stopped or killed.

Rows are appended chunk by chunk, so a killed run leaves whole chunks and perhaps the beginning of one, which
is cut off and made again; the file in the end is that of a run nobody stopped. It is an artefact
(`palaver.artefacts`): a run with other settings does not go on with it. Of several workers one may be done
with a chunk before an earlier one is there: it then waits in a file beside it (`palaver.generation.spool`).
"""

from __future__ import annotations

import itertools
import json
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, cast

import polars as pl

from palaver.artefacts import digest, make_record, open_artefact
from palaver.engine import Engine, Failures, Recipe, RowError, batches, map_rows
from palaver.errors import DataError, UserError, check_list, count_of, short_repr
from palaver.generation.contexts import Condition, Context, Contexts
from palaver.generation.function import make_system
from palaver.generation.spool import Spool
from palaver.generation.system import chunk_size, notes, settings, takes
from palaver.generation.systems_file import open_system
from palaver.progress import Progress, no_progress
from palaver.schema import Dialogue, Reply, Request, Response, System, Turn
from palaver.schema.response import USER
from palaver.tabular import Tabular

Choose = Callable[[Sequence[Context]], Sequence[str | None]]
"""Knowledge sentences for the replies to contexts."""


class ResponseStream(Tabular, Iterable[Response]):
    """Responses as they come. They are kept, so it can be gone through again and shown as a table."""

    def __init__(self, system: str, responses: Iterator[Response]) -> None:
        self._system = system
        self._coming = responses
        self._kept: list[Response] = []
        self._is_whole = False

    def __iter__(self) -> Iterator[Response]:
        yield from self._kept
        for response in self._coming:
            self._kept.append(response)
            yield response
        self._is_whole = True

    def _headline(self) -> str:
        told = f"{count_of(len(self._kept), 'response')} of {self._system}"
        return told if self._is_whole else f"{told} so far"

    def _tables(self) -> dict[str, Any]:
        responses = list(self)
        contexts = [[f"{turn.speaker}: {turn.text}" for turn in r.context] for r in responses]
        return {
            "responses": {
                "id": [r.id for r in responses],
                "system": [r.system for r in responses],
                "speaker": pl.Series([r.speaker for r in responses], dtype=pl.String),
                "context": ["\n".join(turns) for turns in contexts],
                "response": pl.Series([r.response for r in responses], dtype=pl.String),
                "logprob": pl.Series([r.logprob for r in responses], dtype=pl.Float64),
            }
        }


def generate(
    system: System | str | Callable[..., Any],
    contexts: Iterable[Dialogue | str],
    *,
    speaker: str | None = None,
    device: str = "auto",
    batch_size: int = 0,
    progress: Progress = no_progress,
) -> ResponseStream:
    """What a system replies to each context, as they come.

    `system` is a name ("default" comes along), an object with `reply`, or a function from the text of the
    last turn to a text. A context is a `Dialogue`, or a text: one turn of the user, called 1, 2, 3 … in its
    response. The stream may be without end; `palaver.generation.bulk.generate_file` writes to a file.
    """
    check_list("contexts", contexts)
    if isinstance(system, str):
        system = open_system(system, device=device)
    elif not hasattr(system, "reply"):
        system = make_system(getattr(system, "__name__", type(system).__name__), system, {})
    responses = _responses(cast(System, system), contexts, speaker, batch_size, progress)
    return ResponseStream(system.name, responses)


def _responses(
    system: System,
    contexts: Iterable[Dialogue | str],
    speaker: str | None,
    batch_size: int,
    progress: Progress,
) -> Iterator[Response]:
    done = 0
    for chunk in batches(contexts, batch_size or chunk_size(system)):
        dialogues = [
            context if isinstance(context, Dialogue) else _one_turn(str(number), context)
            for number, context in enumerate(chunk, start=done + 1)
        ]
        replies = _replies(system, [Request(dialogue, speaker=speaker) for dialogue in dialogues])
        done += len(chunk)
        progress(f"replies of {system.name}", done, 0)
        for dialogue, reply in zip(dialogues, replies, strict=True):
            yield Response(
                id=dialogue.id,
                system=system.name,
                context=dialogue.turns,
                response=reply.text if reply.skipped is None else None,
                speaker=speaker,
                logprob=reply.logprob,
                labels={} if reply.skipped is None else {"skipped": reply.skipped},
            )


def _one_turn(id: str, text: object) -> Dialogue:
    if not isinstance(text, str):
        raise UserError(f"context {id}: expected a text or a Dialogue, found {short_repr(text)}")
    return Dialogue(id=id, turns=(Turn(speaker=USER, text=text),))


def _replies(system: System, requests: Sequence[Request]) -> list[Reply]:
    replies = system.reply(requests)
    if len(replies) != len(requests):
        raise DataError(f"{system.name} gave {len(replies)} replies to {len(requests)} requests")
    return replies


@dataclass(frozen=True)
class GenerationResult:
    """What a run did."""

    out: Path
    n_rows: int
    """In the file now."""
    n_new: int
    """Of these, made by this run."""
    n_contexts: int
    left_out: dict[str, int]
    """Contexts nobody could reply to, by reason."""
    skipped: dict[str, int]
    """Replies of this run that a system left out, by system."""
    failed: dict[str, int] = field(default_factory=dict)
    """Contexts of this run on which a system failed, by system; their rows say why."""
    notes: tuple[str, ...] = ()
    """What the systems have to say about their replies."""


def generate_file(
    systems: Sequence[System],
    contexts: Contexts,
    out: str | Path,
    *,
    conditions: Mapping[str, Sequence[Condition]] | None = None,
    batch_size: int = 0,
    context: Literal["all", "last"] = "all",
    knowledge: Choose | None = None,
    knowledge_signature: str | None = None,
    engine: Engine | str = "local",
    openers: Mapping[str, Callable[[], System]] | None = None,
    fresh: bool = False,
    progress: Progress = no_progress,
) -> GenerationResult:
    """Write one JSON row per system, context and condition to `out`; go on if it is there half done.

    `conditions` are by system name; `knowledge` chooses sentences for the systems that take one; `fresh`
    begins anew. Rows are those of `Response`; `context` is the whole history, or with "last" the text of the
    last turn, which keeps bulk files small. Workers of an `engine` open the systems themselves, by `openers`;
    a system without one is sent to them. A context on which a system fails has a row that says why; a system
    that fails on all, or on several in a row, ends the run.
    """
    out = Path(out)
    if not out.name.lower().endswith((".jsonl", ".ndjson")):
        raise UserError(f"cannot write responses to {str(out)!r}", "end the name in .jsonl")
    names = [system.name for system in systems]
    if len(set(names)) != len(names) or not names:
        raise UserError(f"expected systems with different names, found {', '.join(names) or 'none'}")
    who = {name: list((conditions or {}).get(name, [Condition()])) for name in names}
    survey = contexts.survey()
    asked_for = {
        "contexts": {
            "count": survey.count,
            "split": contexts.split,
            "limit": contexts.limit,
            "every_turn": contexts.every_turn,
            "written": context,
        },
        "systems": {system.name: settings(system) for system in systems},
        "conditions": {name: [[c.speaker, c.ocean] for c in who[name]] for name in names},
    }
    data = {"contexts": survey.digest}
    if knowledge_signature is not None:
        data["knowledge"] = knowledge_signature
    record = make_record("palaver generate", asked_for, data=data)
    is_begun = out.exists()
    with open_artefact(out, record, force=fresh) as file:
        spool = Spool(out, digest(dict(record.config), dict(record.data)), fresh=fresh or not is_begun)
        writer = _Writer(
            file, out, spool, total=survey.count * sum(map(len, who.values())), progress=progress
        )
        for system in systems:
            mine = who[system.name]
            size = max(1, (batch_size or chunk_size(system)) // len(mine))
            choose = knowledge if "knowledge" in takes(system) else None
            work = _Work(Recipe.of(system, (openers or {}).get(system.name)), whole=context == "all")
            try:
                chunks = (_Chunk(some, mine, choose) for some in batches(contexts, size))
                writer.write(system.name, work, chunks, Engine.of(engine))
            except UserError as error:
                if file.tell():
                    so_far = f"the rows so far are kept in {out}; the same command goes on"
                    error.hint = f"{error.hint}; {so_far}" if error.hint else so_far
                raise
        writer.finish()
        os.fsync(file.fileno())
    return GenerationResult(
        out, writer.n_rows, writer.n_new, survey.count, survey.skipped, writer.skipped, writer.failed,
        tuple(writer.notes),
    )  # fmt: skip


class _Job(NamedTuple):
    """A context that a system answers under a condition."""

    context: Context
    who: Condition
    knowledge: str | None


@dataclass(frozen=True)
class _Chunk:
    """Contexts that are answered together, under each condition."""

    contexts: Sequence[Context]
    conditions: Sequence[Condition]
    choose: Choose | None

    def __len__(self) -> int:
        return len(self.contexts) * len(self.conditions)

    def key(self, system: str) -> str:
        """What tells it from the others of a run, whatever the size of chunks was in an earlier one."""
        first, last = self.contexts[0].id, self.contexts[-1].id
        return _encode([system, first, last, len(self)])

    def jobs(self) -> list[_Job]:
        sentences: Sequence[str | None] = [None] * len(self.contexts)
        if self.choose is not None:
            sentences = self.choose(self.contexts)
        return [
            _Job(context, who, sentence)
            for context, sentence in zip(self.contexts, sentences, strict=True)
            for who in self.conditions
        ]


class _Lines(NamedTuple):
    """What a worker made of a chunk."""

    lines: list[str]
    n_skipped: int
    notes: tuple[str, ...]


class _Work:
    """Asks a system, in whichever process it is."""

    def __init__(self, recipe: Recipe[System], *, whole: bool) -> None:
        self.recipe = recipe
        self.whole = whole

    def __call__(self, jobs: Sequence[_Job]) -> _Lines:
        system = self.recipe.model
        replies = _replies(system, [job.who.request(job.context, job.knowledge) for job in jobs])
        n_skipped = sum(reply.skipped is not None for reply in replies)
        return _Lines(_rows(system.name, jobs, replies, whole=self.whole), n_skipped, notes(system))

    def error_row(self, system: str, job: _Job, error: RowError) -> str:
        """The row of a context on which the system failed."""
        [row] = _rows(system, [job], [Reply("", skipped=f"error: {error.reason}")], whole=self.whole)
        return row


class _Writer:
    """Writes chunks in their order, whenever they become ready."""

    def __init__(self, file: IO[bytes], out: Path, spool: Spool, *, total: int, progress: Progress) -> None:
        self._file = file
        self._out = out
        self._earlier = _EarlierRows(file, out)
        self._spool = spool
        self._total = total
        self._progress = progress
        self.n_rows = self.n_new = 0
        self.skipped: dict[str, int] = {}
        self.failed: dict[str, int] = {}
        self.notes: dict[str, None] = {}
        self._last_error: RowError | None = None

    def write(self, system: str, work: _Work, chunks: Iterator[_Chunk], engine: Engine) -> None:
        """All chunks of one system that are not there yet."""
        order: deque[str] = deque()
        """The chunks that are not written yet."""
        asked: dict[int, str] = {}
        numbers = itertools.count()
        failures = Failures()

        def missing() -> Iterator[list[_Job]]:
            for chunk in chunks:
                if self._earlier.hold(chunk, system):
                    self._count(system, len(chunk), is_new=False)
                    continue
                order.append(chunk.key(system))
                if order[-1] not in self._spool:
                    asked[next(numbers)] = order[-1]
                    yield chunk.jobs()

        doubtful: dict[str, bytes] = {}
        """Chunks that end in an error, and those before: if the next fail too, no error of them is kept."""

        def write_ready() -> None:
            for key, rows in doubtful.items():
                self._spool.put(key, rows, in_memory=key == order[0])
            doubtful.clear()
            while order and order[0] in self._spool:
                rows = self._spool.take(order.popleft())
                self._file.write(rows)
                self._file.flush()
                self._count(system, rows.count(b"\n"), is_new=True)

        for number, parts in map_rows(work, missing(), engine=engine, wants_gpu=True):
            rows = "".join(line for part in parts for line in self._lines(system, work, part, failures))
            failures.check()
            doubtful[asked.pop(number)] = rows.encode()
            if not failures.in_a_row:
                write_ready()
        failures.check(at_end=True)
        write_ready()
        if failures.count:
            self.failed[system] = failures.count
            self._last_error = failures.error

    def _lines(
        self, system: str, work: _Work, part: tuple[Sequence[_Job], _Lines | RowError], failures: Failures
    ) -> list[str]:
        jobs, made = part
        if isinstance(made, RowError):
            failures.note(f"{jobs[0].context.id} {jobs[0].who}", made)
            return [work.error_row(system, jobs[0], made)]
        failures.in_a_row = 0
        self.skipped[system] = self.skipped.get(system, 0) + made.n_skipped
        self.notes.update(dict.fromkeys(made.notes))
        return made.lines

    def _count(self, system: str, n: int, *, is_new: bool) -> None:
        self.n_rows += n
        self.n_new += n if is_new else 0
        self._progress(f"replies of {system}", self.n_rows, self._total)

    def finish(self) -> None:
        """Nothing may be left over."""
        if self._earlier.rest():
            raise DataError(
                f"{self._out} has more rows than this run makes", "choose another file, or use --force"
            )
        self._spool.remove()
        if self._last_error is not None and sum(self.failed.values()) == self.n_rows:
            self._file.seek(0)
            self._file.truncate()
            raise self._last_error.to_error()
        self.skipped = {name: n for name, n in self.skipped.items() if n}


_encode = json.JSONEncoder(ensure_ascii=False).encode


def _rows(system: str, jobs: Sequence[_Job], replies: Sequence[Reply], *, whole: bool) -> list[str]:
    """A line of JSON per job. It is put together from parts, for conditions of a context share most of it."""
    asked = {
        number: f'"speaker": {_encode(who.speaker)}, "ocean": {_encode(who.ocean)}'
        for number, who in {id(job.who): job.who for job in jobs}.items()
    }
    rows = []
    before: Context | None = None
    first = shared = ""
    for (context, who, sentence), reply in zip(jobs, replies, strict=True):
        if context is not before:
            before = context
            first = f'{{"id": {_encode(context.id)}, "system": {_encode(system)}'
            turns = context.dialogue.turns
            history = [{"speaker": turn.speaker, "text": turn.text} for turn in turns]
            shared = f'"context": {_encode(history if whole else turns[-1].text)}'
            if sentence is not None:
                shared += f', "knowledge": {_encode(sentence)}'
            if context.reference is not None:
                shared += f', "reference": {_encode(context.reference)}'
        finite = reply.logprob is not None and math.isfinite(reply.logprob)
        logprob = repr(float(reply.logprob)) if finite else "null"
        last = f'"response": {_encode(reply.text)}, "logprob": {logprob}'
        if reply.skipped is not None:
            last = f'"response": null, "logprob": {logprob}, "skipped": {_encode(reply.skipped)}'
        rows.append(f"{first}, {asked[id(who)]}, {shared}, {last}}}\n")
    return rows


class _EarlierRows:
    """The rows of an earlier run, gone through side by side with the work until they end."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file = file
        self._path = path
        self._going_on = True

    def hold(self, chunk: _Chunk, system: str) -> bool:
        """Whether the file goes on with the rows of this chunk; if not, it is cut off here, for good."""
        if not self._going_on:
            return False
        start = self._file.tell()
        lines = [self._file.readline() for _ in range(len(chunk))]
        last = _row(lines[-1])
        if last is None or not all(line.endswith(b"\n") for line in lines):
            self._file.seek(start)
            self._file.truncate()
            self._going_on = False
            return False
        context, condition = chunk.contexts[-1], chunk.conditions[-1]
        if (last.get("id"), last.get("system"), last.get("speaker")) != (
            context.id,
            system,
            condition.speaker,
        ):
            raise DataError(
                f"{self._path} does not hold the rows of this run: expected {context.id!r} of {system}, "
                f"found {last.get('id')!r} of {last.get('system')}",
                "choose another file, or use --force to begin anew",
            )
        return True

    def rest(self) -> int:
        """Bytes after the last row that was looked at or written."""
        place = self._file.tell()
        return self._file.seek(0, os.SEEK_END) - place


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None
