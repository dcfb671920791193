"""Judges by name: our own, every metric, those of plug-ins, and any Python function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from palaver.corpora.personalities import TRAITS
from palaver.errors import UserError, nearest
from palaver.judges.function import FunctionJudge
from palaver.judges.metrics import MetricJudge
from palaver.metrics.metric import METRICS, open_metric
from palaver.registry import Registry
from palaver.schema import Judge, Response
from palaver.schema.judge import Direction

JUDGES: Registry[Any] = Registry(
    "judge",
    {
        "comparator": "palaver.judges.comparator:ComparatorJudge",
        "personality": "palaver.judges.personality:PersonalityJudge",
        "response": "palaver.judges.response:ResponseJudge",
        "user": "palaver.judges.users:UserJudge",
    },
    group="palaver.judges",
)
"""A target is a judge, a function without arguments that makes one, or a function from a response to a
number."""


def judge_names() -> list[str]:
    """Every judge that has a name."""
    return [*JUDGES, *(name for name in METRICS if name not in JUDGES)]


def open_judge(said: str | Judge | Callable[[Response], Any], *, device: str = "auto") -> Judge:
    """The judge that `said` names: NAME, NAME=WHICH (comparator=runs/mine), or MODULE:FUNCTION.

    A function from a `Response` to a number is one, too. A judge is given back as it is.
    """
    if not isinstance(said, str):
        return _as_judge(said, getattr(said, "__name__", type(said).__name__), "", device)
    name, _, which = said.partition("=")
    if name in METRICS and name not in JUDGES:
        return MetricJudge(open_metric(said, device))
    if name not in JUDGES and ":" not in name:
        known = judge_names()
        raise UserError(
            f"there is no judge {name!r}{nearest(name, known)}",
            f"known: {', '.join(known)}; or MODULE:FUNCTION",
        )
    return _as_judge(JUDGES.get(name), name, which, device)


def _as_judge(target: Any, name: str, which: str, device: str) -> Judge:
    if not inspect.isclass(target) and hasattr(target, "judge"):
        made = target
    elif not callable(target):
        raise UserError(f"{name} is neither a judge nor a function", "see docs/how-to/plug-in.md")
    elif _takes_a_response(target):
        made = FunctionJudge(target, name)
    else:
        made = target(**_wanted(target, name, which=which, device=device))
    missing = [part for part in ("name", "kind", "looks_at", "criteria", "judge") if not hasattr(made, part)]
    if missing:
        raise UserError(
            f"{name} is no judge: it has no {', no '.join(missing)}", "see docs/how-to/plug-in.md"
        )
    judge: Judge = made
    return judge


def _takes_a_response(target: Callable[..., Any]) -> bool:
    """Whether it is a plain function with something to be called with, not a maker of judges."""
    if inspect.isclass(target):
        return False
    needed = [
        p
        for p in inspect.signature(target).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return len(needed) == 1


def _wanted(target: Callable[..., Any], name: str, *, which: str, device: str) -> dict[str, str]:
    """The options that a maker of judges takes."""
    parameters = inspect.signature(target).parameters
    if which and "which" not in parameters:
        raise UserError(f"{name} takes nothing after '=', found {which!r}")
    options = {"device": device} | ({"which": which} if which else {})
    return {option: value for option, value in options.items() if option in parameters}


def directions(criteria: Iterable[str]) -> dict[str, Direction]:
    """Which end is better, for those criteria that are metrics or traits."""
    known: dict[str, Direction] = {}
    for criterion in criteria:
        metric = criterion.partition("=")[0]
        if metric in METRICS:
            known[criterion] = METRICS.get(metric).better
        elif criterion in TRAITS:
            known[criterion] = "neither"
    return known
