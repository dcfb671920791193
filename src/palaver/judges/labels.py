"""What a judge needs to know of a dialogue besides its turns, and how it marks what it has learnt from."""

from __future__ import annotations

from palaver.errors import DataError
from palaver.readers.shapes import known_label
from palaver.schema import Dialogue

SEEN = "|trained on what it rates"
"""Ends the signature of a rating whose judge was trained on the very output it rates."""
SEEN_NOTE = "outputs that the judge was trained on: their scores say nothing about others"


def system_of(dialogue: Dialogue) -> str:
    """The system that spoke in it."""
    system = known_label(dialogue.labels, "system")
    if system is None:
        raise DataError(f"dialogue {dialogue.id!r} names no system", "give each dialogue a field `system`")
    return str(system)


def sitting_of(dialogue: Dialogue) -> str | None:
    """The sitting it belongs to: dialogues of one sitting are compared with each other."""
    group = known_label(dialogue.labels, "group")
    return None if group is None else str(group)
