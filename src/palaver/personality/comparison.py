"""Are the characters of one source told apart better than those of another: Speaker Model, Personality Model,
transcripts?

F1 depends on who is to be told apart, by which recogniser, and on how large samples and pools are. So all
sources are looked at with the same characters, recogniser and settings, and what still differs is said.

Two tests stand side by side. The paper's (footnote 9) compares the F1 of the repetitions, which differ only
in which samples were drawn: it finds nearly every difference significant. Ours compares F1 on unseen groups,
with the spread over resampled pools of both sources; sources that answered the same contexts are more alike
than it assumes, so it errs on the careful side. All pairs together are corrected by Holm's method.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from palaver.errors import DataError, UserError
from palaver.personality.plan import Settings
from palaver.personality.pools import Choice, Pools
from palaver.personality.protocol import run_protocol
from palaver.personality.recogniser import AnyRecogniser, load_recogniser
from palaver.personality.results import Distinguishability
from palaver.personality.sources import is_response_file, read_pools
from palaver.personality.verdict import FEWEST
from palaver.progress import Progress
from palaver.schema.run import plain
from palaver.statistics.significance import MeanTest, compare_means, holm
from palaver.tabular import Tabular, columns_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTest:
    """Two sources: which has the higher F1, split by group."""

    a: str
    b: str
    difference: float = math.nan
    """F1 of a less that of b, on groups that the classifier has not seen."""
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    """Two-sided, by the spread over resampled pools."""
    p_holm: float = math.nan
    repetitions: MeanTest | None
    """The paper's test, on the F1 of the repetitions under its protocol."""
    reason: str = ""
    """Why there is no difference or no p, where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SourceComparison(Tabular):
    """Several sources told apart in the same way. Tables: tests, sources."""

    results: tuple[Distinguishability, ...]
    tests: tuple[SourceTest, ...]
    confidence: float
    notes: tuple[str, ...]
    """What the sources do not have in common."""

    def _headline(self) -> str:
        scores = [f"{r.title} {r.verdict.f1:.2f}" for r in self.results]
        return f"F1 on unseen groups: {', '.join(scores)}"

    def _tables(self) -> dict[str, Any]:
        return {
            "tests": columns_of(SourceTest, self.tests, leave_out=("repetitions",)),
            "sources": {
                "source": [r.title for r in self.results],
                "f1": [_f1(r, "characters") for r in self.results],
                "f1_by_group": [r.verdict.f1 for r in self.results],
                "pseudo_by_group": [r.verdict.control for r in self.results],
            },
        }

    def to_json(self) -> str:
        """The tests, then the whole result of each source."""
        content = {
            "confidence": self.confidence,
            "notes": self.notes,
            "tests": plain(self.tests),
            "results": [json.loads(result.to_json()) for result in self.results],
        }
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def compare_sources(
    sources: Sequence[str | Path],
    *,
    recogniser: str | AnyRecogniser = "default",
    choice: Choice | None = None,
    settings: Settings | None = None,
    root: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    n_words: int = 200,
    progress: Progress | None = None,
) -> SourceComparison:
    """The protocol on each source, with the characters that all of them have, and tests between them.

    Responses that are common to all are dropped from files of responses only.
    """
    choice, settings = choice or Choice(), settings or Settings()
    judge = load_recogniser(recogniser) if isinstance(recogniser, str) else recogniser
    pools = []
    for source in sources:
        is_transcript = not is_response_file(source, columns)
        of_source = replace(choice, drop_common=0, system=None) if is_transcript else choice
        pools.append(
            read_pools(
                source,
                judge,
                of_source,
                root=root,
                columns=columns,
                n_words=n_words,
                engine=settings.engine,
                progress=progress,
            )
        )
    return compare_pools(pools, settings, progress=progress)


def compare_pools(
    pools: Sequence[Pools], settings: Settings, *, progress: Progress | None = None
) -> SourceComparison:
    """The same for pools that are there."""
    if len(pools) < 2:
        raise UserError(f"expected two sources or more to compare, found {len(pools)}")
    titles = [p.source for p in pools]
    if len(set(titles)) < len(titles):
        raise UserError(f"a source is named twice: {', '.join(titles)}")
    common = [name for name in pools[0].characters if all(name in p.characters for p in pools)]
    if len(common) < 2:
        raise DataError(
            f"the sources have {len(common)} characters in common, expected 2 or more",
            "names must be spelled the same in all of them: --rename OLD=NEW",
            [f"{p.source}: {', '.join(p.characters)}" for p in pools],
        )
    results = [run_protocol(p.only(common), settings, progress=progress) for p in pools]
    tests = [_test(a, b, settings.confidence) for a, b in combinations(results, 2)]
    adjusted = holm([test.p for test in tests]).adjusted
    return SourceComparison(
        results=tuple(results),
        tests=tuple(replace(test, p_holm=float(p)) for test, p in zip(tests, adjusted, strict=True)),
        confidence=settings.confidence,
        notes=tuple(_notes(pools, common, results)),
    )


def _f1(result: Distinguishability, name: str) -> float:
    condition = result.condition(name)
    return condition.f1 if condition is not None else math.nan


def _test(a: Distinguishability, b: Distinguishability, confidence: float) -> SourceTest:
    theirs = [result.condition("characters") for result in (a, b)]
    repetitions = None
    if theirs[0] is not None and theirs[1] is not None:
        repetitions = compare_means(theirs[0].repetitions, theirs[1].repetitions)
    test = SourceTest(a=a.title, b=b.title, repetitions=repetitions)
    without = [result.title for result in (a, b) if math.isnan(result.verdict.f1)]
    if without:
        return replace(test, reason=f"no split by group of {' and '.join(without)}")
    difference = a.verdict.f1 - b.verdict.f1
    fewest = min(len(a.resampled), len(b.resampled))
    if fewest < FEWEST:
        reason = f"an interval needs {FEWEST} resampled pools or more, there are {fewest}"
        return replace(test, difference=difference, reason=reason)
    variances = [np.var([pair[0] for pair in result.resampled], ddof=1) for result in (a, b)]
    error = math.sqrt(sum(variances))
    if not error:
        return replace(test, difference=difference, reason="the resampled pools all have the same F1")
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * error
    return replace(
        test,
        difference=difference,
        low=difference - reach,
        high=difference + reach,
        p=2 * NormalDist().cdf(-abs(difference) / error),
    )


def _notes(pools: Sequence[Pools], common: Sequence[str], results: Sequence[Distinguishability]) -> list[str]:
    notes = []
    for p in pools:
        left_out = [name for name in p.characters if name not in common]
        if left_out:
            notes.append(f"{p.source}: left out {', '.join(left_out)}, whom not all sources have")
    nouns = {result.group_noun: result.title for result in results}
    if len(nouns) > 1:
        named = ", ".join(f"{noun}s in {title}" for noun, title in nouns.items())
        notes.append(f"what is unseen differs ({named}), so F1 by group is not quite the same question")
    sizes = {result.title: [c.n_utterances for c in result.characters] for result in results}
    least = {title: min(counts) for title, counts in sizes.items()}
    if max(least.values()) > 2 * min(least.values()):
        named = ", ".join(f"{title} {n:,}" for title, n in least.items())
        notes.append(
            f"pools differ in size (the smallest of each source: {named}); samples of a small pool overlap "
            "more, which raises F1 under the paper’s protocol"
        )
    by_group = {result.title: result.condition("characters by group") for result in results}
    used = {title: condition.size for title, condition in by_group.items() if condition is not None}
    if len(set(used.values())) > 1:
        named = ", ".join(f"{title} {n}" for title, n in used.items())
        notes.append(f"samples by group differ in size ({named} utterances): larger ones are easier")
    return notes
