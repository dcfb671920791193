"""Human studies: designs, ratings, simulation and analysis."""

from palaver.studies.analyse import analyse
from palaver.studies.describe import describe
from palaver.studies.design import PRESETS, load_study, preset_text
from palaver.studies.draft import StudyDraft, draft_study
from palaver.studies.export import write_long
from palaver.studies.ratings import RatingTable, ratings_from_frame, read_ratings
from palaver.studies.results import Analysis
from palaver.studies.simulate import Habits, example_study, power_draw, simulate

__all__ = [
    "PRESETS",
    "Analysis",
    "Habits",
    "RatingTable",
    "StudyDraft",
    "analyse",
    "describe",
    "draft_study",
    "example_study",
    "load_study",
    "power_draw",
    "preset_text",
    "ratings_from_frame",
    "read_ratings",
    "simulate",
    "write_long",
]
