"""Palaver: which conversation is better, and how far can you trust that answer?

The public names live here and are loaded when first used, so that `import palaver` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "1.0.0"

_HOMES = {
    "palaver.errors": ("UserError",),
    "palaver.schema": (
        "Dialogue", "Item", "Judge", "Output", "Question", "Rating", "Reply", "Request", "Response",
        "RunRecord", "Study", "System", "Turn",
    ),
    "palaver.readers": ("read_dialogues", "read_responses", "write_dialogues"),
    "palaver.readers.rating_files": ("write_ratings",),
    "palaver.corpora.catalogue": ("read_corpus",),
    "palaver.statistics.alpha": ("krippendorff_alpha",),
    "palaver.statistics.bradley_terry": ("bradley_terry",),
    "palaver.statistics.correlation": ("correlate",),
    "palaver.statistics.icc": ("icc",),
    "palaver.statistics.kappa": ("cohen_kappa", "fleiss_kappa"),
    "palaver.statistics.normalise": ("normalise",),
    "palaver.statistics.ranking": ("paired_bootstrap",),
    "palaver.statistics.trueskill": ("trueskill",),
    "palaver.studies": (
        "analyse", "draft_study", "load_study", "ratings_from_frame", "read_ratings", "simulate",
    ),
    "palaver.studies.agreement_comparison": ("compare_agreement",),
    "palaver.judges": ("judge", "open_judge"),
    "palaver.judges.meta": ("meta_evaluate",),
    "palaver.metrics.evaluate": ("evaluate",),
    "palaver.generation.bulk": ("generate",),
    "palaver.generation.systems_file": ("open_system",),
    "palaver.comparator.scorer": ("load_scorer", "score"),
    "palaver.personality.recogniser": ("load_recogniser", "score_texts"),
    "palaver.personality.sources": ("distinguish",),
    "palaver.models.encoders": ("open_encoder",),
    "palaver.probes.probe": ("probe",),
    "palaver.knowledge.selector": ("make_selector",),
    "palaver.reports": ("write_report",),
    "palaver.evaluation.run": ("run_experiment",),
}  # fmt: skip
"""This is the only list of front doors: what a room has besides is imported from its module."""
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'palaver' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
