"""The seven transformations over many sentences: parsed in batches, once for all rules, and read again.

A result counts only if, parsed again, it has the structure its rule meant to build (`grammatical`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from palaver.errors import UserError, nearest
from palaver.probes import grammatical
from palaver.probes.lines import MAX_WORDS, Line, prepare
from palaver.probes.parse import parse
from palaver.probes.refusals import NotApplicable
from palaver.probes.rules import (
    clause,
    inversion,
    not_negation,
    passive,
    quantifier_negation,
    reorder,
    synonym,
)

if TYPE_CHECKING:
    from spacy.tokens import Doc

RULES: dict[str, Callable[[Any], str]] = {
    "not-negation": not_negation.apply,
    "quantifier-negation": quantifier_negation.apply,
    "synonym": synonym.apply,
    "clause": clause.apply,
    "passive": passive.apply,
    "reorder": reorder.apply,
    "inversion": inversion.apply,
}
VARIANTS: dict[str, dict[str, Callable[[Any], str]]] = {
    "not-negation": {"contracted": not_negation.contract, "full": not_negation.write_full},
    "passive": {"agentless": passive.leave_agent_out},
    "inversion": {"fronted": inversion.front, "article": inversion.move_article},
}
"""Rule -> name of a variant (see `recipe.VARIANTS`) -> what makes it."""
_BATCH = 512


@dataclass(frozen=True)
class Transformation:
    """One sentence under one rule: an output, or the reason why there is none."""

    source: str
    rule: str
    output: str | None = None
    reason: str | None = None

    def to_dict(self) -> dict[str, str]:
        named = {"output": self.output} if self.output is not None else {"reason": self.reason or ""}
        return {"source": self.source, "rule": self.rule, **named}


def rules_named(name: str) -> tuple[str, ...]:
    """The rule called `name`, or every rule for `all`."""
    if name == "all":
        return tuple(RULES)
    if name not in RULES:
        known = (*RULES, "all")
        raise UserError(f"there is no rule {name!r}{nearest(name, known)}", f"known: {', '.join(known)}")
    return (name,)


def transform(
    texts: Iterable[str],
    rules: Sequence[str] = tuple(RULES),
    *,
    check: bool = True,
    max_words: int = MAX_WORDS,
) -> Iterator[Transformation]:
    """Every text under every rule, in order. `check` reads each output again and refuses doubtful ones."""
    for rule in rules:
        rules_named(rule)
    source = iter(texts)
    while chunk := list(islice(source, _BATCH)):
        yield from _transform_chunk(chunk, rules, check, max_words)


def _transform_chunk(
    texts: Sequence[str], rules: Sequence[str], check: bool, max_words: int
) -> Iterator[Transformation]:
    lines = [_prepare(text, max_words) for text in texts]
    docs = parse(line.text for line in lines if isinstance(line, Line))
    parsed = [next(docs) if isinstance(line, Line) else None for line in lines]
    outcomes = [
        line if isinstance(line, NotApplicable) else apply_rule(rule, doc)
        for line, doc in zip(lines, parsed, strict=True)
        for rule in rules
    ]
    checks = grammatical.CHECKS if check else {}
    to_check = [out for out, rule in zip(outcomes, cycle(rules), strict=False) if rule in checks]
    again = parse(out for out in to_check if isinstance(out, str))
    remaining = iter(outcomes)
    for text, line, doc in zip(texts, lines, parsed, strict=True):
        for rule in rules:
            outcome = next(remaining)
            if isinstance(outcome, NotApplicable):
                yield Transformation(text, rule, reason=outcome.reason)
                continue
            assert isinstance(line, Line)
            assert doc is not None
            if rule in checks and not checks[rule](doc, next(again)):
                yield Transformation(text, rule, reason="doubtful")
            else:
                yield Transformation(text, rule, output=line.dress(outcome))


def _prepare(text: str, max_words: int) -> Line | NotApplicable:
    try:
        return prepare(text, max_words=max_words)
    except NotApplicable as refused:
        return refused


def apply_rule(rule: str, doc: Doc | None) -> str | NotApplicable:
    """What the rule makes of the sentence, or the refusal."""
    try:
        return RULES[rule](doc)
    except NotApplicable as refused:
        return refused


def apply_variants(rule: str, doc: Doc) -> dict[str, str]:
    """What the variants of a rule make of the sentence, those that apply."""
    outputs = {}
    for name, make in VARIANTS.get(rule, {}).items():
        with suppress(NotApplicable):
            outputs[name] = make(doc)
    return outputs
