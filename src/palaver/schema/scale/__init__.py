"""Scales: the only authority on a judgement.

A scale says which values are permitted, which widget asks for them, at which level they measure
(Stevens 1946: nominal, ordinal, interval, ratio), how a raw value becomes a score, and how a simulated rater
answers. Nothing else in the house asks which scale it has in hand.

A new scale is a class with a `kind` of its own and a line in `SCALES`, or a class in another package with an
entry point in the group `palaver.scales`. Its `widget` names a macro in
`server/templates/widgets.html.j2`.
"""

from palaver.schema.scale.base import SCALES, Bounds, Choice, Form, Impressions, Level, Scale, Value
from palaver.schema.scale.boxes import Checkboxes, SingleChoice
from palaver.schema.scale.magnitude import Magnitude, RankMagnitude
from palaver.schema.scale.numeric import Binary, Likert, Numeric, Ordinal, Real, Slider
from palaver.schema.scale.order import BestWorst, OutputOrder, Ranking
from palaver.schema.scale.pairwise import Pairwise
from palaver.schema.scale.text import FreeText

__all__ = [
    "SCALES", "BestWorst", "Binary", "Bounds", "Checkboxes", "Choice", "Form", "FreeText", "Impressions",
    "Level", "Likert", "Magnitude", "Numeric", "Ordinal", "OutputOrder", "Pairwise", "RankMagnitude",
    "Ranking", "Real", "Scale", "SingleChoice", "Slider", "Value",
]  # fmt: skip
