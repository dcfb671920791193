"""A run of an experiment: replies, judgements, people, findings, report.

Every cell is kept in the store under what it depends on, and everything else is written from the store in the
order of the experiment: a run that was killed ends, when it is started again, in the same bytes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from palaver.artefacts import lock_folder
from palaver.engine import Engine
from palaver.errors import DataError, UserError
from palaver.evaluation.conclusion import Material, conclude, worst_turns
from palaver.evaluation.experiment import Experiment, load_experiment
from palaver.evaluation.forms import Form
from palaver.evaluation.inputs import RATINGS, RESPONSES, RESULTS, input_files, record_of
from palaver.evaluation.judging import (
    ANSWERS,
    JudgeOutcome,
    ask_judge,
    ask_llm,
    check_keys,
    judge_opener,
    open_judges,
    open_llm,
)
from palaver.evaluation.people import PeopleOutcome, ScreenCount, hear_people, study_files
from palaver.evaluation.replies import (
    OpenKnowledge,
    ResponseRow,
    SystemOutcome,
    TestSet,
    ask_system,
    is_the_reference,
    open_systems,
    read_contexts,
    read_test_set,
    system_opener,
    write_responses,
)
from palaver.evaluation.report import write_report
from palaver.evaluation.results import ExperimentResult
from palaver.evaluation.run_record import finish, unfinish
from palaver.evaluation.store import FILE, Store
from palaver.files import write_atomically
from palaver.generation.contexts import Contexts
from palaver.generation.system import takes
from palaver.progress import Progress, no_progress
from palaver.readers.rating_files import ratings_frame, write_frames
from palaver.schema import Judge, RunRecord, System

Part = TypeVar("Part")


@dataclass(frozen=True, kw_only=True)
class Options:
    """How an experiment is run; none of it changes what comes out."""

    device: str = "auto"
    engine: Engine | str | None = None
    """Where replies and ratings are made; None: where the experiment says, or in this process."""
    data: Path | None = None
    """The folder of corpora."""
    form: Form = "html"
    command: str = "palaver evaluate"
    """What goes on with this run; told to whoever has to wait for people."""
    open_knowledge: OpenKnowledge | None = None


def run_experiment(
    experiment: Experiment | str | Path,
    out: str | Path,
    *,
    fresh: bool = False,
    options: Options | None = None,
    progress: Progress = no_progress,
) -> ExperimentResult:
    """Run an experiment file into the folder `out`, or go on with it; `fresh` begins anew.

    The folder gets responses.jsonl, ratings.parquet, results.json and report.html. What is there already is
    not asked for again. A system or judge that fails is marked, and the others go on.
    """
    if not isinstance(experiment, Experiment):
        experiment = load_experiment(experiment)
    options = options or Options()
    folder = Path(out)
    claim(folder)
    record = record_of(experiment, options.data)
    with lock_folder(folder), Store(folder, fresh=fresh) as store:
        unfinish(folder)
        if fresh:
            shutil.rmtree(folder / ANSWERS, ignore_errors=True)
        run = Run(experiment, folder, store, record, options, progress)
        return run.run()


def claim(folder: Path) -> None:
    """A folder that holds something else is not touched."""
    if folder.is_dir() and not (folder / FILE).is_file():
        others = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
        if others:
            raise UserError(
                f"{folder} is there already and is no run of an evaluation",
                "choose another folder with --out",
            )


def _opened(open_part: Callable[[], Part], errors: list[UserError]) -> Part | None:
    """What `open_part` opens; what is wrong with it goes to `errors`."""
    try:
        return open_part()
    except UserError as error:
        errors.append(error)
        return None


def _survey(contexts: Contexts) -> Contexts:
    """The contexts, gone through once: an empty file and broken rows are told here."""
    contexts.survey()
    return contexts


def _joined(errors: Sequence[UserError]) -> UserError:
    """One error that says all of them."""
    if len(errors) == 1:
        return errors[0]
    problems = []
    for error in errors:
        problems += [error.message] if not error.message.endswith(":") else []
        problems += error.problems
    return UserError("the evaluation cannot begin:", next((e.hint for e in errors if e.hint), ""), problems)


class Run:
    """The steps of one run."""

    def __init__(
        self,
        experiment: Experiment,
        folder: Path,
        store: Store,
        record: RunRecord,
        options: Options,
        progress: Progress,
    ) -> None:
        self.experiment = experiment
        self.folder = folder
        self.store = store
        self.record = record
        self.options = options
        self._progress = progress
        self._engine = options.engine or experiment.engine or "local"
        self.responses = folder / RESPONSES
        self.notes: list[str] = []

    def open(self) -> tuple[dict[str, System], TestSet, list[Judge]]:
        """Systems, test set and judges; whatever is wrong with any of them is told together."""
        experiment, device = self.experiment, self.options.device
        errors: list[UserError] = []
        contexts = _opened(lambda: _survey(read_contexts(experiment, self.options.data)), errors)
        systems = _opened(lambda: open_systems(experiment, device), errors) or {}
        judges = _opened(lambda: open_judges(experiment, device), errors) or []
        _opened(lambda: check_keys(experiment), errors)
        if errors or contexts is None:
            raise _joined(errors)
        knowledge = None
        if self.options.open_knowledge is not None:
            knowledge = self.options.open_knowledge(self.experiment, contexts)
        if knowledge is not None and not any("knowledge" in takes(system) for system in systems.values()):
            self.notes.append("no system takes knowledge: judges see the sentence, systems do not")
        test_set = read_test_set(contexts, knowledge)
        if contexts.n_repeated:
            self.notes.append(
                f"{contexts.n_repeated:,} dialogues have the id of an earlier one; ~2, ~3 … tell them apart"
            )
        return systems, test_set, judges

    # The steps -------------------------------------------------------------------------------------------

    def run(self) -> ExperimentResult:
        """All steps; what cannot be done is marked, and the rest goes on."""
        self.store.begin_steps()
        systems, test_set, judges = self.open()
        replies = [self._ask_system(system, test_set) for system in systems.values()]
        rows = write_responses(systems, test_set, self.store, self.responses)
        if not any(row.facts.is_given for row in rows):
            problems = [f"{outcome.system}: {outcome.error}" for outcome in replies if outcome.error]
            raise DataError("no system gave a reply", problems=problems)
        named = zip(judges, self.experiment.judges, strict=True)
        outcomes = [self._ask_judge(judge, said, rows) for judge, said in named]
        outcomes += self._ask_llms()
        self._write_ratings(outcomes)
        try:
            people = hear_people(
                self.experiment, self.folder, self.responses, self.store, self.options.command
            )
            self._tell_people(people)
            self._progress("findings", 0, 1)
            evaluation = conclude(
                Material(
                    experiment=self.experiment, record=self.record, responses=self.responses,
                    replies=replies, rows=rows, outcomes=outcomes, people=people, notes=self.notes,
                ),
                lambda wanted: worst_turns(judges, self.responses, self.store, wanted),
            )  # fmt: skip
        except UserError as error:  # what failed before may be the reason
            failed = [f"{outcome.system}: {outcome.error}" for outcome in replies if outcome.error]
            failed += [f"{outcome.judge}: {outcome.error}" for outcome in outcomes if outcome.error]
            error.problems = (*error.problems, *failed)
            raise
        with write_atomically(self.folder / RESULTS) as file:
            file.write(evaluation.to_json())
        report = write_report(evaluation, self.folder, self.options.form)
        if not evaluation.errors and not evaluation.waiting:
            self._finish(report.name)
        self.store.tell("report", 1, 1)
        return evaluation

    def _finish(self, report: str) -> None:
        """Write down what was read and written, where all of it is known."""
        read = input_files(self.experiment)
        if read is None:
            return
        if self.experiment.people is not None and self.experiment.people.study is not None:
            read += study_files(self.folder)
        finish(self.folder, self.record, read, [RESPONSES, RATINGS, RESULTS, report])

    def _teller(self, name: str) -> Callable[[int, int], None]:
        """Says how far a step is, to the caller and to those who watch."""

        def tell(done: int, total: int) -> None:
            self._progress(name, done, total)
            self.store.tell(name, done, total)

        return tell

    def _ask_system(self, system: System, test_set: TestSet) -> SystemOutcome:
        name = f"replies of {system.name}"
        opener = system_opener(self.experiment, system.name, self.options.device)
        outcome = ask_system(
            system, test_set, self.store, self._teller(name), engine=self._engine, opener=opener
        )
        if outcome.error:
            self.store.tell(name, outcome.n_replies + outcome.n_skipped, len(test_set), outcome.error)
        self.notes += outcome.notes
        if is_the_reference(system, test_set, self.store):
            self.notes.append(f"{system.name} says the references: it is not judged against them")
        return outcome

    def _ask_judge(self, judge: Judge, said: str, rows: Sequence[ResponseRow]) -> JudgeOutcome:
        name = f"ratings of {judge.name}"
        opener = judge_opener(self.experiment, said, self.options.device)
        outcome = ask_judge(
            judge, self.responses, rows, self.store, self._teller(name), engine=self._engine, opener=opener
        )
        if outcome.error:
            self.store.tell(name, outcome.frame.height, outcome.n_cells, outcome.error)
        return outcome

    def _ask_llms(self) -> Iterator[JudgeOutcome]:
        for llm in self.experiment.llm_judges:
            name = f"answers of {llm.name}"
            try:
                model = open_llm(self.experiment, llm.name, self.options.device)
                seed = self.experiment.seed or 0
                outcome = ask_llm(llm, model, self.responses, seed, self._teller(name))
            except UserError as error:
                outcome = JudgeOutcome(llm.name, "llm", "", {}, ratings_frame([]), 0, error=error.message)
            if outcome.error:
                self.store.tell(name, 0, outcome.n_cells, outcome.error)
            yield outcome

    def _tell_people(self, people: PeopleOutcome | None) -> None:
        """People are a step like the others, for those who watch."""
        if people is None:
            return
        count = people.screens or ScreenCount(1, 1)
        self.store.tell(
            "people", count.done, count.target, f"waiting: {people.waiting}" if people.waiting else ""
        )

    def _write_ratings(self, outcomes: Sequence[JudgeOutcome]) -> None:
        frames = [outcome.frame for outcome in outcomes if outcome.frame.height]
        if frames:
            write_frames(frames, self.folder / RATINGS)
        else:
            (self.folder / RATINGS).unlink(missing_ok=True)
