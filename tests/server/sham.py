"""Raters made up for the tests: they answer whatever they are shown."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from palaver.schema import Item, Question
from palaver.schema.scale import Binary, Checkboxes, Likert, Ordinal, Pairwise
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
    if isinstance(scale, Likert | Ordinal):
        middle = (scale.low + scale.high) / 2
        return min(max(round(middle + 1 + quality), scale.low), scale.high)
    if isinstance(scale, Binary):
        return int(quality > -0.5)
    if isinstance(scale, Checkboxes):
        return [scale.options[-1] if quality > -1 else scale.options[0]]
    if isinstance(scale, Pairwise):
        return "tie" if scale.ties and rng.random() < 0.1 else "win" if rng.random() < 0.8 else "loss"
    return max(1, round(100 * 1.4**quality))


def answers_to(task: Task, rng: random.Random, seconds: float = 8.0) -> list[RawAnswer]:
    given = []
    for question in task.questions:
        places = [0] if isinstance(question.scale, Pairwise) else range(len(task.order))
        for place in places:
            value = value_for(question, task.item, task.order[place], rng)
            spent = round(seconds * rng.uniform(0.6, 1.5), 1)
            given.append(
                RawAnswer(str(uuid.UUID(int=rng.getrandbits(128))), question.criterion, place, value, spent)
            )
    return given


def come_in(service: StudyState, **entry: object) -> str:
    me = service.enter(**entry)  # type: ignore[arg-type]
    service.agree(me)
    service.begin(me)
    return me


def work(
    service: StudyState, me: str, rng: random.Random, *, screens: int | None = None, seconds: float = 8.0
) -> list[str]:
    """Answer until nothing is left, or so many screens; the ids that were acknowledged."""
    saved: list[str] = []
    done = 0
    while screens is None or done < screens:
        visit = service.visit(me)
        if visit.task is None:
            break
        saved += service.submit(me, visit.task.assignment, answers_to(visit.task, rng, seconds)).ids
        done += 1
    return saved
