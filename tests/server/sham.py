"""Raters made up for the tests: they answer whatever they are shown."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from palaver.schema import Item, Question
from palaver.server.answers import RawAnswer
from palaver.server.study_state import StudyState, Task


def at_once(work: Callable[[Any], object], values: Sequence[Any]) -> list[BaseException]:
    """`work` on every value in a thread of its own, all beginning together; what went wrong."""
    errors: list[BaseException] = []
    gate = threading.Barrier(len(values))

    def run(value: Any) -> None:
        gate.wait()
        try:
            work(value)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(value,)) for value in values]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return errors


def value_for(question: Question, item: Item, output: int, rng: random.Random) -> object:
    """A value that is better for earlier systems, with noise."""
    scale = question.scale
    quality = -output + rng.gauss(0, 0.6)
    if scale.form == "boxes":
        options = [choice.value for choice in scale.choices()]
        return [options[-1] if quality > -1 else options[0]]
    if scale.form == "pair":
        return (
            "tie"
            if "tie" in scale.outcomes and rng.random() < 0.1
            else "win"
            if rng.random() < 0.8
            else "loss"
        )
    if scale.level == "ratio":
        return max(1, round(100 * 1.4**quality))
    if scale.level == "nominal":
        return int(quality > -0.5)
    low, high = scale.bounds.low, scale.bounds.high
    unit = max(1, (high - low) / 10)
    return min(max(round((low + high) / 2 + unit * (1 + quality)), low), high)


def answers_to(task: Task, rng: random.Random, seconds: float = 8.0) -> list[RawAnswer]:
    given = []
    for question in task.questions:
        places = [0] if question.scale.form == "pair" else range(len(task.order))
        for place in places:
            value = value_for(question, task.item, task.order[place], rng)
            spent = round(seconds * rng.uniform(0.6, 1.5), 1)
            given.append(
                RawAnswer(str(uuid.UUID(int=rng.getrandbits(128))), question.criterion, place, value, spent)
            )
    return given


def come_in(study_state: StudyState, **entry: object) -> str:
    me = study_state.enter(**entry)  # type: ignore[arg-type]
    study_state.agree(me)
    study_state.begin(me)
    return me


def work(
    study_state: StudyState, me: str, rng: random.Random, *, screens: int | None = None, seconds: float = 8.0
) -> list[str]:
    """Answer until nothing is left, or so many screens; the ids that were acknowledged."""
    saved: list[str] = []
    done = 0
    while screens is None or done < screens:
        visit = study_state.visit(me)
        if visit.task is None:
            break
        saved += study_state.submit(me, visit.task.assignment, answers_to(visit.task, rng, seconds)).saved
        done += 1
    return saved
