"""The second step: every judge rates every response, and `ratings.parquet` is written."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from palaver.engine import Engine, Failures, Recipe, RowError, batches, map_rows
from palaver.errors import UserError
from palaver.evaluation.experiment import Experiment, LlmJudge
from palaver.evaluation.people import draft_of
from palaver.evaluation.replies import ResponseRow
from palaver.evaluation.store import Store, cell_key, owner_of
from palaver.generation.options import OpenAIOptions
from palaver.judges.catalogue import open_judge
from palaver.judges.llm import LlmRatings, rate_study
from palaver.judges.llm_models import EndpointModel, LanguageModel, open_language_model
from palaver.judges.panel import Panel, why_not
from palaver.models.causal_base import SMOLLM2
from palaver.readers.rating_files import ratings_frame
from palaver.registry import import_object, is_object_name
from palaver.schema import Judge, Rating, Response, Turn
from palaver.schema.judge import Direction
from palaver.schema.rating import Kind

_A_TURN = (Turn(speaker="user", text="x"),)
BATCH = 256
"""Responses that a judge is given at once."""
ANSWERS = "answers"
"""The folder in which answers of language models are kept."""


@dataclass
class JudgeOutcome:
    """What became of one judge's ratings."""

    judge: str
    kind: Kind
    signature: str
    directions: Mapping[str, Direction]
    """Criterion -> which end is better."""
    frame: pl.DataFrame
    n_cells: int
    n_there: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    error: str = ""
    """What went wrong, in a sentence; empty where every rating is there."""


def open_judges(experiment: Experiment, device: str = "auto") -> list[Judge]:
    """All judges of `by`, opened; what is wrong with any of them is told together, before the work."""
    judges: list[Judge] = []
    problems, hints = [], []
    for name in experiment.judges:
        try:
            judges.append(judge_opener(experiment, name, device)())
        except UserError as error:
            problems.append(f"{name}: {error.message}")
            hints.append(error.hint)
    if problems:
        raise UserError("these judges cannot be opened:", next(filter(None, hints), ""), problems)
    return judges


def judge_opener(experiment: Experiment, name: str, device: str = "auto") -> Callable[[], Judge]:
    """Opens one judge of an experiment, wherever it is called."""
    return partial(_open_judge, name, experiment.folder, device)


def _open_judge(name: str, folder: Path, device: str) -> Judge:
    if is_object_name(name):
        import_object(name, folder)  # its module may lie beside the file
    return open_judge(name, device=device)


@dataclass(frozen=True)
class _Line:
    """A line of responses.jsonl under the key of what the judge says about it."""

    key: bytes
    text: bytes

    def response(self) -> Response:
        fields = json.loads(self.text)
        skipped = fields.pop("skipped", None)
        labels = {} if skipped is None else {"skipped": skipped}
        return Response.model_validate({**fields, "labels": labels})


def judge_keys(judge: Judge, lines: Iterable[bytes]) -> list[bytes]:
    """The keys of all that a judge is asked about the lines of `responses.jsonl`.

    A judge's signature holds what its ratings depend on. Our own metrics have our version in it, since their
    code may change with it; they take seconds and cost nothing. What is paid for or somebody else's has not.
    """
    owner = owner_of(judge.name, judge.signature)
    if not getattr(judge, "whole", False):
        return [cell_key(owner, line) for line in lines]
    whole = hashlib.blake2b()
    for line in lines:
        whole.update(line)
    return [cell_key(owner, whole.digest())]


def ask_judge(
    judge: Judge,
    path: Path,
    rows: Sequence[ResponseRow],
    store: Store,
    tell: Callable[[int, int], None],
    *,
    engine: Engine | str = "local",
    opener: Callable[[], Judge] | None = None,
) -> JudgeOutcome:
    """Let one judge rate whatever it has not rated yet; workers of an `engine` open it by `opener`."""
    failures = Failures()
    if getattr(judge, "whole", False):
        frame, n_there, n_cells = _ask_whole(judge, path, store, failures)
        tell(1, 1)
    else:
        work = _Rating(Recipe.of(judge, opener), path)
        n_there = _ask_rows(
            judge, path, work, store, failures, Engine.of(engine), lambda done: tell(done, len(rows))
        )
        frame, n_cells = _kept_ratings(judge, path, store), len(rows)
    outcome = JudgeOutcome(
        judge=judge.name,
        kind=judge.kind,
        signature=judge.signature,
        directions={criterion.name: criterion.better for criterion in judge.criteria},
        frame=frame,
        n_cells=n_cells,
        n_there=n_there,
        left_out=_left_out(judge, rows),
        notes=store.notes(owner_of(judge.name, judge.signature)),
    )
    if failures.rows:
        n_missing = n_cells if failures.given_up and not n_there else failures.count
        outcome.error = f"ratings of {n_missing:,} of {n_cells:,} responses are missing: {failures.last}"
    return outcome


def _ask_rows(
    judge: Judge, path: Path, work: _Rating, store: Store, failures: Failures, engine: Engine,
    tell: Callable[[int], None],
) -> int:  # fmt: skip
    """Rate all lines that have no rating yet; how many had one."""
    owner = owner_of(judge.name, judge.signature)
    n_there = done = 0

    def unrated() -> Iterator[list[_Line]]:
        nonlocal n_there, done
        for batch in _line_batches(path, owner):
            kept = store.judgements([line.key for line in batch])
            missing = [line for line in batch if line.key not in kept]
            is_asked = missing and not failures.given_up
            n_there += len(kept)
            done += len(kept) if is_asked else len(batch)
            tell(done)
            if is_asked:
                yield missing

    for _, parts in map_rows(work, unrated(), engine=engine, wants_gpu=True):
        for lines, made in parts:
            if isinstance(made, RowError):
                failures.note(lines[0].response().id, made)
            else:
                failures.in_a_row = 0
                store.put_judgements(owner, made.ratings, made.notes)
            done += len(lines)
        tell(done)
    return n_there


def _kept_ratings(judge: Judge, path: Path, store: Store) -> pl.DataFrame:
    """All ratings of a judge, in the order of the lines."""
    frames = []
    for batch in _line_batches(path, owner_of(judge.name, judge.signature)):
        kept = store.judgements([line.key for line in batch])
        fields = [fields for line in batch for fields in kept.get(line.key, ())]
        if fields:
            frames.append(ratings_frame([Rating.model_validate(one) for one in fields]))
    return _joined(frames)


@dataclass(frozen=True)
class _Judgements:
    ratings: Mapping[bytes, list[Rating]]
    notes: list[str]


class _Rating:
    """Lets a judge rate lines, in whichever process it is."""

    def __init__(self, recipe: Recipe[Judge], path: Path) -> None:
        self.recipe = recipe
        self.path = path

    def __call__(self, lines: Sequence[_Line]) -> _Judgements:
        judge = self.recipe.model
        return _Judgements(_rate(judge, self.path, lines), _notes_of(judge))


def _ask_whole(judge: Judge, path: Path, store: Store, failures: Failures) -> tuple[pl.DataFrame, int, int]:
    """A judge whose figure is about all responses together has one cell."""
    with path.open("rb") as file:
        [key] = judge_keys(judge, file)
    kept = store.judgements([key])
    n_there = len(kept)
    if not kept:
        with path.open("rb") as file:
            responses = [_Line(b"", line).response() for line in file]
        try:
            made = {key: Panel([judge], path).ratings(judge, responses)}
        except Exception as error:  # somebody else's judge may raise anything
            failures.note("all responses", RowError.of(error))
        else:
            store.put_judgements(owner_of(judge.name, judge.signature), made, _notes_of(judge))
        kept = store.judgements([key])
    ratings = [Rating.model_validate(fields) for fields in kept.get(key, ())]
    return _joined([ratings_frame(ratings)] if ratings else []), n_there, 1


def _rate(judge: Judge, path: Path, lines: Sequence[_Line]) -> Mapping[bytes, list[Rating]]:
    """What the judge says about each line; nothing where it cannot rate the response."""
    responses = [line.response() for line in lines]
    key_of = {(r.id, r.judged_system): line.key for r, line in zip(responses, lines, strict=True)}
    made: dict[bytes, list[Rating]] = {line.key: [] for line in lines}
    for rating in Panel([judge], path).ratings(judge, responses):
        key = key_of.get((rating.item, rating.system))
        if key is None:
            raise UserError(f"{judge.name} rated {rating.item!r} of {rating.system}, which it was not given")
        made[key].append(rating)
    return made


def _line_batches(path: Path, owner: bytes) -> Iterator[list[_Line]]:
    with path.open("rb") as file:
        for lines in batches(file, BATCH):
            yield [_Line(cell_key(owner, line), line) for line in lines]


def _notes_of(judge: Judge) -> list[str]:
    """Without counts: those of an earlier run cannot be known, and the same cells give the same report."""
    told: Counter[str] = Counter(getattr(judge, "notes", {}))
    told.update(getattr(judge, "left_out", {}))
    return [text for text, n in told.items() if n]


def _left_out(judge: Judge, rows: Sequence[ResponseRow]) -> dict[str, int]:
    """Why responses were not rated, counted."""
    reasons: Counter[str] = Counter()
    for facts, n in Counter(row.facts for row in rows).items():
        like_it = Response(
            id="x", system="x", response="x" if facts.is_given else None,
            reference="x" if facts.has_reference else None, knowledge="x" if facts.has_knowledge else None,
            context=_A_TURN if facts.has_context else (),
        )  # fmt: skip
        reason = why_not(judge, like_it)
        if reason:
            reasons[reason] += n
    return dict(reasons)


def _joined(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(frames) if frames else ratings_frame([])


# Language models -----------------------------------------------------------------------------------------


def open_llm(experiment: Experiment, name: str, device: str = "auto") -> LanguageModel:
    """A system of the experiment that is a server, or what `palaver judge --by llm:NAME` takes."""
    spec = experiment.systems.get(name)
    if spec is not None and isinstance(spec.options, OpenAIOptions):
        return EndpointModel(name, spec.options)
    beside = experiment.folder / "systems.toml"
    return open_language_model(name, systems=beside if beside.is_file() else None, device=device)


def check_keys(experiment: Experiment) -> None:
    """Say what is wrong with the names and keys of language models before anything is paid for."""
    problems, hints = [], []
    for llm in experiment.llm_judges:
        if llm.name == SMOLLM2 or Path(llm.name).is_dir():
            continue  # a model on this machine is opened when it is asked
        try:
            open_llm(experiment, llm.name)
        except UserError as error:
            problems.append(error.message)
            hints.append(error.hint)
    if problems:
        raise UserError("these language models cannot be asked:", next(filter(None, hints), ""), problems)


def ask_llm(
    settings: LlmJudge, model: LanguageModel, path: Path, seed: int, tell: Callable[[int, int], None]
) -> JudgeOutcome:
    """Let a language model answer a study of the responses; what it answered before is not asked again."""
    draft = draft_of(settings, path, seed)
    result = rate_study(
        draft.study, model, repeats=settings.repeats, both_orders=settings.both_orders,
        budget=settings.budget(), cache=path.parent / ANSWERS,
        progress=lambda _, done, total: tell(done, total),
    )  # fmt: skip
    tally = result.tally
    outcome = JudgeOutcome(
        judge=model.name,
        kind="llm",
        signature=_signature(result),
        directions={question.criterion: "higher" for question in draft.study.questions},
        frame=_without_times(result.frame),
        n_cells=tally.planned,
        n_there=tally.from_cache,
        left_out=_unanswered(result),
    )
    if tally.failed or tally.not_asked:
        n, why = tally.failed + tally.not_asked, "; ".join(result.notes[:1])
        outcome.error = f"{n:,} of {tally.planned:,} questions were not answered: {why}"
    return outcome


def _signature(result: LlmRatings) -> str:
    return str(result.frame["signature"][0]) if result.frame.height else ""


def _unanswered(result: LlmRatings) -> dict[str, int]:
    tally = result.tally
    reasons = {
        "answers that could not be read": tally.unparsed,
        "questions that it refused": tally.refused,
    }
    return {reason: n for reason, n in reasons.items() if n}


def _without_times(frame: pl.DataFrame) -> pl.DataFrame:
    """The same answers give the same file, whenever they were given."""
    empty: dict[str, Any] = {name: pl.lit(None, dtype=frame.schema[name]) for name in ("given_at", "seconds")}
    return frame.with_columns(**empty)
