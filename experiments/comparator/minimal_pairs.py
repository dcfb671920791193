"""Pairs of dialogues of which one is better for a known reason, to teach a comparator what to look at.

A short beginning of a real conversation between people is spoilt in one way: the last reply comes from
elsewhere, repeats an earlier one, is scrambled, insults, says nothing, passes the question by or rambles.
What real beginnings do not give (truth, contradiction, what the user said before) is made of the templates
in minimal_pairs.toml. None of the texts is one of `palaver compare audit`.
"""

from __future__ import annotations

import gzip
import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Turns = list[tuple[str, str]]
"""Who and what; who is "user" or "system"."""

CORPORA = ("self_dialogue", "taskmaster4")
"""Between people, or a person playing the system; BSD-3 and CC BY 4.0."""
TEMPLATES = tomllib.loads(Path(__file__).with_name("minimal_pairs.toml").read_text(encoding="utf-8"))
_NONSENSE = TEMPLATES["nonsense_words"].split()
_STOP = frozenset(TEMPLATES["function_words"].split())


@dataclass(frozen=True)
class Pair:
    """Two dialogues, the first of which is better."""

    kind: str
    good: Turns
    bad: Turns


def read_beginnings(data: Path, limit: int = 6000) -> list[Turns]:
    """Beginnings of two to six turns that end with a reply of the system, from the training splits."""
    rng = np.random.default_rng(5)
    beginnings: list[Turns] = []
    for name in CORPORA:
        of_corpus: list[Turns] = []
        with gzip.open(data / "dialogue" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                if row.get("split", "train") != "train":
                    continue
                texts = [turn["t"].strip() for turn in row["turns"]]
                length = 2 * int(rng.integers(1, 4))
                start = 2 * int(rng.integers(0, max(1, (len(texts) - length) // 2 + 1)))
                part = texts[start : start + length]
                if len(part) == length and all(2 <= len(text.split()) <= 40 for text in part):
                    of_corpus.append([("system" if i % 2 else "user", text) for i, text in enumerate(part)])
        rng.shuffle(of_corpus)  # type: ignore[arg-type]  # in place
        beginnings += of_corpus[: limit // len(CORPORA)]
    return beginnings


def make_pairs(beginnings: list[Turns], n: int, seed: int = 0) -> list[Pair]:
    """`n` pairs, as many of each kind."""
    rng = np.random.default_rng(seed)
    makers = list(MAKERS.items())
    pairs = []
    while len(pairs) < n:
        kind, make = makers[len(pairs) % len(makers)]
        pair = make(beginnings[int(rng.integers(len(beginnings)))], beginnings, rng)
        if pair is not None and pair[0] != pair[1]:
            good, bad = pair
            if rng.random() < 0.5:  # the same reaction of the user after both
                reply = ("user", _one(TEMPLATES["plain_replies"], rng))
                if good[-1][0] == "system":
                    good, bad = [*good, reply], [*bad, reply]
            pairs.append(Pair(kind, good, bad))
    return pairs


Made = tuple[Turns, Turns] | None
Maker = Callable[[Turns, list[Turns], np.random.Generator], Made]


def _one(texts: list[str], rng: np.random.Generator) -> str:
    return texts[int(rng.integers(len(texts)))]


def _with_reply(turns: Turns, text: str) -> Turns:
    return [*turns[:-1], ("system", text)]


def _topic_of(text: str) -> str:
    """The longest word of a text that is no function word."""
    words = [word.strip(".,!?;:\"'()").lower() for word in text.split()]
    content = [word for word in words if len(word) > 3 and word not in _STOP]
    return max(content, key=len, default="that")


def off_topic(turns: Turns, beginnings: list[Turns], rng: np.random.Generator) -> Made:
    other = beginnings[int(rng.integers(len(beginnings)))]
    replies = [text for who, text in other if who == "system"]
    return turns, _with_reply(turns, _one(replies, rng))


def repetition(turns: Turns, beginnings: list[Turns], rng: np.random.Generator) -> Made:
    if len(turns) < 4:
        return turns, _with_reply(turns, turns[-2][1])  # says the user's turn again
    earlier = [text for who, text in turns[:-1] if who == "system"]
    return turns, _with_reply(turns, _one(earlier, rng))


def nonsense(turns: Turns, beginnings: list[Turns], rng: np.random.Generator) -> Made:
    words = turns[-1][1].split()
    if len(words) < 4:
        return None
    if rng.random() < 0.4:
        rng.shuffle(words)
    else:
        swapped = rng.random(len(words)) < 0.6
        words = [_one(_NONSENSE, rng) if swap else word for word, swap in zip(words, swapped, strict=True)]
    return turns, _with_reply(turns, " ".join(words))


def praise(turns: Turns, beginnings: list[Turns], rng: np.random.Generator) -> Made:
    spoilt = (nonsense if rng.random() < 0.7 else off_topic)(turns, beginnings, rng)
    if spoilt is None:
        return None
    plain, happy = _one(TEMPLATES["plain_replies"], rng), _one(TEMPLATES["praise"], rng)
    return [*turns, ("user", plain)], [*spoilt[1], ("user", happy)]


def politeness(turns: Turns, beginnings: list[Turns], rng: np.random.Generator) -> Made:
    reply = turns[-1][1]
    kind, rude = _one(TEMPLATES["courtesies"], rng), _one(TEMPLATES["insults"], rng)
    draw = rng.random()
    if draw < 0.5:
        return _with_reply(turns, f"{kind} {reply}"), _with_reply(turns, f"{rude} {reply}")
    if draw < 0.8:
        return turns, _with_reply(turns, f"{reply} {rude}")
    return turns, _with_reply(turns, rude)


def answer(turns: Turns, beginnings: list[Turns], rng: np.random.Generator) -> Made:
    if "?" not in turns[-2][1] or "?" in turns[-1][1]:
        return None
    return turns, _with_reply(turns, _one(TEMPLATES["deferrals"], rng).format(x=_topic_of(turns[-2][1])))


def length(turns: Turns, beginnings: list[Turns], rng: np.random.Generator) -> Made:
    if len(turns[-1][1].split()) > 14:
        return None
    return turns, _with_reply(turns, _one(TEMPLATES["rambles"], rng).format(x=_topic_of(turns[-2][1])))


def silence(turns: Turns, beginnings: list[Turns], rng: np.random.Generator) -> Made:
    return (turns, turns[:-1]) if len(turns) > 2 else None


def truth(turns: Turns, beginnings: list[Turns], rng: np.random.Generator) -> Made:
    if rng.random() < 0.15:
        a, b = int(rng.integers(2, 20)), int(rng.integers(2, 20))
        asked, wrong = f"what is {a} plus {b}?", a + b + int(rng.choice([-7, -3, -1, 1, 2, 6, 10]))
        return _asked(turns, asked, f"{a} plus {b} is {a + b}.", f"{a} plus {b} is {wrong}.", rng)
    question = _one(list(TEMPLATES["truth"]), rng)
    template = TEMPLATES["truth"][question]
    facts = TEMPLATES["lists"][template["list"]]
    key = _one(list(facts), rng)
    wrong = _one([value for value in facts.values() if value != facts[key]], rng)
    good, bad = (template["good"].format(key=key, value=value) for value in (facts[key], wrong))
    return _asked(turns, question.format(key=key), good, bad, rng)


def _asked(turns: Turns, asked: str, good: str, bad: str, rng: np.random.Generator) -> Made:
    """A question and its answers, sometimes after a real beginning."""
    before = turns if rng.random() < 0.3 else []
    both = [[*before, ("user", asked), ("system", text)] for text in (good, bad)]
    return both[0], both[1]


def consistency(turns: Turns, beginnings: list[Turns], rng: np.random.Generator) -> Made:
    said, asked, good, bad = _relation("consistency", rng)
    before = [("user", _one(["tell me about you.", "what about you?", "and you?", "hi, who are you?"], rng))]
    between = turns if rng.random() < 0.25 else []
    head = [*before, ("system", said), *between, ("user", asked)]
    return [*head, ("system", good)], [*head, ("system", bad)]


def memory(turns: Turns, beginnings: list[Turns], rng: np.random.Generator) -> Made:
    said, asked, good, bad = _relation("memory", rng)
    between: Turns = turns if rng.random() < 0.25 else []
    reply = ("system", _one(["i see.", "good to know.", "thanks, i will remember that.", "oh, ok."], rng))
    head = [("user", said), reply, *between, ("user", asked)]
    return [*head, ("system", good)], [*head, ("system", bad)]


def _relation(kind: str, rng: np.random.Generator) -> tuple[str, str, str, str]:
    """What was said, what is asked, the reply that goes with it and the one that does not."""
    rows = TEMPLATES[kind]["turns"]
    said, asked, good, bad, otherwise = rows[int(rng.integers(len(rows)))]
    return (said, asked, good, bad) if rng.random() < 0.5 else (otherwise, asked, bad, good)


def read_inferences(data: Path) -> list[tuple[str, str, str]]:
    """A sentence, what follows from it and what contradicts it (counterfactual SNLI, CC BY-SA 4.0)."""
    by_premise: dict[str, dict[str, list[str]]] = {}
    with gzip.open(data / "sentences" / "cad_nli_train.tsv.gz", "rt", encoding="utf-8") as file:
        next(file)
        for line in file:
            premise, hypothesis, label = line.rstrip("\n").split("\t")
            by_premise.setdefault(premise, {}).setdefault(label, []).append(hypothesis)
    return [
        (premise, follows, contradicts)
        for premise, labels in by_premise.items()
        for follows in labels.get("entailment", ())[:2]
        for contradicts in labels.get("contradiction", ())[:2]
    ]


def inference_pairs(inferences: list[tuple[str, str, str]], n: int, seed: int = 0) -> list[Pair]:
    """`n` pairs in which the system contradicts itself or the user."""
    rng = np.random.default_rng((seed, 1))
    pairs = []
    for row in rng.integers(len(inferences), size=n):
        said, good, bad = inferences[int(row)]
        if rng.random() < 0.5:
            asked = _one(["what else do you see?", "so what is going on?", "tell me more.", "and?"], rng)
            head: Turns = [("user", "what do you see?"), ("system", said), ("user", asked)]
        else:
            head = [("user", said)]
        start = _one(["", "so ", "i see, ", "yes, "], rng)
        pairs.append(Pair("inference", [*head, ("system", start + good)], [*head, ("system", start + bad)]))
    return pairs


MAKERS: dict[str, Maker] = {
    "off topic": off_topic,
    "repetition": repetition,
    "nonsense": nonsense,
    "praise": praise,
    "politeness": politeness,
    "answer": answer,
    "length": length,
    "silence": silence,
    "truth": truth,
    "consistency": consistency,
    "memory": memory,
}
