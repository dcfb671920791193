"""The nouns, each said once. No database keys, no torch, no files."""

from palaver.schema.condition import Condition
from palaver.schema.delivery import Checks, Completion, Expected, KnownItem, SurveyQuestion, Training
from palaver.schema.dialogue import Dialogue, Turn
from palaver.schema.item import Item, Output, Question
from palaver.schema.judge import Criterion, Judge
from palaver.schema.knowledge import Article, Entity, Fact, ReadingSet, Section
from palaver.schema.rating import KINDS, Kind, Rating
from palaver.schema.response import Response
from palaver.schema.run import RunRecord, record_run
from palaver.schema.scale import (
    SCALES,
    BestWorst,
    Binary,
    Checkboxes,
    FreeText,
    Likert,
    Magnitude,
    Ordinal,
    Pairwise,
    Ranking,
    RankMagnitude,
    Real,
    Scale,
    SingleChoice,
    Slider,
)
from palaver.schema.study import Study
from palaver.schema.system import Reply, Request, Say, System

__all__ = [
    "KINDS",
    "SCALES",
    "Article",
    "BestWorst",
    "Binary",
    "Checkboxes",
    "Checks",
    "Completion",
    "Condition",
    "Criterion",
    "Dialogue",
    "Entity",
    "Expected",
    "Fact",
    "FreeText",
    "Item",
    "Judge",
    "Kind",
    "KnownItem",
    "Likert",
    "Magnitude",
    "Ordinal",
    "Output",
    "Pairwise",
    "Question",
    "RankMagnitude",
    "Ranking",
    "Rating",
    "ReadingSet",
    "Real",
    "Reply",
    "Request",
    "Response",
    "RunRecord",
    "Say",
    "Scale",
    "Section",
    "SingleChoice",
    "Slider",
    "Study",
    "SurveyQuestion",
    "System",
    "Training",
    "Turn",
    "record_run",
]
