"""The report on characters: in the terminal and as a page."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from scipy.sparse import csr_matrix

from palaver.personality.plan import Settings
from palaver.personality.pools import Pools
from palaver.personality.protocol import distinguish
from palaver.personality.samples import CountVectors
from palaver.reports.personality import (
    print_distinguishability,
    render_personality_report,
    write_personality_report,
)

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def found() -> Any:
    rng = np.random.default_rng(0)
    counts = rng.poisson(2, (400, 5)).astype(np.float32)
    counts[200:, 0] += 4
    pools = Pools(
        characters=("Ann [bold]", HOSTILE),
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
    return distinguish(pools, Settings(samples=20, size=30, repetitions=2, replicates=10, ocean_samples=5))


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_shows_names_and_numbers_whole(found: Any, width: int) -> None:
    text = io.StringIO()
    print_distinguishability(found, Console(file=text, width=width))
    shown = text.getvalue()
    assert "Distinguishable beyond chance resampling: yes" in shown.replace("\n", " ").replace("  ", " ")
    assert "Ann [bold]" in shown
    assert "characters, by traits" in shown
    assert "pseudo-characters" in shown
    assert "3  empty turns" in shown
    assert max(map(len, shown.splitlines())) <= width


def test_the_page_is_whole_and_asks_for_nothing(found: Any, tmp_path: Path) -> None:
    page = write_personality_report(found, tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert HOSTILE not in page
    assert "&lt;script&gt;alert(1)" in page
    assert page.count("<svg") == 2  # traits and conditions; the confusion matrix is a table
    assert not re.search(r'(?:src|href)="https?://(?!aclanthology)', page)
    for text in ("Distinguishable is not the same as having the traits", "pseudo-characters", "onfusion"):
        assert text in page


def test_the_same_result_gives_the_same_page(found: Any) -> None:
    assert render_personality_report(found) == render_personality_report(found)
