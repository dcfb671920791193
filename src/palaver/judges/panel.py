"""Several judges over one file of responses or dialogues: rows of the one table of ratings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from palaver.engine import Engine, Failures, Recipe, RowError, batches, in_parts, map_rows
from palaver.errors import DataError, UserError, count_of
from palaver.judges.catalogue import open_judge
from palaver.progress import Progress, no_progress
from palaver.readers.dialogues import DialogueReader, read_dialogues
from palaver.readers.rating_files import ratings_frame, with_numbers
from palaver.readers.responses import ResponseReader, is_responses, read_responses
from palaver.readers.shapes import known_label
from palaver.schema import Dialogue, Judge, Rating, Response
from palaver.schema.base import FrozenDict
from palaver.schema.judge import Direction
from palaver.tabular import Tabular, few

BATCH = 1024
AnyJudge = Judge | Callable[[Response], Any]


@dataclass(frozen=True, repr=False)
class JudgeResult(Tabular):
    """Ratings in the long format, and what was left out, with the reason. Tables: ratings, summary."""

    frame: pl.DataFrame
    n_judged: int
    """Responses or dialogues that were read."""
    judges: tuple[Judge, ...]
    left_out: Mapping[str, int]
    notes: tuple[str, ...]

    def _headline(self) -> str:
        names = few([judge.name for judge in self.judges])
        return f"{count_of(self.frame.height, 'rating')} of {self.n_judged:,} by {names}"

    def _tables(self) -> dict[str, Any]:
        return {"ratings": with_numbers(self.frame), "summary": self.summary()}

    def _repr_html_(self) -> str:
        return self._html("summary")

    @property
    def directions(self) -> dict[str, Direction]:
        """Which end of each criterion is better."""
        return {c.name: c.better for judge in self.judges for c in judge.criteria}

    def summary(self) -> pl.DataFrame:
        """Each system's mean by judge and criterion, with how many ratings it rests on."""
        keys = ["rater", "criterion", "system"]
        mean = pl.col("value").cast(pl.Float64).mean()
        return self.frame.group_by(keys, maintain_order=True).agg(mean.alias("mean"), pl.len().alias("n"))


def judge(
    source: str | Path | Iterable[Response] | Iterable[Dialogue],
    by: str | AnyJudge | Sequence[str | AnyJudge],
    *,
    columns: Mapping[str, str] | None = None,
    device: str = "auto",
    engine: Engine | str = "local",
    progress: Progress | None = None,
) -> JudgeResult:
    """Let every judge of `by` rate every response or dialogue of a file, or every `Response` or `Dialogue`.

    Judges are named as on the command line (`comparator`, `unigram_f1`, `my_module:my_function`), or are
    objects, or functions from a `Response` to a number. What a judge cannot rate, or fails on, is counted in
    `left_out`. Each worker of an `engine` opens the judges itself.
    """
    if not by:
        raise UserError("no judge was named", "name at least one: --by unigram_f1")
    several = by if isinstance(by, Sequence) and not isinstance(by, str) else [by]
    judges = _open_all(several, device)
    reader: ResponseReader | DialogueReader | list[Any]
    notes: tuple[str, ...] = ()
    if not isinstance(source, str | Path):
        reader, path = _in_memory(source)
    elif is_responses(path := Path(source), columns):
        reader = read_responses(path, columns=columns)
    else:
        reader = read_dialogues(path, columns=columns)
    panel = Panel(judges, path, engine=engine, opener=partial(_open_all, tuple(several), device))
    frames = [ratings_frame(batch) for batch in panel.rate(reader, progress or no_progress)]
    if isinstance(reader, ResponseReader | DialogueReader):
        notes = reader.notes  # complete now that it was read
    if not any(frame.height for frame in frames):
        reasons = [f"{reason}: {count:,}" for reason, count in panel.left_out.items()]
        raise DataError(f"{path}: there is nothing that could be judged", problems=reasons)
    return JudgeResult(
        pl.concat(frames), panel.n_judged, tuple(judges), dict(panel.left_out), (*notes, *panel.notes)
    )


def _open_all(several: Sequence[str | AnyJudge], device: str) -> list[Judge]:
    return [open_judge(one, device=device) for one in several]


def _in_memory(things: Iterable[Any]) -> tuple[list[Any], Path]:
    """Responses or dialogues, and what errors call them."""
    held = list(things)
    for kind in (Response, Dialogue):
        if held and all(isinstance(thing, kind) for thing in held):
            return held, Path(f"{kind.__name__.lower()}s")
    kinds = ", ".join(sorted({type(thing).__name__ for thing in held})) or "nothing"
    raise UserError(
        f"expected a file, or Responses or Dialogues, found {kinds}",
        "what `generate` and `read_dialogues` give can be judged",
    )


class Panel:
    """Judges side by side over a stream, a batch at a time; those of whole systems wait for its end."""

    def __init__(
        self,
        judges: Sequence[Judge],
        path: Path,
        *,
        engine: Engine | str = "local",
        opener: Callable[[], list[Judge]] | None = None,
    ) -> None:
        self.judges = judges
        self.path = path
        self.left_out: Counter[str] = Counter()
        self._engine = engine
        self._recipe = Recipe.of(list(judges), opener)
        self.n_judged = 0
        self._n_nameless = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known about the ratings; complete once everything was judged."""
        notes = [
            f"{judge.name}: {n:,} {what}"
            for judge in self.judges
            for what, n in getattr(judge, "notes", {}).items()
        ]
        if self._n_nameless:
            notes.append(f"{self._n_nameless:,} dialogues name no system: taken for {self.path.name}'s own")
        return tuple(notes)

    def rate(
        self, things: Iterable[Response] | Iterable[Dialogue], progress: Progress
    ) -> Iterator[list[Rating]]:
        """Ratings, a list a batch. Nothing is held but what a judge of whole systems needs.

        A response on which a judge fails is left out and counted; a judge that fails on several in a row, or
        on all, ends the work.
        """
        whole = [judge for judge in self.judges if getattr(judge, "whole", False)]
        held: list[Response] = []
        failures = [Failures() for _ in self.judges]
        n_ratings: Counter[str] = Counter()

        def read() -> Iterator[list[Response] | list[Dialogue]]:
            anything: Iterable[Any] = things
            for batch in batches(anything, BATCH):
                if whole:
                    held.extend(thing for thing in batch if isinstance(thing, Response))
                yield self._named(batch)

        work: Any = _PanelWork(self._recipe, self.path)
        for _, parts in map_rows(work, read(), engine=self._engine, wants_gpu=True, ordered=True):
            by_judge: list[list[Rating]] = [[] for _ in self.judges]
            for batch, made in parts:
                self.n_judged += len(batch)
                if isinstance(made, RowError):  # it ended its worker
                    self.left_out[f"failed: {made.reason}"] += 1
                    continue
                for place, judgement in enumerate(made):
                    by_judge[place] += self._heard(self.judges[place], judgement, failures[place])
            progress("judging", self.n_judged, 0)
            for judge, ratings in zip(self.judges, by_judge, strict=True):
                n_ratings[judge.name] += len(ratings)
            yield [rating for ratings in by_judge for rating in ratings]
        for judge, failed in zip(self.judges, failures, strict=True):
            failed.check(at_end=True)
            if failed.error is not None and not n_ratings[judge.name]:
                raise failed.error.to_error()
        for judge in whole:
            yield self.ratings(judge, held)
        for judge in self.judges:
            for reason, count in getattr(judge, "left_out", {}).items():
                self.left_out[f"{judge.name}: {reason}"] += count

    def _heard(self, judge: Judge, judgement: _Judgement, failures: Failures) -> list[Rating]:
        """What a worker's judge said, with what it counted added to ours."""
        for field, counts in judgement.counts.items():
            getattr(judge, field).update(counts)
        self.left_out.update(judgement.left_out)
        for name, error in judgement.outcomes:
            if error is None:
                failures.in_a_row = 0
                continue
            failures.note(name, error)
            self.left_out[f"{judge.name}: failed: {error.reason}"] += 1
        failures.check()
        return judgement.ratings

    def ratings(self, judge: Judge, batch: Sequence[Response] | Sequence[Dialogue]) -> list[Rating]:
        """What one judge says about a batch."""
        return list(judge.judge(self._for_judge(judge, batch)))

    def _for_judge(
        self, judge: Judge, batch: Sequence[Response] | Sequence[Dialogue]
    ) -> Sequence[Response] | Sequence[Dialogue]:
        """What the judge looks at, without what it cannot rate."""
        responses = [thing for thing in batch if isinstance(thing, Response)]
        if not responses:
            if "dialogues" not in judge.looks_at:
                raise UserError(
                    f"{judge.name} judges responses, but {self.path} holds dialogues",
                    "give a file with the columns id, system, context, response",
                )
            return batch
        able = []
        for response in responses:
            reason = why_not(judge, response)
            if reason:
                self.left_out[f"{judge.name}: {reason}"] += 1
            else:
                able.append(response)
        return able if "responses" in judge.looks_at else [response.as_dialogue() for response in able]

    def _named(self, batch: list[Response] | list[Dialogue]) -> list[Response] | list[Dialogue]:
        """The batch, in which every dialogue names its system, as every response does."""
        named = [self._with_system(thing) for thing in batch if isinstance(thing, Dialogue)]
        return named or batch

    def _with_system(self, dialogue: Dialogue) -> Dialogue:
        """One that names no system is taken for a dialogue of the file's own."""
        if known_label(dialogue.labels, "system") is not None:
            return dialogue
        self._n_nameless += 1
        labels = {**dialogue.labels, "system": self.path.name.partition(".")[0]}
        return dialogue.model_copy(update={"labels": FrozenDict(labels)})


@dataclass(frozen=True)
class _Judgement:
    """What one judge made of a batch, in whichever process it is."""

    ratings: list[Rating]
    left_out: Counter[str]
    counts: dict[str, Counter[str]]
    """What the judge itself counted, in `notes` and `left_out`."""
    outcomes: list[tuple[str, RowError | None]]
    """Of each part of the batch the name of its first row, and why that failed, if it did."""


class _PanelWork:
    """All judges but those of whole systems, over one batch."""

    def __init__(self, recipe: Recipe[list[Judge]], path: Path) -> None:
        self.recipe = recipe
        self.path = path

    def __call__(self, batch: Sequence[Response] | Sequence[Dialogue]) -> list[_Judgement]:
        return [self._judgement(judge, batch) for judge in self.recipe.model]

    def _judgement(self, judge: Judge, batch: Sequence[Response] | Sequence[Dialogue]) -> _Judgement:
        if getattr(judge, "whole", False):
            return _Judgement([], Counter(), {}, [])
        panel = Panel([judge], self.path)
        before = {
            field: Counter(getattr(judge, field))
            for field in ("notes", "left_out")
            if isinstance(getattr(judge, field, None), Counter)
        }
        rate: Any = partial(panel.ratings, judge)
        parts: list[tuple[Sequence[Any], list[Rating] | RowError]] = in_parts(rate, batch)
        counts = {}
        for field, counted in before.items():
            counts[field] = getattr(judge, field) - counted
            setattr(judge, field, counted)  # they are added up where the ratings are
        return _Judgement(
            ratings=[rating for _, made in parts if not isinstance(made, RowError) for rating in made],
            left_out=panel.left_out,
            counts=counts,
            outcomes=[(rows[0].id, made if isinstance(made, RowError) else None) for rows, made in parts],
        )


def why_not(judge: Judge, response: Response) -> str:
    """Why a judge cannot rate a response; empty where it can."""
    if response.response is None:
        return "responses that the system did not give"
    if "references" in judge.needs and not response.references:
        return "responses without a reference"
    if "knowledge" in judge.needs and not response.knowledge:
        return "responses without knowledge"
    if "context" in judge.needs and not response.context:
        return "responses without a context"
    return ""
