"""What a study can show: its items, questions and known answers by name, and its screens."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from palaver.schema import Item, Question, Study
from palaver.schema.delivery import Expected, KnownItem
from palaver.studies.checks import can_degrade, degrade
from palaver.studies.screens import Screen, plan_screens, question_groups

UNLIMITED = 1_000_000
"""Checks and training are for everybody."""


@dataclass(frozen=True, slots=True)
class ScreenContent:
    """A screen with what it shows."""

    screen: Screen
    kind: str
    item: Item
    questions: tuple[Question, ...]
    expected: tuple[Expected, ...] = ()
    """What is known of the right answers to this screen's questions."""


class Catalogue:
    """Look-ups that do not change until a study is amended."""

    def __init__(self, study: Study, screens: Iterable[Row[Any]]) -> None:
        self.study = study
        self.items = {item.id: item for item in study.items}
        self.groups = question_groups(study)
        known = [*(study.training.items if study.training else ()), *study.checks.items]
        self.known: dict[str, KnownItem] = {k.item.id: k for k in known}
        self.n_screens = len(plan_screens(study))
        self._screens = {row.id: row for row in screens}
        self._contents: dict[int, ScreenContent] = {}

    def content(self, screen_id: int) -> ScreenContent:
        """What is on a screen. Only its count of raters ever changes."""
        if screen_id not in self._contents:
            self._contents[screen_id] = self._put_together(self._screens[screen_id])
        return self._contents[screen_id]

    def _put_together(self, row: Row[Any]) -> ScreenContent:
        place = Screen(row.id, row.item, tuple(json.loads(row.criteria)), row.group_no, row.place)
        questions = self.groups[row.group_no]
        if row.kind in ("check", "training"):
            known = self.known[row.item]
            expected = tuple(e for e in known.expected if e.criterion in place.criteria)
            return ScreenContent(place, row.kind, known.item, questions, expected)
        item = self.items[row.item]
        if row.kind == "degraded":
            item = degrade(item, self.study.seed)
        return ScreenContent(place, row.kind, item, questions)


def screen_rows(study: Study) -> list[dict[str, object]]:
    """Every screen that can be handed out: real ones, broken copies, checks, and training by attempt."""
    plan = plan_screens(study)
    rows = [_row(s, "main", study.raters_per_item) for s in plan]
    if study.checks.degraded:
        breakable = {item.id for item in study.items if can_degrade(item, study.seed)}
        rows += [_row(s, "degraded", UNLIMITED) for s in plan if s.item in breakable]
    known = [("check", 0, k) for k in study.checks.items]
    if study.training:
        known += [("training", n, k) for n in range(study.training.attempts) for k in study.training.items]
    for kind, block, k in known:
        for group, questions in enumerate(question_groups(study)):
            criteria = tuple(q.criterion for q in questions)
            if {e.criterion for e in k.expected} & set(criteria):
                rows.append(_row(Screen(0, k.item.id, criteria, group, block), kind, UNLIMITED))
    return [{**row, "id": number} for number, row in enumerate(rows)]


def _row(place: Screen, kind: str, target: int) -> dict[str, object]:
    return {
        "kind": kind,
        "item": place.item,
        "criteria": json.dumps(place.criteria),
        "group_no": place.group,
        "place": place.place,
        "block_no": place.block if kind in ("main", "degraded") else place.place,
        "target": target,
        "taken": 0,
    }
