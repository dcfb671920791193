"""Articles: which are kept, how they are cut, which are chosen (Topical-Chat, sections 3.1 and 3.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import accumulate, pairwise

from palaver.knowledge.leads import count_spaced_words, paragraphs
from palaver.knowledge.mentions import tokens
from palaver.text.words import sentences

FEWEST_WORDS, MOST_WORDS = 600, 1000
FEWEST_ENTITIES = 3
N_PARTS = 4


def article_fault(text: str, mentions: Mapping[str, int]) -> str | None:
    """Why an article is not kept; None if it is."""
    n_words = count_spaced_words(text)
    if n_words < FEWEST_WORDS:
        return f"fewer than {FEWEST_WORDS} words"
    if n_words > MOST_WORDS:
        return f"more than {MOST_WORDS:,} words"
    if len(mentions) < FEWEST_ENTITIES:
        return f"mentions fewer than {FEWEST_ENTITIES} of the entities"
    if is_profane(text):
        return "profane"
    if len(_sentences(text)) < N_PARTS:
        return f"fewer than {N_PARTS} sentences to cut it into sections"
    return None


def is_profane(text: str) -> bool:
    """Whether a text holds a word of `profanity.txt`."""
    return not _profane_words().isdisjoint(tokens(text))


@cache
def _profane_words() -> frozenset[str]:
    lines = files("palaver.knowledge").joinpath("profanity.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def top_entities(mentions: Mapping[str, int], n: int = FEWEST_ENTITIES) -> list[str]:
    """The entities an article mentions most often; `mentions` stand in that order."""
    return list(mentions)[:n]


@lru_cache(maxsize=5000)  # each configuration asks again
def cut_article(text: str, n_parts: int = N_PARTS) -> tuple[str, ...]:
    """Parts of similar size: each bound is the sentence's end next to its share of the words."""
    pieces = _sentences(text)
    if len(pieces) < n_parts:
        raise ValueError(f"{len(pieces)} sentences cannot be cut into {n_parts} parts")
    words_before = [0, *accumulate(count_spaced_words(piece) for piece in pieces)]
    bounds = [0]
    for part in range(1, n_parts):
        target = words_before[-1] * part / n_parts
        first, last = bounds[-1] + 1, len(pieces) - (n_parts - part)  # each part has a sentence
        bounds.append(min(range(first, last + 1), key=lambda i: abs(words_before[i] - target)))
    bounds.append(len(pieces))
    parts = ["".join(pieces[begin:end]) for begin, end in pairwise(bounds)]
    return tuple(part.strip() for part in parts)


def _sentences(text: str) -> list[str]:
    """The sentences with what follows them: a space, or an empty line at the end of a paragraph."""
    pieces: list[str] = []
    for paragraph in paragraphs(text):
        own = sentences(paragraph)
        pieces += [f"{sentence} " for sentence in own[:-1]]
        pieces.append(f"{own[-1]}\n\n")
    return pieces


def choose_articles(topics: Sequence[Sequence[str]], budgets: Mapping[str, int], number: int) -> list[int]:
    """The numbers of `number` articles that cover the topics as the budgets do.

    `topics` are those of each article's top entities. A topic's quota is its share of the budgets. The next
    article is the one whose topics are, together, furthest behind their quotas; of equals the first one.
    """
    total = sum(budgets.values())
    slots = number * FEWEST_ENTITIES
    quotas = {topic: slots * budget / total for topic, budget in budgets.items() if budget}
    taken: Counter[str] = Counter()
    waiting: dict[tuple[str, ...], list[int]] = {}  # articles with the same topics are worth the same
    for place, own in enumerate(topics):
        waiting.setdefault(tuple(sorted(own)), []).append(place)
    for places in waiting.values():
        places.reverse()

    def gain(own: tuple[str, ...]) -> float:
        gained = 0.0
        for topic, times in Counter(own).items():
            if topic in quotas:
                before = min(taken[topic] / quotas[topic], 1)
                after = min((taken[topic] + times) / quotas[topic], 1)
                gained += (1 - before) ** 2 - (1 - after) ** 2
        return gained

    chosen: list[int] = []
    while waiting and len(chosen) < number:
        best = max(waiting, key=lambda own: (gain(own), -waiting[own][-1]))
        chosen.append(waiting[best].pop())
        taken.update(best)
        if not waiting[best]:
            del waiting[best]
    return sorted(chosen)
