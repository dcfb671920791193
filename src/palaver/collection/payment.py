"""Whoever leaves is paid, or there is a reason why not."""

from __future__ import annotations

from palaver.collection.lobby import Visitor
from palaver.collection.records import Exit, Pay
from palaver.errors import Sentence


def pay_for(visitor: Visitor, exit: Exit, now: float, *, is_complete: bool) -> tuple[Pay, str]:
    """What somebody is paid for who leaves now, and why. `is_complete`: the conversation was submitted."""
    if exit == "finished":
        return "full", Sentence("the conversation was submitted and rated")
    if exit == "bot failed":
        return "full", Sentence("the conversation ended because the bot could not go on")
    if is_complete:
        return "full", Sentence("the conversation was complete; {exit} before it was rated", exit=exit)
    if visitor.n_finished:
        return "full", Sentence("an earlier conversation was finished; {exit} in the next", exit=exit)
    if visitor.n_turns:
        if visitor.n_turns == 1:
            return "partial", Sentence("{exit} after 1 message", exit=exit)
        return "partial", Sentence("{exit} after {n} messages", exit=exit, n=f"{visitor.n_turns:,}")
    if exit == "waited":
        return "waiting", Sentence("nobody came within the stated time")
    if exit == "partner left":
        return "waiting", Sentence("the partner left before anything was written in return")
    if exit == "unneeded":
        waiting_since = now if visitor.waiting_since is None else visitor.waiting_since
        if visitor.seconds_waited + now - waiting_since > 0:
            return "waiting", Sentence("all conversations were held while they waited")
        return "none", Sentence("all conversations had been held before they came")
    return "none", Sentence("{exit} before writing anything", exit=exit)
