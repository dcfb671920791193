"""How many comparisons do TrueSkill and Bradley–Terry need for the true order? docs/results/rankme.md.

    python experiments/rankme/learning_curve.py --data DATA --out docs/results/rankme-learning-curve.json

Comparisons come one by one: every pair in turn ("uniform"), or the one that a served study with
`assignment = "active"` would hand out (`palaver.server.next_screen.most_telling`). After so many of them both
methods rank the systems, and a run has succeeded where the whole order is right. Simulated systems win by
their strengths (Bradley–Terry, no ties). On the release outcomes are drawn without replacement from those of
RankME's screens, and the order to find is that of all of them: a run that uses them all must succeed there.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from palaver.schema import record_run
from palaver.server.next_screen import most_telling
from palaver.statistics.bradley_terry import bradley_terry
from palaver.statistics.ranking import as_comparisons
from palaver.statistics.trueskill import trueskill
from palaver.studies.analyse import PACKAGES
from palaver.studies.judgements import judgements_of
from palaver.studies.rankings import STATIC, compare_within_screens
from palaver.studies.ratings import read_ratings

WORDS = {1: "win", 0: "tie", -1: "loss"}
METHODS = ("TrueSkill", "Bradley–Terry")
ASSIGNMENTS = ("uniform", "active")
SHARE = 0.9
SIMULATED = {
    "3 systems, neighbours win 60%": (4, [0.4, 0.4]),
    "6 systems, neighbours win 60%": (8, [0.4] * 5),
    "6 systems, neighbours win 69% or 57%": (12, [0.8, 0.3, 0.8, 0.3, 0.8]),
}
"""Name -> hundreds of comparisons that a run may take, differences of log-strength from the worst on."""
RELEASE = "RankME’s release, quality asked alone"

Pair = tuple[int, int]
Answer = tuple[int, int, int]
"""First system, second system, outcome for the first."""


@dataclass(frozen=True)
class World:
    """Systems 0 (the worst) to n - 1, and how comparisons of them end."""

    name: str
    n_systems: int
    most: int
    """Comparisons of a run."""
    begin: Callable[[np.random.Generator], Callable[[Pair], int | None]]
    """A new run: gives the outcome of a comparison, None when a pair has no more."""


def simulated(name: str, hundreds: int, gaps: Sequence[float]) -> World:
    strength = np.concatenate([[0.0], np.cumsum(gaps)])

    def begin(rng: np.random.Generator) -> Callable[[Pair], int | None]:
        def outcome(pair: Pair) -> int:
            wins = 1 / (1 + math.exp(strength[pair[1]] - strength[pair[0]]))
            return 1 if rng.random() < wins else -1

        return outcome

    return World(name, strength.size, 100 * hundreds, begin)


def released(folder: Path) -> tuple[World, dict[str, str]]:
    """RankME's quality screens of Setup 2 as comparisons; systems in the order that all of them give."""
    table = read_ratings(folder / "stp2_rankME_qual.zip", columns={"item": "mr"})
    compared, _ = compare_within_screens(judgements_of(table, "quality", "raw"))
    n = 3
    by_trueskill = np.argsort(trueskill(compared, n, STATIC).mu)
    by_strength = np.argsort(bradley_terry(compared, n).strength)
    if by_trueskill.tolist() != by_strength.tolist():
        raise SystemExit("the two methods disagree on the order of all comparisons")
    place = np.argsort(by_trueskill)
    outcomes: dict[Pair, list[int]] = {pair: [] for pair in combinations(range(n), 2)}
    for a, b, outcome in zip(place[compared.first], place[compared.second], compared.outcome, strict=True):
        outcomes[min(a, b), max(a, b)].append(int(outcome if a < b else -outcome))

    def begin(rng: np.random.Generator) -> Callable[[Pair], int | None]:
        left = {pair: rng.permutation(values).tolist() for pair, values in outcomes.items()}
        return lambda pair: left[pair].pop() if left[pair] else None

    return World(RELEASE, n, 600, begin), dict(table.hashes)


def run(world: World, assignment: str, checkpoints: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    """Whether each method has the true order after so many comparisons, (checkpoints, methods)."""
    outcome_of = world.begin(rng)
    pairs = dict(enumerate(combinations(range(world.n_systems), 2)))
    names = {k: tuple(f"{s:02}" for s in pair) for k, pair in pairs.items()}
    queue: list[int] = []
    answers: list[Answer] = []
    told: list[tuple[str, str, str]] = []
    right = np.zeros((len(checkpoints), 2), dtype=bool)
    while len(answers) < checkpoints[-1]:
        if assignment == "active":
            chosen = most_telling(names, told)
        else:
            queue = queue or rng.permutation(list(names)).tolist()
            chosen = queue.pop()
        result = outcome_of(pairs[chosen]) if chosen in names else None
        if result is None:
            names.pop(chosen, None)
            continue
        answers.append((*pairs[chosen], result))
        told.append((*names[chosen], WORDS[result]))
        if len(answers) in checkpoints:
            right[checkpoints.index(len(answers))] = is_right(answers, world.n_systems)
    return right


def is_right(answers: Sequence[Answer], n_systems: int) -> tuple[bool, bool]:
    compared = as_comparisons(*np.array(answers).T)
    scores = trueskill(compared, n_systems, STATIC).mu, bradley_terry(compared, n_systems, prior=0.1).strength
    return tuple(bool((np.diff(score) > 0).all()) for score in scores)  # type: ignore[return-value]


def curve(world: World, assignment: str, n_runs: int, seed: int) -> list[dict[str, Any]]:
    checkpoints = [*range(10, 100, 10), *range(100, world.most + 1, 20)]
    stream = np.random.SeedSequence([seed, *world.name.encode(), *assignment.encode()])
    right = np.array(
        [run(world, assignment, checkpoints, np.random.default_rng(s)) for s in stream.spawn(n_runs)]
    )
    rng = np.random.default_rng(seed)
    rows = []
    for m, method in enumerate(METHODS):
        drawn = rng.integers(0, n_runs, (2000, n_runs))
        needed = [first_reaching(right[d, :, m].mean(axis=0), checkpoints) for d in drawn]
        low, high = np.quantile(needed, [0.025, 0.975], method="nearest")
        rows.append(
            {
                "world": world.name,
                "assignment": assignment,
                "method": method,
                "chance": 1 / math.factorial(world.n_systems),
                "runs": n_runs,
                "comparisons": checkpoints,
                "share_right": right[:, :, m].mean(axis=0).round(4).tolist(),
                "needed": finite(first_reaching(right[:, :, m].mean(axis=0), checkpoints)),
                "low": finite(low),
                "high": finite(high),
            }
        )
    return rows


def first_reaching(share: np.ndarray, checkpoints: Sequence[int]) -> float:
    """The first number of comparisons from which on `SHARE` of the runs are right; inf if there is none."""
    below = np.flatnonzero(share < SHARE)
    after = below[-1] + 1 if below.size else 0
    return checkpoints[after] if after < len(checkpoints) else math.inf


def finite(value: float) -> int | None:
    return None if math.isinf(value) else int(value)


def page_tables(results: Mapping[str, Any]) -> list[str]:
    """The table of docs/results/rankme.md."""
    lines = [
        "| comparisons | method | uniform | active | right after 100, uniform | active | by chance |",
        "|---|---|---|---|---|---|---|",
    ]
    curves = {(c["world"], c["method"], c["assignment"]): c for c in results["curves"]}
    for world in dict.fromkeys(c["world"] for c in results["curves"]):
        for method in METHODS:
            uniform, active = (curves[world, method, assignment] for assignment in ASSIGNMENTS)
            after = [c["share_right"][c["comparisons"].index(100)] for c in (uniform, active)]
            cells = [_needed(uniform), _needed(active), *(f"{share:.0%}" for share in after)]
            lines.append(f"| {world} | {method} | {' | '.join(cells)} | {uniform['chance']:.1%} |")
    return ["\n".join(lines)]


def _needed(curve: Mapping[str, Any]) -> str:
    most = curve["comparisons"][-1]
    if curve["needed"] is None:
        return f"not within {most}"
    high = f"over {most}" if curve["high"] is None else curve["high"]
    return f"{curve['needed']} [{curve['low']}, {high}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds rankme/")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    start = time.perf_counter()
    release, hashes = released(given.data / "rankme")
    worlds = [*(simulated(name, *settings) for name, settings in SIMULATED.items()), release]
    curves = [
        row
        for world in worlds
        for assignment in ASSIGNMENTS
        for row in curve(world, assignment, given.runs, given.seed)
    ]
    config = {"runs": given.runs, "share": SHARE, "simulated": SIMULATED}
    record = record_run("learning_curve", seed=given.seed, config=config, data=hashes, packages=PACKAGES)
    results = {
        "command": f"python experiments/rankme/learning_curve.py --data DATA --out {given.out}",
        "run": record.model_dump(mode="json"),
        "hardware": f"{platform.machine()}, {os.cpu_count()} cores",
        "seconds": round(time.perf_counter() - start),
        "curves": curves,
    }
    given.out.write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(*page_tables(results), sep="\n\n")


if __name__ == "__main__":
    main()
