"""When paired comparisons have a finite maximum-likelihood estimate, and why not where they have none.

Ford (1957), "Solution of a ranking problem from binary comparisons": when nobody can be split off who only
won or only lost, that is when the graph of who beat (or tied with) whom is strongly connected. A tie
parameter needs a little more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]


def is_finite(beat: Bools, tied: Bools, has_nu: bool) -> Bools:
    """Which of B problems, graphs of shape (B, S, S), have a finite estimate."""
    if not has_nu:
        return _is_connected(beat | tied)
    finite = _is_connected(beat)
    rest = np.flatnonzero(~finite)  # ties may still join what wins alone do not
    if rest.size:
        beat, tied = beat[rest], tied[rest]
        bounded = nu_is_bounded(beat, tied) | ~tied.any(axis=(1, 2))
        finite[rest] = _is_connected(beat | tied) & bounded
    return finite


def nu_is_bounded(beat: Bools, tied: Bools) -> Bools:
    """Whether the likelihood falls at last as nu grows, with the strengths free to follow.

    It does not when the strengths can be spread so that every win spans at least one step of log nu
    and every tie at most one. These are difference constraints, feasible unless the graph with edges
    of -1 (a win) and +1 (a tie, both ways) has a negative cycle: Floyd & Warshall find it.
    """
    n = beat.shape[-1]
    cost = np.where(beat, -1.0, np.where(tied, 1.0, np.inf))
    for k in range(n):
        cost = np.minimum(cost, cost[:, :, k, None] + cost[:, None, k, :])
        np.maximum(cost, -n - 1.0, out=cost)  # round a negative cycle the cost doubles at each k
    return np.asarray((np.diagonal(cost, axis1=1, axis2=2) < 0).any(axis=1))


def obstacle(beat: Bools, tied: Bools, has_nu: bool, names: tuple[str, ...]) -> str:
    """Why one problem has no finite estimate, naming the systems; empty when it has one."""
    n = len(names)
    if n < 2:
        return f"{n} {'system' if n == 1 else 'systems'}: there is nothing to compare"
    edges = beat | tied
    if not edges.any():
        return "no comparisons"
    if is_finite(beat[None], tied[None], has_nu)[0]:
        return ""

    def listed(member: Bools) -> str:
        return ", ".join(name for name, there in zip(names, member, strict=True) if there)

    parts = _classes(_reachable(edges | edges.T))
    if len(parts) > 1:
        return "not compared with each other, even through others: " + " | ".join(map(listed, parts))
    reach = _reachable(edges)
    parts = _classes(reach & reach.T)
    if len(parts) == 1:
        return (
            "nu has no finite estimate: no circle of comparisons holds more wins than ties "
            '(ties="half" or a prior above 0 gives one)'
        )
    unbeaten = [listed(part) for part in parts if not reach[np.ix_(~part, part)].any()]
    winless = [listed(part) for part in parts if not reach[np.ix_(part, ~part)].any()]
    return (
        f"no finite estimate (Ford 1957): {' and '.join(unbeaten)} never lost to the others; "
        f"{' and '.join(winless)} never won against the others (a prior above 0 gives one)"
    )


def _reachable(edges: Bools) -> Bools:
    """Transitive closure of (..., S, S) graphs, by squaring."""
    n = edges.shape[-1]
    paths = (edges | np.eye(n, dtype=bool)).astype(np.float32)
    for _ in range((n - 1).bit_length()):
        paths = (paths @ paths > 0).astype(np.float32)
    return np.asarray(paths > 0)


def _is_connected(edges: Bools) -> Bools:
    return np.asarray(_reachable(edges).all(axis=(-2, -1)))


def _classes(same: Bools) -> list[Bools]:
    """The classes of an equivalence given as a matrix, each as a mask, in the order of their first member."""
    return [same[i] for i in range(len(same)) if not same[i, :i].any()]
