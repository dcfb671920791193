"""Judges: whatever turns responses or dialogues into ratings, rows of the table that people's are in."""

from palaver.judges.catalogue import JUDGES, directions, judge_names, open_judge
from palaver.judges.panel import Panel, judge

__all__ = ["JUDGES", "Panel", "directions", "judge", "judge_names", "open_judge"]
