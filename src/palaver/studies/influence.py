"""How much the quoted agreement of a criterion hangs on one rater, or on one item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from palaver.statistics.influence import Measure, leave_one_out
from palaver.studies.judgements import Floats, Judgements
from palaver.studies.results import AgreementRow, InfluenceRow

MOST_ITEMS = 20
"""Items whose absence changes most; there may be very many."""
_MEASURES: dict[tuple[str, str], Measure] = {
    ("ICC", "ICC(1,k)"): "ICC(1,k)",
    ("ICC", "ICC(2,k)"): "ICC(2,k)",
    ("Krippendorff alpha", "nominal"): "alpha",
}


def find_influence(judged: Judgements, agreement: Sequence[AgreementRow]) -> Iterator[InfluenceRow]:
    """The quoted measure without each rater, then without each of the items that matter most.

    What changes most comes first. Nothing is found for two raters: without one there is no agreement.
    """
    quoted = next((row for row in agreement if row.headline), None)
    if quoted is None or (quoted.measure, quoted.form) not in _MEASURES or len(judged.raters) < 3:
        return
    measure = _MEASURES[quoted.measure, quoted.form]
    result = leave_one_out(measure, judged.unit, judged.rater, judged.item, judged.score)
    known = np.isfinite(judged.score)
    for left_out, names, codes, without in (
        ("rater", judged.raters, judged.rater, result.without_rater),
        ("item", judged.items, judged.item, result.without_item),
    ):
        n_ratings = np.bincount(codes, known, minlength=len(names))
        most = MOST_ITEMS if left_out == "item" else len(names)
        for i in _by_change(without - result.value)[:most]:
            yield InfluenceRow(
                criterion=judged.criterion,
                measure=quoted.measure,
                form=quoted.form,
                left_out=left_out,
                name=names[i],
                n_ratings=int(n_ratings[i]),
                value=result.value,
                without=float(without[i]),
                change=float(without[i] - result.value),
                reason="" if np.isfinite(without[i]) else f"nothing to measure without this {left_out}",
            )


def _by_change(change: Floats) -> list[int]:
    """The largest change first; what cannot be measured last."""
    size = np.where(np.isfinite(change), np.abs(change), -1.0)
    return [int(i) for i in np.argsort(-size, kind="stable")]
