"""Judges: whatever turns responses or dialogues into ratings, so that every statistic works on all of them."""

from palaver.judges.catalogue import JUDGES, directions, judge_names, open_judge
from palaver.judges.panel import Panel, judge

__all__ = ["JUDGES", "Panel", "directions", "judge", "judge_names", "open_judge"]
