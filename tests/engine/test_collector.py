from __future__ import annotations

import gc

import pytest

from palaver.engine import without_collector


def test_the_collector_is_off_inside_and_as_before_afterwards() -> None:
    assert gc.isenabled()
    with without_collector():
        assert not gc.isenabled()
        with without_collector():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="wrong"), without_collector():
        raise ValueError("wrong")
    assert gc.isenabled()
