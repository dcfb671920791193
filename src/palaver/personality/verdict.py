"""The result in plain words: distinguishable beyond chance resampling, yes or no, and by how much."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np

from palaver.personality.results import Condition, Verdict
from palaver.personality.samples import Floats
from palaver.tabular import show_fixed

VALIDITY = (
    "Distinguishable is not the same as having the traits: the test shows that the recogniser’s five numbers "
    "differ between characters, not that the numbers say what their personalities are."
)
FEWEST = 10
"""Resampled pools below which an interval is not given."""


def judge(
    conditions: Mapping[str, Condition],
    replicates: Floats,
    group_noun: str,
    confidence: float,
    no_groups: str,
) -> Verdict:
    """Characters against pseudo-characters, both split by group, with the spread over resampled pools.

    Resampled pools hold fewer different utterances, which shifts F1, so their spread is put around the
    difference that was found.
    """
    real, pseudo = conditions.get("characters by group"), conditions.get("pseudo-characters by group")
    paper, chance = conditions.get("characters"), conditions.get("pseudo-characters")
    if real is None or pseudo is None:
        text = "Distinguishable beyond chance resampling: cannot say, for there is no split by group."
        if paper is not None and chance is not None:
            both = f"{show_fixed(paper.f1)}, and {show_fixed(chance.f1)} for pseudo-characters"
            text += f" Under the paper’s protocol F1 is {both}."
        return Verdict(answer="cannot say", confidence=confidence, text=text, reason=no_groups)
    difference = real.f1 - pseudo.f1
    low = high = math.nan
    reason = ""
    if len(replicates) >= FEWEST:
        differences = replicates[:, 0] - replicates[:, 1]
        tails = ((1 - confidence) / 2, (1 + confidence) / 2)
        low, high = (difference + np.quantile(differences - differences.mean(), tails)).tolist()
    else:
        reason = f"an interval needs {FEWEST} resampled pools or more, there are {len(replicates)}"
    answer: Literal["yes", "no", "cannot say"] = "cannot say"
    span = ""
    if not math.isnan(low):
        answer = "yes" if low > 0 else "no"
        span = f" [{show_fixed(low)}, {show_fixed(high)}]"
    unseen = f"On {group_noun}s that the classifier has not seen"
    text = (
        f"Distinguishable beyond chance resampling: {answer}. {unseen}, F1 is {show_fixed(real.f1)} for the "
        f"characters and {show_fixed(pseudo.f1)} for pseudo-characters of the same utterances, "
        f"a difference of {show_fixed(difference)}{span}."
    )
    if paper is not None and chance is not None:
        text += (
            f" Of the F1 of {show_fixed(paper.f1)} under the paper’s protocol, pseudo-characters reach "
            f"{show_fixed(chance.f1)} already."
        )
    return Verdict(
        answer=answer,
        f1=real.f1,
        control=pseudo.f1,
        difference=difference,
        low=low,
        high=high,
        confidence=confidence,
        n_replicates=len(replicates),
        text=text,
        reason=reason,
    )
