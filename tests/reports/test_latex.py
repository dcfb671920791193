"""The LaTeX tables of an analysis."""

from __future__ import annotations

import re
from types import ModuleType

from palaver.reports.latex import render_latex


def test_every_system_and_the_quoted_agreement(sample: ModuleType) -> None:
    text = render_latex(sample.make())
    means, agreement = text.split(r"\end{table}")[:2]
    analysis = sample.make()
    for row in analysis.ranking:
        if row.method == "bootstrap" and row.groups:
            assert all(f" & {score.system} & " in means for score in row.scores)
    quoted = [row for row in analysis.agreement if row.headline]
    assert quoted
    assert agreement.count(r" \\") == 1 + len(quoted)
    assert "(blank)" not in text


def test_names_cannot_leave_their_cell(sample: ModuleType) -> None:
    text = render_latex(sample.hostile())
    for line in text.splitlines():
        if line.endswith(r" \\"):
            assert len(re.split(r"(?<!\\)&", line)) == 6
