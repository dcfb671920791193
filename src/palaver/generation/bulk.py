"""Replies to whole files of contexts: streamed, and taken up again where a run was stopped or killed.

Rows are appended chunk by chunk, so a killed run leaves whole chunks and perhaps the beginning of one, which
is cut off and made again; the file in the end is that of a run nobody stopped. It is an artefact
(`palaver.artefacts`): a run with other settings does not go on with it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, TypeVar, cast

import polars as pl

from palaver.artefacts import make_record, open_artefact
from palaver.errors import DataError, UserError, check_list, count_of, short_repr
from palaver.generation.contexts import Condition, Context, Contexts
from palaver.generation.function import make_system
from palaver.generation.system import chunk_size, settings, takes
from palaver.generation.systems_file import open_system
from palaver.progress import Progress, no_progress
from palaver.schema import Dialogue, Reply, Request, Response, System, Turn
from palaver.schema.response import USER
from palaver.tabular import Tabular

T = TypeVar("T")
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
    for chunk in _chunks(contexts, batch_size or chunk_size(system)):
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


def _chunks(things: Iterable[T], size: int) -> Iterator[list[T]]:
    chunk: list[T] = []
    for thing in things:
        chunk.append(thing)
        if len(chunk) >= size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


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
    fresh: bool = False,
    progress: Progress = no_progress,
) -> GenerationResult:
    """Write one JSON row per system, context and condition to `out`; go on if it is there half done.

    `conditions` are by system name; `knowledge` chooses sentences for the systems that take one; `fresh`
    begins anew. Rows are those of `Response`; `context` is the whole history, or with "last" the text of the
    last turn, which keeps bulk files small.
    """
    out = Path(out)
    if not out.name.lower().endswith((".jsonl", ".ndjson")):
        raise UserError(f"cannot write responses to {out.name!r}", "end the name in .jsonl")
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
    total = survey.count * sum(map(len, who.values()))
    n_rows = n_new = 0
    skipped: dict[str, int] = {}
    with open_artefact(out, record, force=fresh) as file:
        earlier = _EarlierRows(file, out)
        for system in systems:
            mine = who[system.name]
            size = max(1, (batch_size or chunk_size(system)) // len(mine))
            for chunk in _chunks(contexts, size):
                jobs = [(context, condition) for context in chunk for condition in mine]
                n_rows += len(jobs)
                if not earlier.hold(jobs, system.name):
                    try:
                        choose = knowledge if "knowledge" in takes(system) else None
                        rows, n_skipped = _rows(system, jobs, choose, whole=context == "all")
                    except UserError as error:
                        if file.tell():
                            so_far = f"the rows so far are kept in {out}; the same command goes on"
                            error.hint = f"{error.hint}; {so_far}" if error.hint else so_far
                        raise
                    file.write("".join(rows).encode())
                    file.flush()
                    n_new += len(jobs)
                    skipped[system.name] = skipped.get(system.name, 0) + n_skipped
                progress(f"replies of {system.name}", n_rows, total)
        if earlier.rest():
            raise DataError(f"{out} has more rows than this run makes", "choose another file, or use --force")
        os.fsync(file.fileno())
    return GenerationResult(
        out, n_rows, n_new, survey.count, survey.skipped, {name: n for name, n in skipped.items() if n}
    )


_encode = json.JSONEncoder(ensure_ascii=False).encode


def _rows(
    system: System, jobs: Sequence[tuple[Context, Condition]], knowledge: Choose | None, *, whole: bool
) -> tuple[list[str], int]:
    """A line of JSON per job, and how many of them were skipped.

    The lines are put together from parts, because all conditions of a context share most of it.
    """
    sentences: dict[int, str | None] = {}
    if knowledge is not None:
        distinct = {id(context): context for context, _ in jobs}
        sentences = dict(zip(distinct, knowledge(list(distinct.values())), strict=True))
    requests = [who.request(context, sentences.get(id(context))) for context, who in jobs]
    asked = {
        number: f'"speaker": {_encode(who.speaker)}, "ocean": {_encode(who.ocean)}'
        for number, who in {id(who): who for _, who in jobs}.items()
    }
    rows = []
    n_skipped = 0
    before: Context | None = None
    first = shared = ""
    for (context, who), reply in zip(jobs, _replies(system, requests), strict=True):
        if context is not before:
            before = context
            first = f'{{"id": {_encode(context.id)}, "system": {_encode(system.name)}'
            turns = context.dialogue.turns
            history = [{"speaker": turn.speaker, "text": turn.text} for turn in turns]
            shared = f'"context": {_encode(history if whole else turns[-1].text)}'
            sentence = sentences.get(id(context))
            if sentence is not None:
                shared += f', "knowledge": {_encode(sentence)}'
            if context.reference is not None:
                shared += f', "reference": {_encode(context.reference)}'
        finite = reply.logprob is not None and math.isfinite(reply.logprob)
        logprob = repr(float(reply.logprob)) if finite else "null"
        last = f'"response": {_encode(reply.text)}, "logprob": {logprob}'
        if reply.skipped is not None:
            n_skipped += 1
            last = f'"response": null, "logprob": {logprob}, "skipped": {_encode(reply.skipped)}'
        rows.append(f"{first}, {asked[id(who)]}, {shared}, {last}}}\n")
    return rows, n_skipped


class _EarlierRows:
    """The rows of an earlier run, gone through side by side with the work until they end."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file = file
        self._path = path
        self._going_on = True

    def hold(self, jobs: Sequence[tuple[Context, Condition]], system: str) -> bool:
        """Whether the file goes on with the rows of these jobs; if not, it is cut off here, for good."""
        if not self._going_on:
            return False
        start = self._file.tell()
        lines = [self._file.readline() for _ in jobs]
        last = _row(lines[-1])
        if last is None or not all(line.endswith(b"\n") for line in lines):
            self._file.seek(start)
            self._file.truncate()
            self._going_on = False
            return False
        context, condition = jobs[-1]
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
