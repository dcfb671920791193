"""People as a step of an evaluation: imported ratings, a study to serve, or simulated raters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from palaver.artefacts import digest_files
from palaver.errors import DataError, UserError
from palaver.evaluation.experiment import Experiment, StudyPlan
from palaver.evaluation.store import Store
from palaver.readers.rating_columns import SCHEMA
from palaver.readers.rating_files import write_frames
from palaver.schema import Study
from palaver.studies import Habits, RatingTable, draft_study, load_study, read_ratings, simulate
from palaver.studies.draft import StudyDraft, items_file_of
from palaver.studies.ratings import names_in_files
from palaver.studies.screens import plan_screens

STUDY = "study.toml"
PEOPLE = "people.parquet"
_EXPORTS = ("people.csv", "people.jsonl", "people.xlsx")
_DIGEST = "study"
"""The fact that says which study this run wrote."""


@dataclass(frozen=True)
class ScreenCount:
    """How far a study is."""

    done: int
    target: int


@dataclass(frozen=True)
class PeopleOutcome:
    """What people said, or what they still have to be asked."""

    table: RatingTable | None
    study: Study | None = None
    is_simulated: bool = False
    waiting: str = ""
    """What people still have to do; empty where their ratings are there."""
    commands: tuple[str, ...] = ()
    """What to run next."""
    notes: tuple[str, ...] = ()
    screens: ScreenCount | None = None
    """How far the study is, where people have not answered it yet."""

    @property
    def who(self) -> str:
        return "simulated people" if self.is_simulated else "people"


def hear_people(
    experiment: Experiment, folder: Path, responses: Path, store: Store, command: str
) -> PeopleOutcome | None:
    """The ratings of people, or what is to be done to get them. `command` goes on with the run."""
    people = experiment.people
    if people is None:
        return None
    if people.ratings is not None:
        columns = people.columns or None
        table = read_ratings(list(experiment.rating_files), columns=columns)
        return PeopleOutcome(table)
    if people.simulate is not None:
        return _simulated(experiment, folder, responses)
    assert people.study is not None
    return _studied(experiment, people.study, folder, responses, store, command)


def draft_of(plan: StudyPlan, responses: Path, seed: int) -> StudyDraft:
    """The study of these responses, as the plan says."""
    return draft_study(
        responses, preset=plan.preset, sample=plan.sample, pairs=plan.pairs, distinct_by=plan.distinct_by,
        layout=plan.layout, seed=seed,
    )  # fmt: skip


# Simulated -----------------------------------------------------------------------------------------------


def _simulated(experiment: Experiment, folder: Path, responses: Path) -> PeopleOutcome:
    assert experiment.people is not None
    plan = experiment.people.simulate
    assert plan is not None
    seed = experiment.seed or 0
    draft = draft_of(plan, responses, seed)
    study = draft.study
    truth = plan.truth
    if truth is not None:  # a system that gave no reply is not in the study; the person's own reply may be
        best = max(truth.values())
        truth = {system: truth.get(system, best) for system in study.systems}
    habits = Habits(noise=plan.noise, bias=plan.bias, careless=plan.careless)
    try:
        simulation = simulate(
            study, n_raters=plan.raters, truth=truth, gap=plan.gap, habits=habits, seed=seed
        )
    except ValueError as error:
        raise UserError(f"[people.simulate]: {error}") from None
    raters = pl.concat_str(pl.lit("simulated-"), pl.col("rater"))
    no_time = pl.lit(None, dtype=pl.Datetime("ms"))
    frame = simulation.frame.with_columns(rater=raters, given_at=no_time)
    table = _write(frame, folder, study)
    note = "The raters are simulated, with a truth that the experiment file names."
    return PeopleOutcome(table, study, is_simulated=True, notes=(note, *draft.notes))


def _write(frame: pl.DataFrame, folder: Path, study: Study | None) -> RatingTable:
    """Keep the ratings beside the responses, and read them as any file."""
    columns = [
        pl.col(name).cast(kind) if name in frame.columns else pl.lit(None, dtype=kind).alias(name)
        for name, kind in SCHEMA.items()
    ]
    whole = frame.select(columns).with_columns(pl.col("kind").fill_null("human"))
    write_frames([whole], folder / PEOPLE)
    return read_ratings(folder / PEOPLE, study=study)


# A study that is served ------------------------------------------------------------------------------------


def _studied(
    experiment: Experiment, plan: StudyPlan, folder: Path, responses: Path, store: Store, command: str
) -> PeopleOutcome:
    path = folder / STUDY
    draft = draft_of(plan, responses, experiment.seed or 0)
    _write_study(draft, path, store)
    study = load_study(path)
    exported = [folder / name for name in _EXPORTS if (folder / name).is_file()]
    if exported:
        return PeopleOutcome(read_ratings(exported, study=study), study, notes=draft.notes)
    serve = f"palaver study serve {path}"
    database = path.with_suffix(".db")
    if not database.is_file():
        told = f"{len(study.items):,} items wait for {study.raters_per_item} people each"
        count = ScreenCount(0, len(plan_screens(study)) * study.raters_per_item)
        return PeopleOutcome(
            None, study, waiting=told, commands=(serve, command), notes=draft.notes, screens=count
        )
    served = _served(database)
    if isinstance(served, ScreenCount):
        told = f"{served.done:,} of {served.target:,} screens are done"
        notes = list(draft.notes)
        if served.done:
            export = f"palaver study export {path} --out {folder / _EXPORTS[0]}"
            notes.append(f"with the answers so far it goes on after: {export}")
        return PeopleOutcome(
            None, study, waiting=told, commands=(serve, command), notes=tuple(notes), screens=served
        )
    return PeopleOutcome(_write(served, folder, study), study, notes=draft.notes)


def study_files(folder: Path) -> list[Path]:
    """Whatever people's answers to the study are read from."""
    path = folder / STUDY
    names = [path.name, items_file_of(path), path.with_suffix(".db").name, *_EXPORTS]
    return [folder / name for name in names if (folder / name).is_file()]


def _write_study(draft: StudyDraft, path: Path, store: Store) -> None:
    """Write the study once. One that its owner has changed, or that is served, is never written over."""
    items = path.with_name(items_file_of(path))
    before = store.fact(_DIGEST)
    made_of = _digest_of(draft)
    is_served = path.with_suffix(".db").is_file()
    if before is None and is_served and load_study(path).items == draft.study.items:
        return  # the run began anew, the study did not
    if path.is_file() and items.is_file() and before is not None:
        wrote, asked = before.split("|")
        if asked == made_of:
            return
        if not is_served and digest_files([path, items]) != wrote:
            raise UserError(
                f"the replies or [people.study] have changed, and so has {path} by hand",
                "move it away to have it written again, or choose another folder with --out",
            )
    if is_served:
        raise UserError(
            f"the replies or [people.study] have changed since {path} was served",
            "people rated other replies: put the old ones back, or choose another folder with --out",
        )
    draft.write(path)
    store.set_fact(_DIGEST, f"{digest_files([path, items])}|{made_of}")


def _digest_of(draft: StudyDraft) -> str:
    from palaver.artefacts import digest

    return digest(draft.text, [item.model_dump_json() for item in draft.study.items])


def _served(database: Path) -> pl.DataFrame | ScreenCount:
    """The answers of a study that is done or has stopped, without times; else how far it is."""
    from palaver.server.database import Database, sqlite_url
    from palaver.server.export import FOR_ANALYSIS, frames
    from palaver.server.oversight import status
    from palaver.server.records import stop_reason

    opened = Database(sqlite_url(database.resolve()))
    try:
        with opened.reading() as connection:
            stopped = stop_reason(connection)
        now = status(opened)
        if stopped is None and now.done < now.target:
            return ScreenCount(now.done, now.target)
        answers = pl.concat(list(frames(opened, FOR_ANALYSIS)), how="diagonal")
    finally:
        opened.close()
    no_time = pl.lit(None, dtype=answers.schema["given_at"])
    return answers.with_columns(given_at=no_time)


def restrict(table: RatingTable, systems: Sequence[str], items: set[str]) -> tuple[RatingTable, list[str]]:
    """The ratings of this experiment's systems, and what is to be said about the others."""
    named = names_in_files(table)
    known = named["system"].cast(pl.String).is_in(list(systems))
    others = sorted(set(named.filter(~known)["system"].cast(pl.String).unique().to_list()))
    if not known.any():
        raise DataError(
            f"{', '.join(table.reading.files)}: none of its ratings is about a system of this experiment",
            f"it rates {', '.join(others[:8])}; the experiment has {', '.join(systems)}: name them alike",
        )
    notes = []
    if others:
        n = int((~known).sum())
        notes.append(f"{n:,} ratings of {', '.join(others)} are left out: not in the experiment")
    rated = pl.coalesce(named["context"].cast(pl.String), named["item"].cast(pl.String))
    rated_items = set(named.select(rated.alias("item"))["item"].to_list())
    if not rated_items & items:
        example, own = min(rated_items), min(items, default="")
        raise DataError(
            f"{', '.join(table.reading.files)}: none of its items is a context of this experiment",
            f"it has such as {example!r}, the test set such as {own!r}: use the ids of responses.jsonl",
        )
    missing = len(rated_items - items)
    if missing:
        notes.append(
            f"{missing:,} rated items are no contexts of this experiment; they count for people alone"
        )
    import dataclasses

    return (dataclasses.replace(table, frame=table.frame.filter(known)) if others else table), notes
