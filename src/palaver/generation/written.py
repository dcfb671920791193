"""Written replies: what a person says is compared with lines written beforehand, and the reply to the nearest
line is given.

A file of exchanges is plain text:

    = bad                         the kind of the exchanges below
    > I lost my job.              what a person may say, in several wordings
    > They fired me.
    < I'm sorry. What happened?   what is replied; one that was not said yet is chosen
    >> I don't know.              what may be said to that reply
    << That makes it harder.      and what is replied then; ^ stands for another reply of the exchange above
    > *                           what is replied to any line of this kind that nothing is near to
    < That sounds hard.
    ~ sad lost broken i_miss      words that speak for this kind, "_" in place of spaces

No language model is at work: it says nothing that nobody wrote, and misses the point where nobody wrote it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from palaver.artefacts import digest
from palaver.errors import DataError, require
from palaver.files import cache_home, check_readable, write_atomically
from palaver.generation.options import WrittenOptions
from palaver.generation.system import Notes, check_context, check_takes, request_key
from palaver.models.encoders import Encoder, open_encoder
from palaver.models.encoders.encoder import Vectors, checked
from palaver.registry import Named
from palaver.schema import Reply, Request

SHIPPED = Path(__file__).parent / "exchanges"
"""The exchanges that come with the package, a file for each part of life."""
ANY = "*"
FURTHER = "^"
FACT = "fact"
"""Exchanges of this kind answer a question about the world: their reply is false where one word differs."""
PLAIN = "plain"
_OPPOSITES = {"bad": "good", "good": "bad"}
"""Where words speak for one of them, no reply of the other is given."""
_QUESTIONS = frozenset({"choice", "advice", "fact", "self", "request"})
"""Kinds whose words count in questions; those of the others count in statements."""
_CANDIDATES = 9
_NEIGHBOURS = 15
"""How many of the nearest exchanges say of what kind a line is."""
_SECOND_LINE = 0.35
"""The weight of an exchange's second nearest line: one that is near by chance is seldom so in two wordings."""
_ONLY_LINE = 0.15
"""How much farther the second line would be of an exchange that has one only."""
_FOLLOW_UP = 0.15
"""What is said right after a reply is more likely an answer to it."""
_OTHER_FORM = 0.1
"""A question is less near to a statement than their words say."""
_PERSONS = {
    "man": frozenset(
        "he him his himself son brother father dad husband boyfriend grandfather grandpa uncle nephew man boy "
        "grandson tom paul peter sam max ben".split()
    ),
    "woman": frozenset(
        "she her hers herself daughter sister mother mum mom wife girlfriend grandmother grandma aunt niece "
        "woman girl granddaughter anna laura mia luna bella".split()
    ),
}
_NO_CONTENT = frozenset(
    "a about an and are be can could do does did for from have has how i in is it me my of on or some something "
    "tell that the there this to was were what when where which who why will with would you your".split()
)


@dataclass
class Exchange:
    """What may be said, and what is replied to it."""

    kind: str
    lines: list[str] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    follow_ups: list[Exchange] = field(default_factory=list)
    signals: list[str] = field(default_factory=list)
    """Of general replies: words that speak for their kind."""

    def words(self) -> set[str]:
        return {word for line in self.lines for word in _content(line)}


def read_exchanges(paths: Iterable[Path]) -> list[Exchange]:
    """The exchanges of the files, in their order."""
    exchanges: list[Exchange] = []
    for path in paths:
        check_readable(path)
        exchanges += parse_exchanges(path.read_text(encoding="utf-8"), str(path))
    if all(exchange.lines == [ANY] for exchange in exchanges):
        raise DataError("there are no exchanges to choose from", "lines begin with '> ', replies with '< '")
    return exchanges


def parse_exchanges(text: str, source: str) -> list[Exchange]:
    """The exchanges of a file; every mistake is told with its line."""
    kind, exchanges, mistakes = "", [], []
    last = ""
    for number, line in enumerate(text.splitlines(), start=1):
        mark, _, said = line.strip().partition(" ")
        said = said.strip()
        if not mark or mark.startswith("#"):
            continue
        if mark not in ("=", ">", "<", ">>", "<<", "~") or not said:
            mistakes.append(f"line {number}: expected a mark (= > < >> << ~), a space and a text, found {line!r}")
            continue
        if mark == "=":
            kind = said
        elif mark == ">":
            if last != ">":
                exchanges.append(Exchange(kind))
            exchanges[-1].lines.append(said)
        elif not exchanges or (mark == "<<" and last not in (">>", "<<")):
            mistakes.append(f"line {number}: there is no line before it that {said!r} belongs to")
        elif mark == "~":
            exchanges[-1].signals += [word.replace("_", " ") for word in said.split()]
        elif mark == "<":
            if last not in (">", "<"):
                mistakes.append(f"line {number}: replies come right after the lines that they answer")
            exchanges[-1].replies.append(said)
        elif mark == ">>":
            if last != ">>":
                exchanges[-1].follow_ups.append(Exchange(kind))
            exchanges[-1].follow_ups[-1].lines.append(said)
        else:
            exchanges[-1].follow_ups[-1].replies.append(said)
        last = mark
    for exchange in exchanges:
        for one in (exchange, *exchange.follow_ups):
            if not one.replies:
                mistakes.append(f"{one.lines[0]!r} has no reply")
    if mistakes:
        raise DataError(f"{source} is no file of exchanges:", problems=mistakes)
    return exchanges


class WrittenSystem(Named):
    """Replies that people wrote, chosen by what was said."""

    def __init__(self, name: str, exchanges: Sequence[Exchange], encoder: Encoder, *, near: float) -> None:
        self.name = name
        self.takes: frozenset[str] = frozenset()
        self.notes = Notes()
        self.near = near
        self._encoder = encoder
        self._general = {one.kind: one for one in exchanges if one.lines == [ANY]}
        self._exchanges = [one for one in exchanges if one.lines != [ANY]]
        nested = [
            (line, child) for one in self._exchanges for child in one.follow_ups for line in child.lines
        ]
        lines = [line for one in self._exchanges for line in one.lines]
        self._begins = np.cumsum([0, *(len(one.lines) for one in self._exchanges)])[:-1].tolist()
        self._asks = np.array([_is_question(line) for line in lines])
        self._by_reply: dict[str, list[Exchange]] = {}
        self._signals = {kind: one.signals for kind, one in self._general.items()}
        for one in exchanges:
            for reply in one.replies:
                self._by_reply.setdefault(reply, []).append(one)
        vectors = self._kept_vectors([*lines, *(line for line, _ in nested)])
        self._vectors = vectors[: len(lines)]  # (n, d), each of length 1
        self._children: dict[int, list[tuple[Vectors, Exchange]]] = {}
        of_child: dict[int, list[Vectors]] = {}
        for (_, child), vector in zip(nested, vectors[len(lines) :], strict=True):
            of_child.setdefault(id(child), []).append(vector)
        for one in self._exchanges:
            self._children[id(one)] = [(np.stack(of_child[id(child)]), child) for child in one.follow_ups]
        written = [[one.kind, one.lines, one.replies, [c.replies for c in one.follow_ups]] for one in exchanges]
        self.settings: dict[str, Any] = {
            "kind": "written",
            "exchanges": digest(written),
            "encoder": encoder.signature,
            "near": near,
        }

    def reply(self, requests: Sequence[Request]) -> list[Reply]:
        """Replies that depend on each request alone."""
        histories = []
        for request in requests:
            check_takes(self, request)
            check_context(request.dialogue)
            histories.append([turn.text.strip() for turn in request.dialogue.turns if turn.text.strip()])
        texts = list(dict.fromkeys(history[-1] for history in histories))
        vectors = dict(zip(texts, self._encode(texts), strict=True))
        return [
            Reply(self._choose(history, vectors[history[-1]], request_key(request)))
            for history, request in zip(histories, requests, strict=True)
        ]

    def _choose(self, history: Sequence[str], vector: Vectors, key: int) -> str:
        """The reply that comes first in the order of nearness, and was not given before."""
        line, said = history[-1], history[-2::-2]
        cosines = self._vectors @ vector  # (n,)
        cosines = cosines - _OTHER_FORM * (self._asks != _is_question(line))
        nearest = self._by_nearness(cosines)
        signalled = self._signalled(line)
        persons = _persons(" ".join(history[::-2]))
        candidates = [
            (nearness, exchange, None)
            for nearness, exchange in nearest[:_CANDIDATES]
            if nearness >= self.near or not self._general
            if exchange.kind != FACT or _content(line) <= exchange.words()
            if exchange.kind != _OPPOSITES.get(signalled)
        ]
        if said:
            candidates += self._follow_ups(said[0], vector)
        for _, exchange, parent in sorted(candidates, key=lambda candidate: -candidate[0]):
            if text := _unsaid(exchange, parent, said, persons, key):
                return text
        kind = self._kind(nearest[:_NEIGHBOURS], signalled, said[0] if said else "")
        for name in (kind, PLAIN, *self._general):
            if name in self._general and (text := _unsaid(self._general[name], None, said, persons, key)):
                return text
        return nearest[0][1].replies[0]  # everything has been said

    def _by_nearness(self, cosines: Vectors) -> list[tuple[float, Exchange]]:
        """The exchanges, the nearest first, by the two nearest lines of each."""
        pairs = []
        for begin, exchange in zip(self._begins, self._exchanges, strict=True):
            of_lines = sorted(cosines[begin : begin + len(exchange.lines)].tolist(), reverse=True)
            second = of_lines[1] if len(of_lines) > 1 else of_lines[0] - _ONLY_LINE
            pairs.append(((1 - _SECOND_LINE) * of_lines[0] + _SECOND_LINE * second, exchange))
        return sorted(pairs, key=lambda pair: -pair[0])

    def _follow_ups(
        self, reply: str, vector: Vectors
    ) -> Iterator[tuple[float, Exchange, Exchange | None]]:
        """What may be said to the last reply, as far as it is near."""
        for parent in self._said_by(reply):
            for vectors, child in self._children.get(id(parent), ()):
                nearness = float((vectors @ vector).max()) + _FOLLOW_UP
                if nearness >= self.near:
                    yield nearness, child, parent

    def _kind(self, nearest: Sequence[tuple[float, Exchange]], signalled: str, last_reply: str) -> str:
        """The kind of a line that nothing is near to: what its words say, or that of the nearest exchanges."""
        if signalled:
            return signalled
        votes: Counter[str] = Counter()
        for nearness, exchange in nearest:
            if exchange.kind in self._general:
                votes[exchange.kind] += max(0.0, nearness) ** 4
        kind = max(votes, key=lambda kind: votes[kind]) if votes else PLAIN
        if kind == "good" and any(one.kind == "bad" for one in self._said_by(last_reply)):
            return PLAIN  # nobody is cheered at after bad news
        return kind

    def _said_by(self, reply: str) -> Iterator[Exchange]:
        """The exchanges that a reply belongs to; there may be words before it: "Another one: "."""
        for text, exchanges in self._by_reply.items():
            if reply.endswith(text):
                yield from exchanges

    def _signalled(self, line: str) -> str:
        """The first kind that words of the line speak for."""
        words = re.findall(r"[a-z']+", line.lower())
        text = f" {' '.join(words)} "
        for kind, signals in self._signals.items():
            if (kind in _QUESTIONS) == _is_question(line) and any(f" {one} " in text for one in signals):
                return kind
        return ""

    def _encode(self, texts: Sequence[str]) -> Vectors:
        rows = checked(self._encoder.encode(list(texts)), texts, self._encoder.name)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    def _kept_vectors(self, lines: list[str]) -> Vectors:
        """The vectors of the written lines: encoded once, then read from the cache."""
        if not self._encoder.signature:
            return self._encode(lines)
        path = cache_home() / "written" / f"{digest(self._encoder.signature, lines)[:32]}.npy"
        try:
            vectors = np.load(path).astype(np.float32)
            if vectors.shape[0] == len(lines):
                return vectors
        except (OSError, ValueError):  # not there yet, or not whole
            pass
        vectors = self._encode(lines)
        with write_atomically(path, "wb") as file:
            np.save(file, vectors.astype(np.float16))
        return vectors.astype(np.float16).astype(np.float32)  # the same as what is read the next time


def _unsaid(
    exchange: Exchange, parent: Exchange | None, said: Sequence[str], persons: set[str], key: int
) -> str:
    """A reply of the exchange that was not given before, and speaks of nobody else; empty if there is none."""
    start = key % len(exchange.replies)
    for reply in exchange.replies[start:] + exchange.replies[:start]:
        if FURTHER not in reply:
            if not any(before.endswith(reply) for before in said) and _persons(reply) <= persons:
                return reply
        elif parent is not None and (further := _unsaid(parent, None, said, persons, key)):
            return reply.replace(FURTHER, further)
    return ""


def _persons(text: str) -> set[str]:
    """Whether a man, a woman or both are spoken of."""
    words = set(re.findall(r"[a-z]+", text.lower()))
    return {name for name, of_them in _PERSONS.items() if words & of_them}


def _is_question(line: str) -> bool:
    return "?" in line[-3:]


def _content(line: str) -> set[str]:
    """The words that say what a line is about."""
    return set(re.findall(r"[a-z0-9]+", line.lower())) - _NO_CONTENT


def open_written(name: str, options: WrittenOptions, folder: Path) -> WrittenSystem:
    """The system that `systems.toml` describes."""
    require("transformers", "models")
    path = folder / options.path if options.path else SHIPPED
    files = sorted(path.glob("*.txt")) if path.is_dir() else [path]
    return WrittenSystem(name, read_exchanges(files), open_encoder(options.encoder), near=options.near)
