"""Whoever leaves is paid, or there is a reason why not."""

from __future__ import annotations

from palaver.collection.lobby import Visitor
from palaver.collection.records import Exit, Pay
from palaver.errors import count_of


def pay_for(visitor: Visitor, exit: Exit, now: float, *, is_complete: bool) -> tuple[Pay, str]:
    """What somebody is paid for who leaves now, and why. `is_complete`: the conversation was submitted."""
    if exit == "finished":
        return "full", "the conversation was submitted and rated"
    if exit == "bot failed":
        return "full", "the conversation ended because the bot could not go on"
    if is_complete:
        return "full", f"the conversation was complete; {exit} before it was rated"
    if visitor.n_finished:
        return "full", f"an earlier conversation was finished; {exit} in the next"
    if visitor.n_turns:
        return "partial", f"{exit} after {count_of(visitor.n_turns, 'message')}"
    if exit == "waited":
        return "waiting", "nobody came within the stated time"
    if exit == "partner left":
        return "waiting", "the partner left before anything was written in return"
    if exit == "unneeded":
        waiting_since = now if visitor.waiting_since is None else visitor.waiting_since
        if visitor.seconds_waited + now - waiting_since > 0:
            return "waiting", "all conversations were held while they waited"
        return "none", "all conversations had been held before they came"
    return "none", f"{exit} before writing anything"
