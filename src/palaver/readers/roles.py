"""Who is the user and who the system: an adapter over dialogues whose speakers have names of their own."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence

from palaver.schema import Dialogue, Turn
from palaver.schema.response import SYSTEM, USER

_ROLES = dict.fromkeys(("user", "human", "person", "customer", "you", "chatter"), USER)
_ROLES |= dict.fromkeys(("system", "bot", "chatbot", "assistant", "agent", "robot"), SYSTEM)

GUESSED = "dialogues whose first speaker was taken for the user"


def roles_of(speakers: Sequence[str]) -> tuple[dict[str, str], bool]:
    """Speaker -> user or system: by name, or by who is left, or by who spoke first; whether it was the last.

    Strangers among three or more have no role.
    """
    roles = {name: _ROLES[name.lower()] for name in speakers if name.lower() in _ROLES}
    left = [name for name in speakers if name not in roles]
    if not left or len(speakers) > 2:
        return roles, False
    free = [role for role in (USER, SYSTEM) if role not in roles.values()] or [SYSTEM]
    roles |= dict(zip(left, free, strict=False))
    return roles, len(left) == 2


def with_roles(dialogue: Dialogue, tally: Counter[str] | None = None) -> Dialogue:
    """The dialogue with `user` and `system` as speakers; `tally` counts where the first was a guess.

    Only who speaks counts, in the order in which they do.
    """
    roles, guessed = roles_of(tuple(dict.fromkeys(turn.speaker for turn in dialogue.turns)))
    if guessed and tally is not None:
        tally[GUESSED] += 1
    turns = tuple(
        turn
        if roles.get(turn.speaker, turn.speaker) == turn.speaker
        else turn.model_copy(update={"speaker": roles[turn.speaker]})
        for turn in dialogue.turns
    )
    speakers = tuple(dict.fromkeys(turn.speaker for turn in turns))
    return dialogue.model_copy(update={"turns": turns, "speakers": speakers})


def has_text(turn: Turn) -> bool:
    """Whether something can be seen of it: blanks and characters of no width say nothing."""
    return any(not (sign.isspace() or unicodedata.category(sign) == "Cf") for sign in turn.text)


def without_empty_turns(dialogue: Dialogue, tally: Counter[str] | None = None) -> Dialogue:
    """The dialogue without turns that say nothing; `tally` counts these."""
    turns = tuple(turn for turn in dialogue.turns if has_text(turn))
    n_empty = len(dialogue.turns) - len(turns)
    if not n_empty:
        return dialogue
    if tally is not None:
        tally["turns without text, left out"] += n_empty
    speakers = tuple(dict.fromkeys(turn.speaker for turn in turns))
    return dialogue.model_copy(update={"turns": turns, "speakers": speakers})


def is_silent(dialogue: Dialogue) -> bool:
    """Whether the user speaks and the system says nothing.

    Where there is one speaker only, their name must say that they are the user.
    """
    names = tuple(dict.fromkeys(turn.speaker for turn in dialogue.turns))
    roles, _ = roles_of(names)
    spoken = {roles.get(turn.speaker) for turn in dialogue.turns if has_text(turn)}
    return spoken == {USER} and (len(names) > 1 or names[0].lower() in _ROLES)
