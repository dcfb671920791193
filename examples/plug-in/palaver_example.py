"""A plug-in of every kind. Each is a few lines here and one line in pyproject.toml."""

from collections.abc import Iterator
from typing import Literal

from palaver.schema import Dialogue, Response, Turn
from palaver.schema.scale import Ordinal


def polite(response: Response) -> float:
    """A judge: how many words of politeness a response has."""
    words = (response.response or "").lower().split()
    return sum(word.strip(".,!?") in ("please", "thanks", "sorry") for word in words)


def parrot(text: str, prefix: str = "You said:") -> str:
    """A system: it replies to the last turn. `prefix` can be set in systems.toml."""
    return f"{prefix} {text}"


def letters(texts: list[str]) -> list[list[int]]:
    """An encoder: how often each letter occurs."""
    return [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


def questions(response: str) -> float:
    """Question marks per response"""
    return response.count("?")


questions.better = "neither"  # no end of this metric is the good one


def punctuation(texts: list[str]) -> list[dict[str, float]]:
    """A recogniser: exclamation marks are extraverted, nothing else is known."""
    unknown = dict.fromkeys(("openness", "conscientiousness", "agreeableness", "neuroticism"), 4.0)
    return [{**unknown, "extraversion": min(7.0, 1.0 + text.count("!"))} for text in texts]


class Stars(Ordinal):
    """A scale: one to five stars."""

    kind: Literal["stars"] = "stars"
    low: int = 1
    high: int = 5


def knock_knock() -> Iterator[Dialogue]:
    """A corpus: its dialogues one by one."""
    for number, name in enumerate(("Owls", "Lettuce"), start=1):
        texts = ("Knock, knock.", "Who is there?", f"{name}.", f"{name} who?")
        turns = [Turn(speaker="AB"[n % 2], text=text) for n, text in enumerate(texts)]
        yield Dialogue(id=f"joke-{number}", turns=turns)
