"""What nearly every request of a rater does, in one call of PostgreSQL instead of a dozen statements.

The functions are in the database (migration 0004). They handle the usual case and nothing else: somebody at
work, without a screen in hand or a check due, gets the next screen; all answers to a real screen whose lease
is running arrive at once. Everything else they leave as it is, and the caller goes the long way, through
`next_screen`, `leases` and `answers`, which say what is right.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Executable, Row, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from palaver.schema import Study
from palaver.server.catalogue import UNLIMITED
from palaver.server.database import GATE, Database
from palaver.server.leases import SIGN_OF_LIFE, Lease
from palaver.server.next_screen import check_offset, most_checks

_TAKE = text(
    "SELECT * FROM palaver_take_screen("
    ":gate, :rater, :now, :lease, :version, :quota, :check_rate, :check_offset, :most_checks)"
)
_STORE = text("SELECT palaver_store_answers(:gate, :rater, :assignment, :now, :version, :given)")


class RecentLeases(dict[int, Lease]):
    """Screens that this process handed out by the short way: to know them again saves a question."""

    MOST = 10_000

    def __setitem__(self, assignment_id: int, held: Lease) -> None:
        if len(self) >= self.MOST:
            for oldest in list(self)[: self.MOST // 10]:  # most of them were never answered
                self.pop(oldest, None)
        super().__setitem__(assignment_id, held)


def take_screen(database: Database, study: Study, version: int, rater_id: str, now: float) -> Row[Any] | None:
    """The next screen, leased to this rater; None: go the long way."""
    if database.is_sqlite or study.assignment == "active" or study.stop == "when-sure":
        return None
    values = {
        "rater": rater_id,
        "now": now,
        "lease": min(study.lease_minutes * 60, SIGN_OF_LIFE),
        "version": version,
        "quota": study.items_per_rater or UNLIMITED,
        "check_rate": study.checks.rate,
        "check_offset": check_offset(rater_id),
        "most_checks": most_checks(study),
    }
    rows = _call(database, _TAKE, values)
    return rows[0] if rows else None


def store_answers(
    database: Database,
    version: int,
    rater_id: str,
    assignment_id: int,
    now: float,
    given: Sequence[dict[str, object]],
) -> bool:
    """Store all answers of a screen and finish it; False: go the long way."""
    if database.is_sqlite:
        return False
    values = {"rater": rater_id, "assignment": assignment_id, "now": now, "version": version}
    rows = _call(database, _STORE, {**values, "given": json.dumps(given)})
    return bool(rows and rows[0][0])


def _call(database: Database, function: Executable, values: dict[str, object]) -> Sequence[Row[Any]]:
    """Nothing where the long way is to say what is wrong: an id that is taken, a connection that was lost."""
    try:
        with database.engine.connect() as connection:
            return connection.execute(function, {**values, "gate": GATE}).all()
    except IntegrityError:
        return []
    except DBAPIError as error:
        if error.connection_invalidated:
            return []
        raise
