"""Stage 1, dialogue-flow anomalies (Liang et al. 2020, section 5.1).

Of every dialogue two copies are spoilt: in one a random turn of the user, in the other a random turn of the
system is replaced by a turn of the same role from another dialogue. The real one must win against both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from palaver.comparator.training_data import SYSTEM, USER
from palaver.errors import DataError
from palaver.schema import Dialogue

_TRIES = 20


@dataclass(frozen=True)
class Anomalies:
    """Spoilt copies; `real[i]` is the row of the dialogue that copy i was made of."""

    dialogues: tuple[Dialogue, ...]
    real: NDArray[np.int64]
    dropped: dict[str, int] = field(default_factory=dict)


def spoil(dialogues: Sequence[Dialogue], *, seed: int = 0) -> Anomalies:
    """Two spoilt copies of each dialogue. What a dialogue gets depends on the seed and on all turns only."""
    pool: dict[str, list[tuple[int, str]]] = {USER: [], SYSTEM: []}
    for row, dialogue in enumerate(dialogues):
        for turn in dialogue.turns:
            if turn.speaker in pool:
                pool[turn.speaker].append((row, turn.text))
    copies: list[Dialogue] = []
    real: list[int] = []
    missed = dict.fromkeys((USER, SYSTEM), 0)
    for row, dialogue in enumerate(dialogues):
        rng = np.random.default_rng((seed, row))
        for role in (USER, SYSTEM):
            own = [i for i, turn in enumerate(dialogue.turns) if turn.speaker == role]
            if not own:
                missed[role] += 1
                continue
            place = own[int(rng.integers(len(own)))]
            text = _another(pool[role], row, dialogue.turns[place].text, rng)
            if text is None:
                missed[role] += 1
                continue
            turns = list(dialogue.turns)
            turns[place] = turns[place].model_copy(update={"text": text})
            spoilt = {"id": f"{dialogue.id} without {role} turn {place + 1}", "turns": tuple(turns)}
            copies.append(dialogue.model_copy(update=spoilt))
            real.append(row)
    if not copies:
        raise DataError(
            "no dialogue can be spoilt: there is no other turn of the same role to put in",
            "give more than one dialogue, with turns of a user and of a system",
        )
    dropped = {f"no other turn of the {role}": count for role, count in missed.items() if count}
    return Anomalies(tuple(copies), np.array(real, np.int64), dropped)


def _another(pool: Sequence[tuple[int, str]], row: int, text: str, rng: np.random.Generator) -> str | None:
    """A turn of another dialogue that says something else; nothing if chance does not find one."""
    for place in rng.integers(len(pool), size=_TRIES):
        source, said = pool[int(place)]
        if source != row and said != text:
            return said
    return None
