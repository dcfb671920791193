"""What a reference-free judge of single responses looks at: likelihood, closeness, overlap, length, marks.

Every text first comes to one form (`normalise_text`), so that a corpus of split-up lower-case words and a
system that writes plain English are measured alike.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palaver.judges.response_likelihood import ReplyPrompt
from palaver.schema import Response
from palaver.text.words import sentences

Floats = NDArray[np.float64]

WITHOUT_KNOWLEDGE = (
    "words", "sentences", "likelihood", "likelihood_alone", "gain_last", "gain_context", "least_likely",
    "ending",
    "cos_last", "cos_context", "cos_closest_turn", "shared_context", "copies_turn", "repeats", "question",
    "addresses", "first_person", "empty_phrase",
)  # fmt: skip
ABOUT_KNOWLEDGE = (
    "gain_knowledge", "cos_knowledge", "shared_knowledge", "copies_knowledge", "new_words",
)  # fmt: skip
FEATURES = (*WITHOUT_KNOWLEDGE, *ABOUT_KNOWLEDGE)

_BEFORE = re.compile(r"\s+([.,!?;:%)\]}])")
_SUFFIX = re.compile(r"\s+(n't|'(?:s|m|re|ve|ll|d|t))\b")
_AFTER = re.compile(r"([(\[{$#])\s+")
_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_COMMON_WORDS = """
a an the and or but if so of to in on at by for from with about as into than then that this these those it
its it's i i'm i've i'd me my you your you're he she they them his her their we our us is are was were be
been am do does did don't didn't have has had will would can could should not no yes yeah what which who
how when where why there here just very really too also all any some one more most much many like get got
know think that's
"""
_COMMON = frozenset(_COMMON_WORDS.split())
_EMPTY = re.compile(
    r"\b(i don't know|i do not know|not sure|i agree|me too|nice (?:chatting|talking)|"
    r"have a (?:good|great|nice)|that(?: is|'s) (?:so )?(?:true|cool|great|interesting|crazy))\b"
)


def normalise_text(text: str) -> str:
    """Lower case, ASCII where there is a like letter, one space between words, none before marks.

    A text that was split into tokens ("it 's fine .") and one that was not come to the same form.
    """
    plain = text.replace("’", "'").replace("‘", "'").replace("“", '"').replace("”", '"')
    plain = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode().lower()
    plain = _AFTER.sub(r"\1", _SUFFIX.sub(r"\1", _BEFORE.sub(r"\1", plain)))
    return _SPACE.sub(" ", plain).strip()


def prompt_of(response: Response) -> ReplyPrompt:
    """The texts of a response in their one form."""
    turns = tuple(normalise_text(turn.text) for turn in response.context)
    return ReplyPrompt(
        turns, normalise_text(response.knowledge or ""), normalise_text(response.response or "")
    )


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """What is seen of responses, one row each."""

    table: Floats
    """(responses, `FEATURES`); nan where there is no knowledge."""
    states: Floats
    """(responses, states of SmolLM2)."""

    def __len__(self) -> int:
        return len(self.table)

    def take(self, rows: Any) -> FeatureRows:
        return FeatureRows(self.table[rows], self.states[rows])


@dataclass
class ResponseFeatures:
    """Opens the models once and looks at responses."""

    likelihood: Any
    encoder: Any
    states: Any

    @classmethod
    def load(cls, device: str = "auto") -> ResponseFeatures:
        from palaver.judges.response_likelihood import ReplyLikelihood
        from palaver.judges.response_states import ReplyStates
        from palaver.models.encoders import Places, open_encoder

        likelihood = ReplyLikelihood(device)
        encoder = open_encoder("minilm", Places(device=device))
        return cls(likelihood, encoder, ReplyStates(likelihood))

    def measure(self, responses: Sequence[Response]) -> FeatureRows:
        prompts = [prompt_of(response) for response in responses]
        scores = self.likelihood.score(prompts)
        facts = [[sentence for sentence in sentences(prompt.knowledge) if sentence] for prompt in prompts]
        texts = {""}
        for prompt, of_prompt in zip(prompts, facts, strict=True):
            texts |= {prompt.reply, " ".join(prompt.turns), *prompt.turns, *of_prompt}
        known = sorted(texts)
        vectors = _unit(np.asarray(self.encoder.encode(known), dtype=np.float64))
        vector_of = dict(zip(known, vectors, strict=True))
        rows = []
        for prompt, likelihoods, of_prompt in zip(prompts, scores, facts, strict=True):
            close = _closeness(prompt, of_prompt, vector_of)
            rows.append({**_surface(prompt), **_likelihoods(likelihoods), **close})
        table = np.array([[row.get(name, math.nan) for name in FEATURES] for row in rows])
        return FeatureRows(table, self.states.read(prompts))


def _closeness(prompt: ReplyPrompt, facts: Sequence[str], vector_of: dict[str, Floats]) -> dict[str, float]:
    reply = vector_of[prompt.reply]
    turns = [float(vector_of[turn] @ reply) for turn in prompt.turns] or [0.0]
    features = {
        "cos_last": turns[-1],
        "cos_context": float(vector_of[" ".join(prompt.turns)] @ reply),
        "cos_closest_turn": max(turns),
    }
    if facts:
        features["cos_knowledge"] = max(float(vector_of[fact] @ reply) for fact in facts)
    return features


def _likelihoods(scores: dict[str, Floats]) -> dict[str, float]:
    """Mean log-probabilities a token and what they gain by what stands before."""
    mean = {name: float(values[:-1].mean()) if values.size > 1 else -10.0 for name, values in scores.items()}
    features = {
        "likelihood": mean["context"],
        "likelihood_alone": mean["alone"],
        "gain_last": mean["last"] - mean["alone"],
        "gain_context": mean["context"] - mean["alone"],
        "least_likely": float(scores["context"].min()),
        "ending": float(scores["context"][-1]),
    }
    if "knowledge" in mean:
        features["gain_knowledge"] = mean["knowledge"] - mean["last"]
    return features


def _surface(prompt: ReplyPrompt) -> dict[str, float]:
    words = _WORD.findall(prompt.reply)
    content = [word for word in words if word not in _COMMON]
    said = {word for turn in prompt.turns for word in _WORD.findall(turn)}
    pairs = list(pairwise(words))
    n = len(words)
    features = {
        "words": math.log1p(n),
        "sentences": math.log1p(len(sentences(prompt.reply))),
        "shared_context": _part(content, said),
        "copies_turn": max((_run(words, _WORD.findall(turn)) for turn in prompt.turns), default=0)
        / max(n, 1),
        "repeats": 1 - len(set(pairs)) / len(pairs) if pairs else 0.0,
        "question": float("?" in prompt.reply),
        "addresses": sum(word in ("you", "your", "you're") for word in words) / max(n, 1),
        "first_person": sum(word in ("i", "i'm", "i've", "my", "me") for word in words) / max(n, 1),
        "empty_phrase": float(bool(_EMPTY.search(prompt.reply))),
    }
    if prompt.knowledge:
        known = _WORD.findall(prompt.knowledge)
        new = [word for word in content if word not in said]
        features["shared_knowledge"] = _part(content, set(known))
        features["copies_knowledge"] = math.log1p(_run(words, known))
        features["new_words"] = math.log1p(sum(word in set(known) for word in new))
    return features


def _part(words: Sequence[str], known: set[str]) -> float:
    return sum(word in known for word in words) / len(words) if words else 0.0


def _run(words: Sequence[str], other: Sequence[str]) -> int:
    """The longest run of words that both have."""
    longest = 0
    before = [0] * (len(other) + 1)
    for word in words:
        row = [0] * (len(other) + 1)
        for place, there in enumerate(other, start=1):
            if word == there:
                row[place] = before[place - 1] + 1
                longest = max(longest, row[place])
        before = row
    return longest


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = vectors / np.maximum(lengths, 1e-12)
    return unit
