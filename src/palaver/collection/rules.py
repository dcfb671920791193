"""The rules of a collection, as far as the host needs them: times, numbers, and what is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from palaver.errors import Sentence, UserError, join_sentences
from palaver.schema import Question

Lineup = tuple[tuple[str, ...], ...]
"""The bots of each part of a session; those of one part are talked to side by side."""


@dataclass(frozen=True)
class Rules:
    """How people meet, and when they are done."""

    lineups: tuple[Lineup, ...] = ()
    """Whom people talk to, each as often as the others; nobody named: they talk with each other."""
    substitute: str | None = None
    """The bot that may take the seat of somebody who left."""
    meetings: tuple[tuple[str, str], ...] = ()
    """Which groups of people may meet, in either order; nothing for anybody."""
    same_language: bool = True
    """Only people who read the pages in the same language meet."""
    fewest_turns: int = 20
    """Of a conversation, before it can be submitted; with bots, of each part."""
    alternating: bool = True
    most_conversations: int = 1
    """Of one person."""
    n_plans: int | None = None
    """How many conversations are wanted, or reading sets there are."""
    longest_message: int = 2000
    """Characters."""
    wait_seconds: float = 300.0
    """The stated time: who has waited so long may leave, and is paid for it."""
    silence_seconds: float = 15.0
    """Without a sign of life somebody is away."""
    grace_seconds: float = 60.0
    """Who comes back within this time goes on."""
    ready_seconds: float = 15.0
    """Within which somebody who was given a partner says that they are there."""
    idle_seconds: float = 600.0
    """Within which somebody whose turn it is says something."""
    bot_seconds: float = 60.0
    about_own: tuple[Question, ...] = ()
    """Asked about one's own message."""
    about_partner: tuple[Question, ...] = ()
    """Asked about each message of the partner."""
    about_replies: tuple[Question, ...] = ()
    """Asked about the replies of two bots side by side to each message: which is better?"""
    about_whole: tuple[Question, ...] = ()
    """Asked at the end; about each bot, where there are several."""
    about_pair: tuple[Question, ...] = ()
    """Asked at the end about two bots: which was better?"""
    reveal: bool = False
    """Who has rated a conversation with bots is told their names."""
    seed: int = 0

    def may_meet(self, first: str, second: str) -> bool:
        """Whether people of two groups may meet."""
        return not self.meetings or (first, second) in self.meetings or (second, first) in self.meetings

    @property
    def own_share(self) -> int:
        """The turns of one person in a whole conversation."""
        return max(1, self.fewest_turns // 2)


def parse_answers(questions: tuple[Question, ...], answers: dict[str, str]) -> dict[str, Any]:
    """The values of what a page sent; the error says which question is not answered well."""
    asked = {question.criterion: question for question in questions}
    problems: list[Sentence] = [
        Sentence("{criterion} is not asked here", criterion=criterion)
        for criterion in answers
        if criterion not in asked
    ]
    values: dict[str, Any] = {}
    for criterion, text in answers.items():
        if criterion in asked:
            try:
                value = asked[criterion].scale.read_answer(text, (0, 1))
            except ValueError as error:
                problems.append(
                    Sentence("{criterion}: {problem}", criterion=criterion, problem=error.args[0])
                )
                continue
            values[criterion] = list(value) if isinstance(value, tuple) else value
    if problems:
        raise UserError(join_sentences(problems))
    return values


def missing(questions: tuple[Question, ...], answers: dict[str, Any]) -> list[str]:
    """Required questions that have no answer yet."""
    return [q.criterion for q in questions if q.required and q.criterion not in answers]
