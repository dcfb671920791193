"""The nouns, each said once. No database keys, no torch, no files."""

from palaver.schema.dialogue import Dialogue, Turn
from palaver.schema.item import Item, Output, Question
from palaver.schema.knowledge import Article, Entity, Fact, ReadingSet, Section
from palaver.schema.run import RunRecord, record_run
from palaver.schema.scale import (
    SCALES,
    Binary,
    Checkboxes,
    Likert,
    Magnitude,
    Ordinal,
    Pairwise,
    RankMagnitude,
    Scale,
)
from palaver.schema.serving import Checks, Completion, Expected, KnownItem, SurveyQuestion, Training
from palaver.schema.study import Rating, Study

__all__ = [
    "SCALES",
    "Article",
    "Binary",
    "Checkboxes",
    "Checks",
    "Completion",
    "Dialogue",
    "Entity",
    "Expected",
    "Fact",
    "Item",
    "KnownItem",
    "Likert",
    "Magnitude",
    "Ordinal",
    "Output",
    "Pairwise",
    "Question",
    "RankMagnitude",
    "Rating",
    "ReadingSet",
    "RunRecord",
    "Scale",
    "Section",
    "Study",
    "SurveyQuestion",
    "Training",
    "Turn",
    "record_run",
]
