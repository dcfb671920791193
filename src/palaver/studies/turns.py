"""Which turns of a dialogue a question is asked about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from palaver.config import Location
from palaver.readers.roles import roles_of
from palaver.schema import Item, Output, Question, Study
from palaver.schema.response import SYSTEM, USER

MOST_ANSWERS = 1000
"""That one page may send."""


def judged_turns(question: Question, output: Output) -> tuple[int | None, ...]:
    """The numbers of the turns that are judged, from 0; (None,) where it is the output as a whole."""
    if question.per == "output" or output.dialogue is None:
        return (None,)
    speakers = [turn.speaker for turn in output.dialogue.turns]
    if question.turns == "all":
        return tuple(range(len(speakers)))
    names = tuple(dict.fromkeys(speakers))
    roles, _ = roles_of(names)
    if output.system in names:  # a log may name its speaker after the system
        roles = {name: SYSTEM if name == output.system else USER for name in names}
    wanted = SYSTEM if question.turns == "system" else USER
    return tuple(number for number, name in enumerate(speakers) if roles.get(name) == wanted)


def count_answers(item: Item, questions: Sequence[Question]) -> int:
    """How many answers a screen asks for at most."""
    return sum(len(judged_turns(question, output)) for question in questions for output in item.outputs)


def turn_problems(study: Study) -> Iterator[tuple[Location, str]]:
    """Dialogues in which there is nobody to ask about, and those that ask for too much."""
    asked = [question for question in study.questions if question.per == "turn"]
    if not asked:
        return
    for i, item in enumerate(study.items):
        where = ("items", i, "outputs")
        for question in asked:
            for output in item.outputs:
                if output.dialogue is not None and not judged_turns(question, output):
                    speakers = ", ".join(dict.fromkeys(turn.speaker for turn in output.dialogue.turns))
                    yield where, _nobody(item, question, speakers)
        if count_answers(item, study.questions) > MOST_ANSWERS:
            yield where, f"item {item.id!r} asks for more than {MOST_ANSWERS:,} answers on one screen"


def _nobody(item: Item, question: Question, speakers: str) -> str:
    who = question.turns
    return (
        f"item {item.id!r}: {question.criterion!r} asks about the {who}'s turns, and nobody is known as "
        f"{who} among {speakers or 'no turns at all'}; "
        'call the speakers "user" and "system", or say turns = "all"'
    )
