"""From checkpoints: what they say to "Do you love me?" (Table 3), and responses to a file of contexts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palaver.errors import UserError
from palaver.personality.plan import Settings
from palaver.personality.pools import Choice
from palaver.personality.table import estimate_table
from palaver.progress import Progress, no_progress
from palaver.reproduce.personality import EXTREMES, MIN_TURNS, PROMPT, SHOWS, TABLE_3, Responses

if TYPE_CHECKING:
    from palaver.schema import System

Ocean = Mapping[str, tuple[float, ...]]

DECODING = {"method": "stochastic-greedy"}
"""Section 3.3: one of the most probable words at every step."""


def open_system(checkpoint: str, device: str | None = None) -> System:
    """A checkpoint folder or a named system, decoding as the paper does."""
    from palaver.generation.systems_file import find_system

    return find_system(checkpoint)(device=device, decoding=DECODING)


def from_checkpoints(
    data: Path,
    recogniser: Any,
    settings: Settings,
    speaker: str | None,
    personality: str | None,
    files: Responses,
    *,
    contexts: str | None,
    folder: Path | None,
    limit: int | None = None,
    device: str | None = None,
    progress: Progress = no_progress,
) -> tuple[list[tuple[str, str, str]], Responses]:
    """Table 3, and the files of responses: those in `files`, or else made for `contexts` in `folder`."""
    speaker_model = open_system(speaker, device) if speaker is not None else None
    personality_model = open_system(personality, device) if personality is not None else None
    ocean = ocean_of_scripts(data, recogniser, settings)
    replies = examples(speaker_model, personality_model, ocean)
    if contexts is None:
        return replies, files
    if folder is None:
        raise UserError("responses to --contexts need a place", "name a folder with --out")
    if files.speaker:
        speaker_model = None
    new = generate_responses(
        speaker_model, personality_model, ocean, contexts, folder, limit=limit, progress=progress
    )
    return replies, Responses(
        speaker=files.speaker or new.speaker,
        personality=files.personality or new.personality,
        extremes=files.extremes or new.extremes,
    )


def ocean_of_scripts(data: Path, recogniser: Any, settings: Settings) -> dict[str, tuple[float, ...]]:
    """The personality of each character, as estimated from the transcripts (section 3.1)."""
    choice = Choice(min_utterances=MIN_TURNS)
    table = estimate_table(tuple(SHOWS), recogniser, choice=choice, settings=settings, root=data)
    return dict(table.scores())


def examples(speaker: System | None, personality: System | None, ocean: Ocean) -> list[tuple[str, str, str]]:
    """Who, the paper's response, ours: of the Personality model, for characters of the Speaker model too."""
    from palaver.generation.contexts import Condition, Context
    from palaver.schema import Dialogue, Turn

    asked = Context("love", Dialogue(id="love", turns=(Turn(speaker="user", text=PROMPT),)))
    rows = []
    for who, published in TABLE_3.items():
        scores = EXTREMES.get(who, ocean.get(who))
        if personality is not None and scores is not None:
            own = who in getattr(personality, "speakers", ())
            reply = personality.reply([Condition(who, None if own else scores).request(asked)])[0]
            rows.append((f"{who} (Personality)", published, reply.text))
        if speaker is not None and who in getattr(speaker, "speakers", ()):
            reply = speaker.reply([Condition(who).request(asked)])[0]
            rows.append((f"{who} (Speaker)", "", reply.text))
    return rows


def generate_responses(
    speaker: System | None,
    personality: System | None,
    ocean: Ocean,
    contexts: str,
    folder: Path,
    *,
    limit: int | None = None,
    progress: Progress = no_progress,
) -> Responses:
    """Responses of each character and extreme type to every context; a stopped run goes on.

    A Personality Model that was trained on these characters has a table of its own, which counts.
    """
    from palaver.generation.bulk import generate_file
    from palaver.generation.contexts import Contexts, conditions_of

    source = Contexts(contexts, limit=limit)
    files: dict[str, Path] = {}
    own = set(ocean) <= set(getattr(personality, "speakers", ()))
    for name, system, speakers, table in (
        ("speaker", speaker, list(ocean), None),
        ("personality", personality, list(ocean) if own else None, None if own else ocean),
        ("extremes", personality, None, EXTREMES),
    ):
        if system is not None:
            files[name] = folder / f"{name}.jsonl"
            conditions = {system.name: conditions_of(system, speakers, table)}
            generate_file([system], source, files[name], conditions=conditions, progress=progress)
    return Responses(**files)
