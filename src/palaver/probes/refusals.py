"""Why a rule does not apply."""

from __future__ import annotations

from palaver.probes.words import TABLES

REASONS: dict[str, str] = TABLES["reasons"]
"""Every reason a rule may give, with what it means."""


class NotApplicable(Exception):
    """The rule does not fit this sentence; `reason` is one of `REASONS`."""

    def __init__(self, reason: str) -> None:
        if reason not in REASONS:
            raise ValueError(f"unknown reason {reason!r}")
        super().__init__(f"{reason}: {REASONS[reason]}")
        self.reason = reason
