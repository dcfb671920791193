"""A study with `stop = "when-sure"` hands out no more screens once every two systems are decided.

The confidence sequence is a function of the answers in their order, so a server that was stopped and started
again goes on where it was. That the study has stopped is a row in its diary: whatever comes later, from
leases that were running, changes nothing about it.
"""

from __future__ import annotations

import logging
import threading
import time

from palaver.errors import UserError
from palaver.schema import Study
from palaver.server.database import Database
from palaver.server.export import FOR_ANALYSIS, read_answers
from palaver.server.records import count_answers, log, stop_reason
from palaver.studies.ratings import read_ratings
from palaver.studies.stop_judge import verdicts_in
from palaver.studies.trust import people_of
from palaver.studies.trust_plan import dialogues_of
from palaver.studies.trust_sequence import Watch, watch

_LONGEST_SHARE = 4.0
"""Raters come first: after a look, it rests this many times as long as the look took."""


def watch_study(database: Database, study: Study) -> list[Watch]:
    """Every two systems on the criterion that decides, as of all answers; empty before the first."""
    try:
        table = read_ratings(read_answers(database, FOR_ANALYSIS), study=study, skip_bad=True)
        people = people_of(table, study.deciding_criterion)
    except UserError:  # nobody has answered yet, or not this question
        return []
    verdicts = verdicts_in(study.stop_judge) if study.stop_judge is not None else None
    return watch(people, verdicts, within=study.equivalent_within, planned=len(dialogues_of(study)))


def describe_decisions(watches: list[Watch]) -> str:
    """Why the study stops, in a sentence."""
    parts = []
    for pair in watches:
        if pair.decision == "equivalent":
            parts.append(f"{pair.system} and {pair.against} are equivalent")
        elif pair.decision == "better":
            parts.append(f"{pair.system} is better than {pair.against}")
        else:
            parts.append(f"{pair.against} is better than {pair.system}")
    return "; ".join(parts)


def stop_if_sure(database: Database, study: Study, now: float) -> str | None:
    """Look at all answers; if every two systems are decided, write down that the study stops, and why."""
    if study.stop != "when-sure":
        return None
    with database.reading() as connection:
        known = stop_reason(connection)
    if known is not None:
        return known
    watches = watch_study(database, study)
    n_pairs = len(study.systems) * (len(study.systems) - 1) // 2
    if len(watches) < n_pairs or any(pair.decision == "go on" for pair in watches):
        return None
    why = describe_decisions(watches)
    with database.writing() as connection:
        known = stop_reason(connection)  # another process may have been first
        if known is None:
            log(connection, now, None, "stopped", why)
    return known or why


class Stopping:
    """Looks in the background after answers, one look at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._busy = False
        self._seen = -1

    def consider(self, study: Study, now: float) -> None:
        """There is a new answer: look, unless a look is under way (which then looks again)."""
        with self._lock:
            if self._busy:
                return
            self._busy = True
        threading.Thread(target=self._run, args=(study, now), daemon=True, name="stopping").start()

    def _run(self, study: Study, now: float) -> None:
        try:
            while True:
                with self._database.reading() as connection:
                    answers = count_answers(connection)
                if answers == self._seen:
                    return
                self._seen = answers
                began = time.perf_counter()
                if stop_if_sure(self._database, study, now) is not None:
                    return
                time.sleep(min(30.0, _LONGEST_SHARE * (time.perf_counter() - began)))
        except Exception:  # a study that does not stop by itself is better than one that fails
            logging.getLogger(__name__).exception("the look at the confidence sequence failed")
        finally:
            with self._lock:
                self._busy = False
