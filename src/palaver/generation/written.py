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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from palaver.artefacts import digest
from palaver.errors import DataError
from palaver.files import TextStream, cache_home, write_atomically
from palaver.generation.options import WrittenOptions
from palaver.generation.system import Notes, check_context, check_takes, request_key, stable_key
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
_SURE = 0.6
"""The share of their votes from which on a line counts as good or bad news."""
_SECOND_LINE = 0.35
"""The weight of an exchange's second nearest line: chance seldom brings two of its wordings near."""
_ONLY_LINE = 0.15
"""How much farther the second line would be of an exchange that has one only."""
_FOLLOW_UP = 0.15
"""What is said right after a reply is more likely an answer to it."""
_OTHER_KIND = 0.1
"""How much nearer an exchange must be whose kind is not what the words of the line speak for."""
_OTHER_FORM = 0.1
"""A question is less near to a statement than their words say."""


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_PERSONS = {
    "man": _word_set(
        "he him his himself son brother father dad husband boyfriend grandfather grandpa uncle nephew man boy"
    ),
    "woman": _word_set(
        "she her hers herself daughter sister mother mum mom wife girlfriend grandmother grandma aunt niece "
        "woman girl"
    ),
}
_GREETING = re.compile(
    r"^\W*(hi|hello|hey|hiya|good (morning|afternoon|evening))\b( (there|friend|people|everyone|again)\b)?"
    r"[\s,.!:;]*",
    re.IGNORECASE,
)
_ASKING = _word_set(
    "how what what's who who's where where's when why which do does did are is can could should shall would "
    "will have has"
)
_NO_CONTENT = _word_set(
    "a about an and are be can could do does did for from have has how i in is it me my of on or some "
    "something tell that the there this to was were what when where which who why will with would you your"
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
        with TextStream(path) as stream:
            exchanges += parse_exchanges(stream.read().decode("utf-8"), str(path))
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
            mistakes.append(
                f"line {number}: expected a mark (= > < >> << ~), a space and a text, found {line!r}"
            )
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


@dataclass(frozen=True)
class _Line:
    """What a person said, or a part of it."""

    text: str
    vector: Vectors
    is_question: bool
    nearest: list[tuple[float, Exchange]]
    """The nearest exchanges with their nearness, the nearest first."""


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
        self._places = _places_of_lines(self._exchanges)  # (n, most lines of an exchange)
        self._asks = np.array([_is_question(line) for line in lines])
        self._by_reply: dict[str, list[Exchange]] = {}
        self._signals = {kind: one.signals for kind, one in self._general.items()}
        for one in exchanges:
            later = [reply for child in one.follow_ups for reply in child.replies if FURTHER not in reply]
            for reply in (*one.replies, *later):  # what may follow a reply may follow later, too
                self._by_reply.setdefault(reply, []).append(one)
        self._reply_lengths = sorted({len(reply) for reply in self._by_reply})
        vectors = self._kept_vectors([*lines, *(line for line, _ in nested)])
        self._vectors = vectors[: len(lines)]  # (n, d), each of length 1
        self._children: dict[int, list[tuple[Vectors, Exchange]]] = {}
        of_child: dict[int, list[Vectors]] = {}
        for (_, child), vector in zip(nested, vectors[len(lines) :], strict=True):
            of_child.setdefault(id(child), []).append(vector)
        for one in self._exchanges:
            self._children[id(one)] = [(np.stack(of_child[id(child)]), child) for child in one.follow_ups]
        self.settings: dict[str, Any] = {
            "kind": "written",
            "exchanges": digest([asdict(one) for one in exchanges]),
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
        readings = [_readings(history[-1]) for history in histories]
        texts = list(dict.fromkeys(text for of_line in readings for text in of_line))
        vectors = dict(zip(texts, self._encode(texts), strict=True))
        replies = []
        for history, of_line, request in zip(histories, readings, requests, strict=True):
            lines = [self._line(text, vectors[text]) for text in of_line]
            key = stable_key(request_key(request), history[-1])  # not the same general reply to every line
            replies.append(Reply(self._choose(history, lines, key)))
        return replies

    def _choose(self, history: Sequence[str], lines: Sequence[_Line], key: int) -> str:
        """The reply that comes first in the order of nearness, and was not given before."""
        said = history[-2::-2]
        persons = _persons(" ".join(history[::-2]))
        for line in lines:
            candidates = self._near(line)
            if said:
                candidates += self._follow_ups(said[0], line.vector)
            for _, exchange, parent in sorted(candidates, key=lambda candidate: -candidate[0]):
                if text := _unsaid(exchange, parent, said, persons, key):
                    return text
        kind = self._kind(lines[0], said[0] if said else "")
        for name in (kind, PLAIN, *self._general):
            if name in self._general and (text := _unsaid(self._general[name], None, said, persons, key)):
                return text
        return lines[0].nearest[0][1].replies[0]  # everything has been said

    def _near(self, line: _Line) -> list[tuple[float, Exchange, Exchange | None]]:
        """Exchanges that may answer the line."""
        signalled = self._signalled(line)
        candidates: list[tuple[float, Exchange, Exchange | None]] = []
        for nearness, exchange in line.nearest[:_CANDIDATES]:
            is_other = bool(signalled) and exchange.kind in self._signals and exchange.kind != signalled
            farther = _OTHER_KIND if is_other and not line.is_question else 0.0
            if self._general and nearness < self.near + farther:
                continue
            if exchange.kind == _OPPOSITES.get(signalled):
                continue
            if exchange.kind == FACT and not _content(line.text) <= exchange.words():
                continue
            candidates.append((nearness, exchange, None))
        return candidates

    def _line(self, text: str, vector: Vectors) -> _Line:
        """The line with the exchanges in the order of their nearness, by the two nearest lines of each."""
        asks = _is_question(text)
        cosines = self._vectors @ vector - _OTHER_FORM * (self._asks != asks)  # (lines,)
        padded = np.append(cosines.astype(np.float64), -np.inf)
        of_lines = np.sort(padded[self._places], axis=1)  # (n, most lines)
        first, second = of_lines[:, -1], of_lines[:, -2]
        second = np.where(np.isinf(second), first - _ONLY_LINE, second)
        nearness = (1 - _SECOND_LINE) * first + _SECOND_LINE * second
        places = np.argsort(-nearness, kind="stable")[: max(_CANDIDATES, _NEIGHBOURS)].tolist()
        return _Line(text, vector, asks, [(float(nearness[at]), self._exchanges[at]) for at in places])

    def _follow_ups(self, reply: str, vector: Vectors) -> Iterator[tuple[float, Exchange, Exchange | None]]:
        """What may be said to the last reply, as far as it is near."""
        for parent in self._said_by(reply):
            for vectors, child in self._children.get(id(parent), ()):
                nearness = float((vectors @ vector).max()) + _FOLLOW_UP
                if nearness >= self.near:
                    yield nearness, child, parent

    def _kind(self, line: _Line, last_reply: str) -> str:
        """The kind of a line that nothing is near to: what its words say, or that of what is nearest."""
        if signalled := self._signalled(line):
            return signalled
        votes: dict[str, float] = {}
        for nearness, exchange in line.nearest[:_NEIGHBOURS]:
            if exchange.kind in self._general and (exchange.kind in _QUESTIONS) == line.is_question:
                votes[exchange.kind] = votes.get(exchange.kind, 0.0) + max(0.0, nearness) ** 4
        if not votes:
            return FACT if line.is_question else PLAIN
        kind = max(votes, key=lambda kind: votes[kind])
        after_bad = any(one.kind in ("bad", "problem") for one in self._said_by(last_reply))
        if kind in _OPPOSITES and (
            votes[kind] <= _SURE * sum(votes.values()) or (kind == "good" and after_bad)
        ):
            return PLAIN  # neither pity nor cheers for what may be neither; no cheers right after bad news
        return kind

    def _said_by(self, reply: str) -> Iterator[Exchange]:
        """The exchanges that a reply belongs to; there may be words before it: "Another one: "."""
        for length in self._reply_lengths:
            if length <= len(reply):
                yield from self._by_reply.get(reply[-length:], ())

    def _signalled(self, line: _Line) -> str:
        """The first kind that words of the line speak for."""
        text = f" {' '.join(_words(line.text))} "
        for kind, signals in self._signals.items():
            if (kind in _QUESTIONS) == line.is_question and any(f" {one} " in text for one in signals):
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


def _places_of_lines(exchanges: Sequence[Exchange]) -> npt.NDArray[np.int64]:
    """A row an exchange: where its lines stand among all lines; -1 fills the rows up, two places at least."""
    begins = np.cumsum([0, *(len(one.lines) for one in exchanges)])
    places = begins[:-1, None] + np.arange(max([2, *(len(one.lines) for one in exchanges)]))
    return np.where(places < begins[1:, None], places, -1)


def _unsaid(
    exchange: Exchange, parent: Exchange | None, said: Sequence[str], persons: set[str], key: int
) -> str:
    """A reply of the exchange that is new and speaks of nobody else; empty if there is none."""
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


def _readings(line: str) -> list[str]:
    """What to look for: the line without its greeting; if nothing is near to that, a question at its end."""
    rest = _GREETING.sub("", line)
    whole = rest if len(_words(rest)) > 1 else line
    last = re.split(r"(?<=[.!?])\s+", whole)[-1]
    return list(dict.fromkeys([whole, last] if _is_question(last) else [whole]))


def _words(line: str) -> list[str]:
    return re.findall(r"[a-z']+", line.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))


def _is_question(line: str) -> bool:
    """People often leave out the question mark."""
    first = _words(line)[:1]
    return "?" in line[-3:] or (bool(first) and first[0] in _ASKING and not line.endswith("!"))


def _content(line: str) -> set[str]:
    """The words that say what a line is about."""
    return set(re.findall(r"[a-z0-9]+", line.lower())) - _NO_CONTENT


def open_written(name: str, options: WrittenOptions, folder: Path) -> WrittenSystem:
    """The system that `systems.toml` describes."""
    path = folder / options.path if options.path else SHIPPED
    files = sorted(path.glob("*.txt")) if path.is_dir() else [path]
    return WrittenSystem(name, read_exchanges(files), open_encoder(options.encoder), near=options.near)
