"""A verdict as every form of the report shows it."""

from __future__ import annotations

from dataclasses import dataclass

from palaver.evaluation.results import Verdict
from palaver.reports import wording
from palaver.studies.results import SystemScore


@dataclass(frozen=True)
class VerdictView:
    """Places, digits and intervals of one verdict."""

    verdict: Verdict

    @property
    def places(self) -> dict[str, str]:
        return wording.places(self.verdict.ranking) if self.verdict.ranking else {}

    @property
    def digits(self) -> int:
        return wording.score_digits(self.verdict.ranking) if self.verdict.ranking else 2

    @property
    def note(self) -> str:
        return "lower is better" if self.verdict.direction == "lower" else ""

    @property
    def cells(self) -> dict[str, SystemScore]:
        """System -> its score in the ranking."""
        ranking = self.verdict.ranking
        return {s.system: s for s in ranking.scores} if ranking is not None and ranking.groups else {}

    @property
    def means(self) -> dict[str, float]:
        return dict(self.verdict.means)

    def interval(self, score: SystemScore) -> str:
        return wording.score_interval(score, self.digits)
