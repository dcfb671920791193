"""Agreement without each rater and each item, against leaving out their rows one by one."""

from __future__ import annotations

import numpy as np
import pytest

from palaver.statistics.alpha import alpha_long
from palaver.statistics.icc import icc_long
from palaver.statistics.influence import Measure, leave_one_out

pytestmark = pytest.mark.filterwarnings("error")
MEASURES: tuple[Measure, ...] = ("ICC(1,k)", "ICC(2,k)", "alpha")


def measure_of(measure: str, output: np.ndarray, rater: np.ndarray, value: np.ndarray) -> float:
    if measure == "alpha":
        return alpha_long(output, value).value
    return icc_long(output, rater, value)[measure].value


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("share", [1.0, 0.97, 0.5])
def test_is_the_measure_of_the_file_without_the_rows(measure: Measure, share: float) -> None:
    rng = np.random.default_rng(4)
    output, rater = np.divmod(np.arange(24 * 6), 6)
    kept = rng.random(output.size) < share
    output, rater = output[kept], rater[kept]
    value = rng.normal(size=24)[output] + rng.normal(size=output.size)
    if measure == "alpha":
        value = np.clip(np.round(value), -1, 1)
    item = output // 3
    result = leave_one_out(measure, output, rater, item, value)
    assert result.value == pytest.approx(measure_of(measure, output, rater, value), nan_ok=True)
    for group, without in ((rater, result.without_rater), (item, result.without_item)):
        for code, ours in enumerate(without):
            rest = group != code
            slow = measure_of(measure, output[rest], rater[rest], value[rest])
            assert ours == pytest.approx(slow, rel=1e-9, nan_ok=True)


@pytest.mark.parametrize("measure", MEASURES)
def test_missing_and_repeated_ratings(measure: Measure) -> None:
    """A missing value is no rating; a rater who judged an output twice takes both along."""
    output = np.repeat(np.arange(6), 4)
    rater = np.tile([0, 1, 2, 2], 6)
    value = np.random.default_rng(1).integers(0, 3, 24).astype(float)
    value[5] = np.nan
    result = leave_one_out(measure, output, rater, output, value)
    rest = rater != 2
    slow = measure_of(measure, output[rest], rater[rest], value[rest])
    assert result.without_rater[2] == pytest.approx(slow, nan_ok=True)


@pytest.mark.parametrize("measure", MEASURES)
def test_what_cannot_be_measured_is_nan(measure: Measure) -> None:
    result = leave_one_out(measure, [0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1], [1.0, 2.0, 2.0, 1.0])
    assert np.isnan(result.without_rater).all()
    assert leave_one_out(measure, [0, 1], [0, 1], [0, 0], [np.nan, np.nan]).without_item.size == 1
