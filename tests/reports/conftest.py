"""Results to report as fixtures (`sample.py` is loaded by path: test files here are no package)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from palaver.personality.plan import Settings
from palaver.personality.pools import Pools
from palaver.personality.protocol import run_protocol
from palaver.personality.samples import CountVectors


@pytest.fixture(scope="session")
def sample() -> ModuleType:
    spec = importlib.util.spec_from_file_location("report_sample", Path(__file__).with_name("sample.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def characters() -> Any:
    rng = np.random.default_rng(0)
    counts = rng.poisson(2, (400, 5)).astype(np.float32)
    counts[200:, 0] += 4
    pools = Pools(
        characters=("Ann [bold]", "<script>alert(1)</script>"),
        label=np.repeat([0, 1], 200).astype(np.int32),
        group=np.tile(np.arange(20), 20).astype(np.int32),
        group_noun="episode",
        traits=CountVectors(csr_matrix(counts), lambda totals: 1 + totals / totals.max()),
        words={"words": CountVectors(csr_matrix(counts))},
        recogniser="toy",
        source="a play",
        left_out=(("empty turns", 3),),
        notes=("a note",),
    )
    return run_protocol(pools, Settings(samples=20, size=30, repetitions=2, replicates=10, ocean_samples=5))
