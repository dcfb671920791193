from __future__ import annotations

import numpy as np

from palaver.comparator.coherence import FLOW, flow


def test_flow_of_a_system_that_repeats_itself() -> None:
    a, b = np.eye(4, dtype=np.float32)[:2]
    vectors, is_user = np.stack([a, b, a, b]), np.array([True, False, True, False])
    features, means = flow(vectors, is_user)
    named = dict(zip(FLOW, features, strict=True))
    assert len(features) == len(FLOW)
    assert named["coherence_system_mean"] == 0
    assert named["repeat_system_nearest"] == 1
    assert np.array_equal(means, np.r_[b, a, 0 * a, a + b])


def test_flow_of_one_turn_is_all_zero() -> None:
    features, _ = flow(np.ones((1, 3), np.float32), np.array([True]))
    assert np.isfinite(features).all()
    assert features[0] == 0
