"""What a run would do: its steps, the cells that are there, those to make, and what that may cost."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from palaver.engine import batches
from palaver.evaluation.experiment import Experiment, LlmJudge
from palaver.evaluation.inputs import record_of
from palaver.evaluation.judging import ANSWERS, judge_keys, open_llm
from palaver.evaluation.people import draft_of
from palaver.evaluation.replies import TestSet, encode_response, response_lines
from palaver.evaluation.run import Options, Run, claim
from palaver.evaluation.store import FILE, Store
from palaver.generation.options import OpenAIOptions
from palaver.judges.llm import LETTERS_PER_TOKEN, count_questions
from palaver.progress import no_progress
from palaver.reports import numbers
from palaver.schema import Reply, System
from palaver.studies.screens import plan_screens
from palaver.tabular import Tabular, columns_of

_REPLY = "So many letters a reply is taken to have while nobody knows what the system will say. " * 2


@dataclass(frozen=True, kw_only=True)
class PlannedStep:
    """One step of a run: how many cells it has, and how many are there already."""

    name: str
    total: int
    there: int
    tokens: float = 0.0
    """About as many are read and written by what is still to do; 0 where nobody counts them."""
    cost: float | None = None
    """About as much money; None where the file names no price."""
    note: str = ""

    @property
    def to_do(self) -> int:
        return self.total - self.there


@dataclass(frozen=True, repr=False)
class Plan(Tabular):
    """The steps of a run, before it."""

    steps: tuple[PlannedStep, ...]

    def _headline(self) -> str:
        to_do, total = sum(step.to_do for step in self.steps), sum(step.total for step in self.steps)
        told = f"{to_do:,} of {total:,} cells to do"
        tokens, costs = sum(step.tokens for step in self.steps), [step.cost for step in self.steps]
        if tokens:
            told += f", about {tokens:,.0f} tokens"
        if any(cost is not None for cost in costs):
            told += f", about {numbers.number(sum(cost or 0.0 for cost in costs))} to pay for judges"
        return told

    def _tables(self) -> dict[str, object]:
        return {"steps": columns_of(PlannedStep, self.steps)}


def plan_run(experiment: Experiment, folder: Path, options: Options, *, fresh: bool = False) -> Plan:
    """The plan of a run into `folder`, which is not touched."""
    claim(folder)
    with _store(folder, fresh) as store, tempfile.TemporaryDirectory() as scratch:
        run = Run(experiment, folder, store, record_of(experiment, options.data), options, no_progress)
        systems, test_set, judges = run.open()
        steps = [_plan_replies(experiment, system, test_set, store) for system in systems.values()]
        is_replied = not any(step.to_do for step in steps)
        lines = [line for line, _ in response_lines(systems, test_set, store)] if is_replied else []
        for judge in judges:
            total = 1 if getattr(judge, "whole", False) else len(test_set) * len(systems)
            keys = judge_keys(judge, lines) if is_replied else []
            there = store.count("judgement", keys)
            note = "" if is_replied else "what is there is known when all replies are"
            steps.append(PlannedStep(name=f"ratings of {judge.name}", total=total, there=there, note=note))
        responses = Path(scratch) / "responses.jsonl"
        people = experiment.people
        if experiment.llm_judges or (people is not None and people.study is not None):
            _write_stand_ins(systems, test_set, store, responses)
        answers = None if fresh else folder / ANSWERS
        for llm in experiment.llm_judges:
            steps.append(_plan_llm(experiment, llm, responses, answers, options.device))
        if people is not None and people.study is not None:
            study = draft_of(people.study, responses, experiment.seed or 0).study
            note = f"screens, {study.raters_per_item} people each; the run writes a study to serve"
            total = len(plan_screens(study)) * study.raters_per_item
            steps.append(PlannedStep(name="people", total=total, there=0, note=note))
    return Plan(tuple(steps))


@contextmanager
def _store(folder: Path, fresh: bool) -> Iterator[Store]:
    if (folder / FILE).is_file() and not fresh:
        with Store(folder, read_only=True) as store:
            yield store
        return
    with tempfile.TemporaryDirectory() as nowhere, Store(Path(nowhere)) as store:
        yield store


def _plan_replies(experiment: Experiment, system: System, test_set: TestSet, store: Store) -> PlannedStep:
    questions = list(test_set.questions(system))
    keys = [question.key for question in questions]
    there = store.count("reply", keys)
    step = PlannedStep(name=f"replies of {system.name}", total=len(keys), there=there)
    if not isinstance(experiment.systems[system.name].options, OpenAIOptions):
        return step
    letters = sum(len(turn.text) for question in questions for turn in question.context.dialogue.turns)
    share = step.to_do / len(keys)
    tokens = share * (letters + len(keys) * len(_REPLY)) / LETTERS_PER_TOKEN
    return replace(step, tokens=tokens, note="one call each; its prompt and its retries are not counted")


def _write_stand_ins(systems: Mapping[str, System], test_set: TestSet, store: Store, path: Path) -> None:
    """The responses as they will be, with a text of usual length for every reply that is not there."""
    with path.open("wb") as file:
        for name, system in systems.items():
            numbered = enumerate(test_set.questions(system))
            for batch in batches(numbered, 1000):
                replies = store.replies([question.key for _, question in batch])
                for place, question in batch:
                    reply = replies.get(question.key) or Reply(f"{_REPLY} {name} {place}")
                    reference = question.context.reference
                    sentence = test_set.knowledge[place]
                    file.write(encode_response(name, question.context, reference, sentence, reply))


def _plan_llm(
    experiment: Experiment, llm: LlmJudge, responses: Path, answers: Path | None, device: str
) -> PlannedStep:
    """Every question that the model would be asked, and about how many tokens that takes."""
    study = draft_of(llm, responses, experiment.seed or 0).study
    model = None
    if answers is not None and answers.is_dir():  # a model on this machine takes time to open
        model = open_llm(experiment, llm.name, device)
    count = count_questions(
        study, repeats=llm.repeats, both_orders=llm.both_orders, model=model, cache=answers
    )
    tokens = count.tokens_in + count.tokens_out
    cost = llm.budget().cost(count.tokens_in, count.tokens_out) if any(llm.token_prices) else None
    limits = []
    if llm.token_limit is not None and tokens > llm.token_limit:
        limits.append(f"stops at {llm.token_limit:,} tokens")
    if llm.cost_limit is not None and cost is not None and cost > llm.cost_limit:
        limits.append(f"stops at a cost of {llm.cost_limit:g}")
    return PlannedStep(
        name=f"answers of {llm.name}", total=count.planned, there=count.kept, tokens=tokens, cost=cost,
        note="; ".join(["one call each", *limits]),
    )  # fmt: skip
