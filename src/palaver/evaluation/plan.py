"""What a run would do: its steps, the cells that are there, those to make, and what that may cost."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from palaver.evaluation.experiment import Experiment, LlmJudge
from palaver.evaluation.inputs import record_of
from palaver.evaluation.judging import judge_keys, open_judges
from palaver.evaluation.replies import TestSet, response_lines
from palaver.evaluation.run import Options, Run, claim
from palaver.evaluation.store import FILE, Store
from palaver.progress import no_progress
from palaver.tabular import Tabular, columns_of

_PROMPT_TOKENS = 300
"""About what the questions and the answer of one page take besides the conversation."""
_LETTERS_PER_TOKEN = 4


@dataclass(frozen=True, kw_only=True)
class PlannedStep:
    """One step of a run: how many cells it has, and how many are there already."""

    name: str
    total: int
    there: int
    tokens: float = 0.0
    """About as many are asked for at most; 0 where nobody counts them."""
    cost: float | None = None
    """About as much money at most; None where the file names no price."""
    note: str = ""

    @property
    def to_do(self) -> int:
        return self.total - self.there


@dataclass(frozen=True, repr=False)
class Plan(Tabular):
    """The steps of a run, before it."""

    steps: tuple[PlannedStep, ...]

    def _headline(self) -> str:
        return (
            f"{sum(step.to_do for step in self.steps):,} of {sum(s.total for s in self.steps):,} cells to do"
        )

    def _tables(self) -> dict[str, object]:
        return {"steps": columns_of(PlannedStep, self.steps)}


def plan_run(experiment: Experiment, folder: Path, options: Options, *, fresh: bool = False) -> Plan:
    """The plan of a run into `folder`, which is not touched."""
    claim(folder)
    with _store(folder, fresh) as store:
        run = Run(experiment, folder, store, record_of(experiment, options.data), options, no_progress)
        systems, test_set = run.open()
        judges = open_judges(experiment, options.device)
        steps = []
        for name, system in systems.items():
            keys = [question.key for question in test_set.questions(system)]
            there = store.count("reply", keys)
            steps.append(PlannedStep(name=f"replies of {name}", total=len(keys), there=there))
        is_replied = not any(step.to_do for step in steps)
        lines = [line for line, _ in response_lines(systems, test_set, store)] if is_replied else []
        for judge in judges:
            total = 1 if getattr(judge, "whole", False) else len(test_set) * len(systems)
            keys = judge_keys(judge, lines) if is_replied else []
            there = store.count("judgement", keys)
            note = "" if is_replied else "what is there is known when all replies are"
            steps.append(PlannedStep(name=f"ratings of {judge.name}", total=total, there=there, note=note))
        steps += [_plan_llm(llm, test_set, len(systems)) for llm in experiment.llm_judges]
    if experiment.people is not None and experiment.people.study is not None:
        plan = experiment.people.study
        n = min(plan.sample or len(test_set), len(test_set))
        steps.append(PlannedStep(name="people", total=n, there=0, note="a study is written; serve it"))
    return Plan(tuple(steps))


@contextmanager
def _store(folder: Path, fresh: bool) -> Iterator[Store]:
    if (folder / FILE).is_file() and not fresh:
        with Store(folder, read_only=True) as store:
            yield store
        return
    with tempfile.TemporaryDirectory() as nowhere, Store(Path(nowhere)) as store:
        yield store


def _plan_llm(llm: LlmJudge, test_set: TestSet, n_systems: int) -> PlannedStep:
    """An upper end: what was answered before is not asked again."""
    n_contexts = min(llm.sample or len(test_set), len(test_set))
    n_pairs = n_systems * (n_systems - 1) // 2
    pages = n_systems
    if llm.preset == "pairwise":
        pages = min(llm.pairs or n_pairs, n_pairs) * (2 if llm.both_orders else 1)
    total = n_contexts * pages * llm.repeats
    letters = sum(len(turn.text) for context in test_set.contexts for turn in context.dialogue.turns)
    tokens = total * (_PROMPT_TOKENS + letters / len(test_set) / _LETTERS_PER_TOKEN)
    cost = llm.budget().cost(tokens, 0) if any(llm.token_prices) else None
    limit = f"; at most {llm.token_limit:,}" if llm.token_limit else ""
    note = f"about {tokens:,.0f} tokens for each question{limit}"
    return PlannedStep(
        name=f"answers of {llm.name}", total=total, there=0, tokens=tokens, cost=cost, note=note
    )
