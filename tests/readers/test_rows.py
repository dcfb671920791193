"""What every reader of rows shares."""

from __future__ import annotations

import random
import tracemalloc

from palaver.readers.rows import FirstRows


def test_first_rows_are_those_of_a_dict() -> None:
    rng = random.Random(0)
    keys = [rng.choice([rng.getrandbits(64) - 2**63, rng.randrange(2, 40) << 20]) for _ in range(20_000)]
    expected: dict[int, int] = {}
    first_rows = FirstRows()
    for row, key in enumerate(keys, start=1):
        assert first_rows.of(key, row) == expected.setdefault(key, row)


def test_first_rows_take_little_memory() -> None:
    n = 20_000
    tracemalloc.start()
    first_rows = FirstRows()
    for row in range(n):
        first_rows.of(hash(("c", row)), row)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 33 * n
