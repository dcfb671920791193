"""Pairs of dialogues of which one is better for a known reason, to teach a comparator what to look at.

A short part of a real conversation is spoilt in one way: the last reply comes from elsewhere or from another
place of the same conversation, repeats an earlier one, changes a name or number that was said before, is
scrambled, insults, says nothing, passes the question by, rambles or is curt. What real conversations do not
give (truth, contradiction) is made of the templates in minimal_pairs.toml, long explanations of the lead
sections of articles. None of the texts is one of `palaver compare audit`. A fifth of the templates and a
tenth of the conversations and articles are for measuring alone.
"""

from __future__ import annotations

import gzip
import json
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Turns = list[tuple[str, str]]
"""Who and what; who is "user" or "system"."""

CORPORA = ("self_dialogue", "taskmaster4", "sgd")
"""Between people, or a person playing the system; BSD-3, CC BY 4.0 and CC BY-SA 4.0."""
TEMPLATES = tomllib.loads(Path(__file__).with_name("minimal_pairs.toml").read_text(encoding="utf-8"))
HELD_OUT_EVERY = 5
"""Of so many templates one is held out."""
_NAME_OR_NUMBER = re.compile(r"(?<![.!?] )(?<!^)\b(?:[A-Z][a-z]{2,}|\d+(?::\d\d)?)\b")
_NONSENSE = TEMPLATES["nonsense_words"].split()
_STOP = frozenset(TEMPLATES["function_words"].split())


@dataclass(frozen=True)
class Pair:
    """Two dialogues, the first of which is better."""

    kind: str
    good: Turns
    bad: Turns


@dataclass(frozen=True)
class Part:
    """Two to six turns of a conversation that end with a reply of the system, and its other replies."""

    turns: Turns
    elsewhere: tuple[str, ...]


@dataclass(frozen=True)
class Material:
    """What pairs are made of: parts of conversations, and whether the templates held out are used."""

    parts: list[Part]
    articles: list[tuple[str, str]]
    """What each is about, and its lead section."""
    held_out: bool

    def template(self, kind: str, rng: np.random.Generator) -> list[str]:
        """One row of the templates of a kind."""
        rows = TEMPLATES[kind]["turns"]
        return rows[_draw(len(rows), self.held_out, rng)]

    def entry(self, entries: Mapping[str, Any], rng: np.random.Generator) -> str:
        """One key of a table of templates."""
        keys = list(entries)
        return keys[_draw(len(keys), self.held_out, rng)]


def _draw(n: int, held_out: bool, rng: np.random.Generator) -> int:
    places = [i for i in range(n) if (i % HELD_OUT_EVERY == 2) == held_out]
    return places[int(rng.integers(len(places)))]


def read_material(data: Path, limit: int = 9000) -> tuple[Material, Material]:
    """What to learn from and what to measure with, from the training splits."""
    rng = np.random.default_rng(5)
    learnt: list[Part] = []
    held_out: list[Part] = []
    for name in CORPORA:
        of_corpus: list[Part] = []
        with gzip.open(data / "dialogue" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                if row.get("split", "train") != "train":
                    continue
                texts = [turn["t"].strip() for turn in row["turns"]]
                length = 2 * int(rng.integers(1, 4))
                start = 2 * int(rng.integers(0, max(1, (len(texts) - length) // 2 + 1)))
                shown = texts[start : start + length]
                if len(shown) == length and all(2 <= len(text.split()) <= 40 for text in shown):
                    turns = [("system" if i % 2 else "user", text) for i, text in enumerate(shown)]
                    last = start + length - 1
                    replies = range(1, len(texts), 2)
                    far = tuple(texts[i] for i in replies if abs(i - last) > 2 and texts[i] not in shown)
                    of_corpus.append(Part(turns, far))
        own = [of_corpus[i] for i in rng.permutation(len(of_corpus))[: limit // len(CORPORA)]]
        cut = len(own) // 10
        held_out += own[:cut]
        learnt += own[cut:]
    articles = read_articles(data)
    cut = len(articles) // 10
    return Material(learnt, articles[cut:], False), Material(held_out, articles[:cut], True)


def read_articles(data: Path) -> list[tuple[str, str]]:
    """Lead sections of Wikipedia (CC BY-SA) that say at their beginning what they are about."""
    with gzip.open(data / "topical_chat/wiki.json.gz", "rt", encoding="utf-8") as file:
        by_kind = json.load(file)
    articles: dict[str, str] = {}
    for texts in by_kind.values():
        for text in texts:
            topic = re.match(r"((?:\w[\w'-]* ?){1,4}) (?:is|are|was|were) ", text)
            if topic is not None:
                articles.setdefault(
                    topic[1].removeprefix("The ").removeprefix("An ").removeprefix("A "), text
                )
    return sorted(articles.items())


def make_pairs(material: Material, n_each: int, seed: int = 0, without: Collection[str] = ()) -> list[Pair]:
    """`n_each` pairs of each kind, and as many once more of those that are hard to learn."""
    rng = np.random.default_rng(seed)
    kinds = [kind for kind in (*MAKERS, *HARD) if kind not in without] * n_each
    pairs: list[Pair] = []
    while len(pairs) < len(kinds):
        kind = kinds[len(pairs)]
        pair = MAKERS[kind](material.parts[int(rng.integers(len(material.parts)))], material, rng)
        if pair is not None and pair[0] != pair[1]:
            good, bad = pair
            if rng.random() < 0.5:  # the same reaction of the user after both
                reply = ("user", _one(TEMPLATES["plain_replies"], rng))
                if good[-1][0] == "system":
                    good, bad = [*good, reply], [*bad, reply]
            pairs.append(Pair(kind, good, bad))
    return pairs


Made = tuple[Turns, Turns] | None
Maker = Callable[[Part, Material, np.random.Generator], Made]


def _one(texts: list[str], rng: np.random.Generator) -> str:
    return texts[int(rng.integers(len(texts)))]


def _with_reply(turns: Turns, text: str) -> Turns:
    return [*turns[:-1], ("system", text)]


def _topic_of(text: str) -> str:
    """The longest word of a text that is no function word."""
    words = [word.strip(".,!?;:\"'()").lower() for word in text.split()]
    content = [word for word in words if len(word) > 3 and word not in _STOP]
    return max(content, key=len, default="that")


def off_topic(part: Part, material: Material, rng: np.random.Generator) -> Made:
    turns = part.turns
    other = material.parts[int(rng.integers(len(material.parts)))].turns
    replies = [text for who, text in other if who == "system"]
    return turns, _with_reply(turns, _one(replies, rng))


def out_of_place(part: Part, material: Material, rng: np.random.Generator) -> Made:
    """A reply of the same conversation that belongs elsewhere: the topic is right, the place is not."""
    if not part.elsewhere:
        return None
    return part.turns, _with_reply(part.turns, _one(list(part.elsewhere), rng))


def changed_word(part: Part, material: Material, rng: np.random.Generator) -> Made:
    """A name or a number that was said before is another one in the last reply."""
    before = " ".join(text for _, text in part.turns[:-1])
    reply = part.turns[-1][1]
    repeated = [word for word in _NAME_OR_NUMBER.findall(reply) if re.search(rf"\b{word}\b", before)]
    other = material.parts[int(rng.integers(len(material.parts)))].turns
    words = [word for _, text in other for word in _NAME_OR_NUMBER.findall(text)]
    if not repeated:
        return None
    word = _one(repeated, rng)
    alike = [w for w in words if w[0].isdigit() == word[0].isdigit() and w not in before and w not in reply]
    if not alike:
        return None
    return part.turns, _with_reply(part.turns, re.sub(rf"\b{word}\b", _one(alike, rng), reply))


def repetition(part: Part, material: Material, rng: np.random.Generator) -> Made:
    turns = part.turns
    if len(turns) < 4:
        return turns, _with_reply(turns, turns[-2][1])  # says the user's turn again
    earlier = [text for who, text in turns[:-1] if who == "system"]
    return turns, _with_reply(turns, _one(earlier, rng))


def nonsense(part: Part, material: Material, rng: np.random.Generator) -> Made:
    turns = part.turns
    words = turns[-1][1].split()
    if len(words) < 4:
        return None
    if rng.random() < 0.4:
        rng.shuffle(words)
    else:
        swapped = rng.random(len(words)) < 0.6
        words = [_one(_NONSENSE, rng) if swap else word for word, swap in zip(words, swapped, strict=True)]
    return turns, _with_reply(turns, " ".join(words))


def praise(part: Part, material: Material, rng: np.random.Generator) -> Made:
    turns = part.turns
    spoilt = (nonsense if rng.random() < 0.7 else off_topic)(part, material, rng)
    if spoilt is None:
        return None
    plain, happy = _one(TEMPLATES["plain_replies"], rng), _one(TEMPLATES["praise"], rng)
    return [*turns, ("user", plain)], [*spoilt[1], ("user", happy)]


def politeness(part: Part, material: Material, rng: np.random.Generator) -> Made:
    turns = part.turns
    reply = turns[-1][1]
    kind, rude = _one(TEMPLATES["courtesies"], rng), _one(TEMPLATES["insults"], rng)
    draw = rng.random()
    if draw < 0.5:
        return _with_reply(turns, f"{kind} {reply}"), _with_reply(turns, f"{rude} {reply}")
    if draw < 0.8:
        return turns, _with_reply(turns, f"{reply} {rude}")
    return turns, _with_reply(turns, rude)


def answer(part: Part, material: Material, rng: np.random.Generator) -> Made:
    turns = part.turns
    if "?" not in turns[-2][1] or "?" in turns[-1][1]:
        return None
    return turns, _with_reply(turns, _one(TEMPLATES["deferrals"], rng).format(x=_topic_of(turns[-2][1])))


def length(part: Part, material: Material, rng: np.random.Generator) -> Made:
    turns = part.turns
    if len(turns[-1][1].split()) > 14:
        return None
    return turns, _with_reply(turns, _one(TEMPLATES["rambles"], rng).format(x=_topic_of(turns[-2][1])))


def detail(part: Part, material: Material, rng: np.random.Generator) -> Made:
    """A reply that says something, and one that is short because it says nothing."""
    turns = part.turns
    if len(turns[-1][1].split()) < 10 or len(turns[-2][1].split()) < 5:
        return None
    return turns, _with_reply(turns, _one(TEMPLATES["curt"], rng))


def explanation(part: Part, material: Material, rng: np.random.Generator) -> Made:
    """What is asked about is explained at length; or it is not, be that short or long."""
    topic, text = material.articles[int(rng.integers(len(material.articles)))]
    n_words = int(rng.integers(40, 200))
    good = " ".join(text.split()[:n_words])
    draw = rng.random()
    if draw < 0.35:
        bad = _one(TEMPLATES["curt"], rng)
    elif draw < 0.55:
        bad = _one(TEMPLATES["deferrals"], rng).format(x=topic)
    elif draw < 0.75:
        bad = " ".join(_one(TEMPLATES["rambles"], rng).format(x=topic) for _ in range(1 + n_words // 50))
    else:
        _, other = material.articles[int(rng.integers(len(material.articles)))]
        bad = " ".join(other.split()[:n_words])
    return _asked(part.turns, _one(TEMPLATES["explain"], rng).format(x=topic), good, bad, rng)


def silence(part: Part, material: Material, rng: np.random.Generator) -> Made:
    turns = part.turns
    return (turns, turns[:-1]) if len(turns) > 2 else None


def truth(part: Part, material: Material, rng: np.random.Generator) -> Made:
    turns = part.turns
    if rng.random() < 0.15:
        a, b = int(rng.integers(2, 20)), int(rng.integers(2, 20))
        asked, wrong = f"what is {a} plus {b}?", a + b + int(rng.choice([-7, -3, -1, 1, 2, 6, 10]))
        return _asked(turns, asked, f"{a} plus {b} is {a + b}.", f"{a} plus {b} is {wrong}.", rng)
    question = _one(list(TEMPLATES["truth"]), rng)
    template = TEMPLATES["truth"][question]
    facts = TEMPLATES["lists"][template["list"]]
    key = material.entry(facts, rng)
    wrong = _one([value for value in facts.values() if value != facts[key]], rng)
    good, bad = (template["good"].format(key=key, value=value) for value in (facts[key], wrong))
    return _asked(turns, question.format(key=key), good, bad, rng)


def fact(part: Part, material: Material, rng: np.random.Generator) -> Made:
    return _asked(part.turns, *_question("facts", material, rng), rng)


def evasion(part: Part, material: Material, rng: np.random.Generator) -> Made:
    return _asked(part.turns, *_question("replies", material, rng), rng)


def _question(kind: str, material: Material, rng: np.random.Generator) -> tuple[str, str, str]:
    """What is asked, the right reply and the other; some rows hold a question to which the other is right."""
    asked, good, bad, *otherwise = material.template(kind, rng)
    return (otherwise[0], bad, good) if otherwise and rng.random() < 0.5 else (asked, good, bad)


def _asked(turns: Turns, asked: str, good: str, bad: str, rng: np.random.Generator) -> Made:
    """A question and its answers, sometimes after a real beginning."""
    before = turns if rng.random() < 0.3 else []
    both = [[*before, ("user", asked), ("system", text)] for text in (good, bad)]
    return both[0], both[1]


def consistency(part: Part, material: Material, rng: np.random.Generator) -> Made:
    turns = part.turns
    said, asked, good, bad = _relation("consistency", material, rng)
    before = [("user", _one(["tell me about you.", "what about you?", "and you?", "hi, who are you?"], rng))]
    between = turns if rng.random() < 0.25 else []
    head = [*before, ("system", said), *between, ("user", asked)]
    return [*head, ("system", good)], [*head, ("system", bad)]


def memory(part: Part, material: Material, rng: np.random.Generator) -> Made:
    turns = part.turns
    said, asked, good, bad = _relation("memory", material, rng)
    between: Turns = turns if rng.random() < 0.25 else []
    reply = ("system", _one(["i see.", "good to know.", "thanks, i will remember that.", "oh, ok."], rng))
    head = [("user", said), reply, *between, ("user", asked)]
    return [*head, ("system", good)], [*head, ("system", bad)]


def _relation(kind: str, material: Material, rng: np.random.Generator) -> tuple[str, str, str, str]:
    """What was said, what is asked, the reply that goes with it and the one that does not."""
    said, asked, good, bad, otherwise = material.template(kind, rng)
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
    "out of place": out_of_place,
    "changed word": changed_word,
    "repetition": repetition,
    "nonsense": nonsense,
    "praise": praise,
    "politeness": politeness,
    "answer": answer,
    "length": length,
    "detail": detail,
    "explanation": explanation,
    "silence": silence,
    "truth": truth,
    "fact": fact,
    "evasion": evasion,
    "consistency": consistency,
    "memory": memory,
}
HARD = ("fact", "evasion", "consistency", "memory")
