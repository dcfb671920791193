"""The seven transformations over many sentences: parsed in batches, once for all rules, and read again.

A result counts only if, parsed again, it has the structure its rule meant to build (`grammatical`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
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
_BATCH = 512


@dataclass(frozen=True)
class Transformed:
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
) -> Iterator[Transformed]:
    """Every text under every rule, in order. `check` reads each output again and refuses doubtful ones."""
    for rule in rules:
        rules_named(rule)
    source = iter(texts)
    while chunk := list(islice(source, _BATCH)):
        yield from _transform_chunk(chunk, rules, check, max_words)


def _transform_chunk(
    texts: Sequence[str], rules: Sequence[str], check: bool, max_words: int
) -> Iterator[Transformed]:
    lines = [_prepared(text, max_words) for text in texts]
    docs = parse(line.text for line in lines if isinstance(line, Line))
    parsed = [next(docs) if isinstance(line, Line) else None for line in lines]
    outcomes: list[tuple[str, str] | NotApplicable] = []
    for line, doc in zip(lines, parsed, strict=True):
        for rule in rules:
            outcomes.append(line if isinstance(line, NotApplicable) else apply_rule(rule, doc))
    if check:
        outcomes = _checked(outcomes, [(rule, doc) for doc in parsed for rule in rules])
    results = iter(outcomes)
    for text, line in zip(texts, lines, strict=True):
        for rule in rules:
            result = next(results)
            if isinstance(result, NotApplicable):
                yield Transformed(text, rule, reason=result.reason)
            else:
                assert isinstance(line, Line)
                yield Transformed(text, rule, output=line.dress(result[1]))


def _prepared(text: str, max_words: int) -> Line | NotApplicable:
    try:
        return prepare(text, max_words=max_words)
    except NotApplicable as refused:
        return refused


def apply_rule(rule: str, doc: Doc | None) -> tuple[str, str] | NotApplicable:
    """(rule, output), or the refusal."""
    try:
        return rule, RULES[rule](doc)
    except NotApplicable as refused:
        return refused


def _checked(
    outcomes: list[tuple[str, str] | NotApplicable], sources: Sequence[tuple[str, Doc | None]]
) -> list[tuple[str, str] | NotApplicable]:
    outputs = [f[1] for f in outcomes if not isinstance(f, NotApplicable) and f[0] in grammatical.CHECKS]
    again = parse(outputs)
    checked: list[tuple[str, str] | NotApplicable] = []
    for result, (rule, source) in zip(outcomes, sources, strict=True):
        if not isinstance(result, NotApplicable) and rule in grammatical.CHECKS:
            assert source is not None
            fits = grammatical.CHECKS[rule](source, next(again))
            checked.append(result if fits else NotApplicable("doubtful"))
        else:
            checked.append(result)
    return checked
