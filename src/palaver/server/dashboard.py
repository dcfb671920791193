"""The admin's page: the same state as data (for programs) and as pieces of HTML (for the page itself).

The pieces are rendered here and nowhere else: the page begins with them, and its script puts newer ones in
their place.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import Any

from markupsafe import Markup
from sqlalchemy import Row

from palaver.errors import count_of
from palaver.reports import names, numbers, wording
from palaver.reports.page import name_mark
from palaver.schema.run import plain
from palaver.server.admin_sessions import AdminSession
from palaver.server.assets import environment, static_files
from palaver.server.database import Database
from palaver.server.entry import code_of, resume_requests
from palaver.server.export import pseudonym
from palaver.server.live import Findings, Live, Point
from palaver.server.oversight import Status, rater_table, status
from palaver.server.sequence_view import MOST_DRAWN, describe_stop, forecast, sequence_chart, watch_data
from palaver.studies.raters import FLAGS
from palaver.studies.results import RaterRow

SECTIONS = ("progress", "results", "raters")
MOST_RATERS = 500
"""Rows in the table; the download has everybody."""
ALL_FLAGS = {**FLAGS, "check failed": "gave a wrong answer to a check"}
_STATES = {
    "consent": "reading the consent",
    "instructions": "reading the instructions",
    "training": "in training",
    "working": "rating",
    "survey": "at the survey",
    "done": "finished",
    "screened": "screened out",
    "declined": "did not agree",
    "withdrawn": "left before the end",
}


_NOTHING_KNOWN = RaterRow(
    rater="",
    n_ratings=0,
    n_items=0,
    median_seconds=math.nan,
    spread=math.nan,
    straight_lining=math.nan,
    agreement=math.nan,
    n_shared=0,
)


def name_of(rater_id: str, external: str | None, *, personal: bool) -> str:
    """What a rater is called: by the platform, or else by the pseudonym that published data have."""
    return (external or rater_id[:8]) if personal else pseudonym(rater_id)


@dataclass(frozen=True, slots=True)
class RaterLine:
    """One line of the table of raters."""

    rater: Row[Any]
    """As `oversight.rater_table` has it."""
    habits: RaterRow
    personal: bool = True
    """Whether the platform's name for the person may be shown."""

    @property
    def flags(self) -> tuple[str, ...]:
        return ("check failed", *self.habits.flags) if self.rater.checks_failed else self.habits.flags

    @property
    def name(self) -> str:
        return name_of(self.rater.id, self.rater.external, personal=self.personal)

    @property
    def standing(self) -> str:
        return _STATES.get(self.rater.state, str(self.rater.state))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """Everything the page shows."""

    status: Status
    findings: Findings | None
    raters: tuple[RaterLine, ...]
    requests: tuple[Row[Any], ...]
    """Browsers that want to go on as somebody, as `entry.resume_requests` has them."""
    personal: bool = True

    @property
    def fresh(self) -> bool:
        return self.findings is not None and self.findings.answers == self.status.answers


def look(
    database: Database, live: Live, *, wait: bool = False, now: float | None = None, personal: bool = True
) -> Dashboard:
    """The state of the study; `wait` for statistics that are not there yet. `personal`: with platform ids."""
    now = time.time() if now is None else now
    findings = live.wait() if wait else live.current()
    habits = findings.raters if findings else {}
    lines = [
        RaterLine(row, habits.get(row.id, _NOTHING_KNOWN), personal) for row in rater_table(database, now)
    ]
    lines.sort(key=lambda line: (line.rater.excluded, -len(line.flags)))  # stable: the latest seen first
    return Dashboard(
        status=status(database, now),
        findings=findings,
        raters=tuple(lines),
        requests=tuple(resume_requests(database)),
        personal=personal,
    )


def as_data(board: Dashboard) -> dict[str, Any]:
    """For programs: undefined numbers are null, with the reason beside them."""
    findings = board.findings
    data: dict[str, object] = {
        "status": board.status,
        "statistics": None,
        "raters": [
            {
                **line.rater._mapping,
                "external": line.rater.external if board.personal else None,
                "flags": line.flags,
                "median_seconds": line.habits.median_seconds,
                "agreement": line.habits.agreement,
                "ratings": line.habits.n_ratings,
            }
            for line in board.raters[:MOST_RATERS]
        ],
    }
    if findings is not None:
        data["statistics"] = {
            "answers": findings.answers,
            "up_to_date": board.fresh,
            "median_seconds_per_screen": findings.screen_seconds,
            "problem": findings.problem,
            "sequence": [watch_data(pair) for pair in findings.watches],
            "stopped": findings.stopped,
            "criteria": [
                {**asdict(c), "in_words": wording.in_words_by(c.agreement) if c.agreement else ""}
                for c in findings.criteria
            ],
        }
    return {key: plain(value) for key, value in data.items()}


# --- the page -----------------------------------------------------------------------------------------------


class Pages:
    """The admin's templates, compiled once."""

    def __init__(self, root_path: str, *, is_collection: bool = False) -> None:
        self._environment = environment(root_path, static_files())
        self._environment.finalize = lambda value: names.scrub(value) if type(value) is str else value
        self._environment.filters.update(
            statistic=numbers.statistic,
            number=numbers.number,
            count=numbers.count,
            seconds=numbers.seconds,
            percent=numbers.percent,
            name=_name,
        )
        self._environment.globals.update(
            some=numbers.some,
            interval=numbers.interval,
            measure_name=wording.measure_name,
            in_words=wording.in_words_by,
            ranking_basis=wording.ranking_basis,
            rank_labels=wording.rank_labels,
            isfinite=math.isfinite,
            forecast=forecast,
            describe_stop=describe_stop,
            sequence_chart=sequence_chart,
            most_drawn=MOST_DRAWN,
            nan=math.nan,
            chart=chart,
            ago=ago,
            code_of=code_of,
            name_of=name_of,
            flags=ALL_FLAGS,
            is_collection=is_collection,
            actions_of=_actions_of_collection if is_collection else _actions,
            count=count_of,
            most_raters=MOST_RATERS,
        )

    def page(self, template: str, **values: Any) -> str:
        """A whole page."""
        return self._environment.get_template(template).render(**values)

    def sections(self, board: Dashboard, csrf: str, session: AdminSession) -> dict[str, str]:
        """The pieces of the page that change, by the id of the element that holds each."""
        values = {"board": board, "csrf": csrf, "now": board.status.now, "may": session.may}
        return {name: self.page(f"admin_{name}.html.j2", **values) for name in SECTIONS}


def _name(text: str, width: int = 28) -> Markup:
    return name_mark(text, width)


def _actions(row: Row[Any]) -> tuple[str, ...]:
    """What can be decided about a rater."""
    return ("include" if row.excluded else "exclude", "unblock" if row.blocked else "block")


def _actions_of_collection(row: Row[Any]) -> tuple[str, ...]:
    """Whose conversations count is decided about each of them, and whoever is out needs no blocking."""
    return () if row.state not in ("consent", "instructions", "working") else _actions(row)[1:]


def ago(then: float, now: float) -> str:
    """`just now`, `4 min ago`, `3 h ago`, `2 days ago`."""
    passed = max(0.0, now - then)
    if passed < 60:
        return "just now"
    if passed < 3600:
        return f"{passed // 60:.0f} min ago"
    return f"{passed // 3600:.0f} h ago" if passed < 172_800 else f"{passed // 86_400:.0f} days ago"


_WIDE, _HIGH = 240, 64


def chart(course: tuple[Point, ...]) -> dict[str, Any] | None:
    """The course of an agreement as coordinates: a band for the interval, a line for the value."""
    known = [p for p in course if math.isfinite(p.value)]
    if len(known) < 2:
        return None
    last = known[-1].answers

    def x(point: Point) -> float:
        return round(_WIDE * point.answers / last, 1)

    def y(value: float) -> float:
        return round(_HIGH * (1 - min(max(value, 0.0), 1.0)), 1)  # below 0 there is nothing to see

    def end(value: float, instead: float) -> float:
        return y(value if math.isfinite(value) else instead)

    upper = [f"{x(p)},{end(p.high, p.value)}" for p in known]
    lower = [f"{x(p)},{end(p.low, p.value)}" for p in reversed(known)]
    return {
        "width": _WIDE,
        "height": _HIGH,
        "band": " ".join([*upper, *lower]),
        "line": " ".join(f"{x(p)},{y(p.value)}" for p in known),
        "x": x(known[-1]),
        "y": y(known[-1].value),
        "first": known[0],
        "last": known[-1],
    }
