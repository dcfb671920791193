"""Small talk to try training on: made up from a few patterns, so that something can be learned in a minute.

Three speakers answer in ways of their own: Ada at length, Ben in few words, Cleo with questions.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from palaver.files import check_writable
from palaver.readers import write_dialogues
from palaver.schema import Dialogue, Turn

OCEAN = """speaker,openness,conscientiousness,extraversion,agreeableness,neuroticism
Ada,6.1,5.2,5.8,5.5,2.9
Ben,3.0,4.4,2.1,3.6,3.8
Cleo,5.5,3.1,6.4,6.0,4.2
"""
EXPERIMENT = """\
preset = "tiny"
name = "trial"

[data]
train = [{ path = "dialogues.jsonl" }]
"""
_THINGS = {
    "tea": ("a cup of tea", "with a little milk", "It keeps me warm."),
    "music": ("an old record", "on a rainy evening", "I could listen for hours."),
    "the garden": ("a row of beans", "behind the house", "The soil is good this year."),
    "trains": ("a night train", "over the mountains", "I like to look out of the window."),
    "soup": ("a bowl of soup", "with fresh bread", "My aunt taught me how to make it."),
    "chess": ("a game of chess", "in the park", "I lose most of the time."),
    "the sea": ("a walk by the sea", "before breakfast", "The air is so clear there."),
    "films": ("a silent film", "at the little cinema", "The piano player was wonderful."),
}
_OPENINGS = ("Do you like {0}?", "What do you think of {0}?", "Shall we talk about {0}?")


def sample_dialogues(n: int = 300) -> Iterator[Dialogue]:
    """`n` conversations of six turns between two of the three."""
    rng = random.Random(1)
    for number in range(n):
        speakers = rng.sample(["Ada", "Ben", "Cleo"], 2)
        thing = rng.choice(list(_THINGS))
        turns = [Turn(speaker=speakers[0], text=rng.choice(_OPENINGS).format(thing))]
        for i in range(1, 6):
            if i == 3:
                thing = rng.choice(list(_THINGS))
            speaker = speakers[i % 2]
            turns.append(Turn(speaker=speaker, text=_say(speaker, thing, rng)))
        yield Dialogue(id=f"talk-{number:04d}", turns=tuple(turns))


def _say(speaker: str, thing: str, rng: random.Random) -> str:
    what, how, why = _THINGS[thing]
    if speaker == "Ben":
        return rng.choice((f"Yes, {thing}.", f"I had {what}.", f"Not now. Maybe {thing} later."))
    if speaker == "Cleo":
        return rng.choice((f"Have you ever had {what} {how}?", f"Oh, {thing}! Who told you?"))
    return rng.choice(
        (f"I love {thing}. There is nothing like {what} {how}. {why}", f"Last week I had {what} {how}. {why}")
    )


def write_sample(folder: Path, n: int = 300) -> list[Path]:
    """Dialogues, a table of personalities and an experiment file."""
    paths = [folder / name for name in ("dialogues.jsonl", "ocean.csv", "experiment.toml")]
    check_writable(folder)
    write_dialogues(sample_dialogues(n), paths[0])
    paths[1].write_text(OCEAN, encoding="utf-8")
    paths[2].write_text(EXPERIMENT, encoding="utf-8")
    return paths
