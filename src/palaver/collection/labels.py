"""What a dialogue's labels say about its collection, and dialogues as conversations and back.

`records` says which labels a collected dialogue carries. A dialogue on its own, in a file that everything
else reads, also says who took part: `participant_SEAT` (a person's id on the server) and `bot_SEAT` (a
system's name), with | between several in one seat; and `ending`, where it was not completed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from palaver.collection.records import GRADES, Conversation, Ending, Participant
from palaver.schema import Dialogue

SPLITS = ("train", "valid_freq", "valid_rare", "test_freq", "test_rare")
PARTICIPANT, BOT = "participant_", "bot_"
_ENDINGS: tuple[Ending, ...] = ("complete", "incomplete", "failed", "open")
_JOINT = "|"


def text_label(dialogue: Dialogue, *names: str) -> str:
    """The first of these labels that says something."""
    return next((str(dialogue.labels[name]) for name in names if dialogue.labels.get(name)), "")


def configuration_of(dialogue: Dialogue) -> str:
    """Which configuration the reading sets have; empty where nobody says."""
    named = text_label(dialogue, "config")
    return named or next((r.configuration for r in dialogue.knowledge or () if r.configuration), "")


def article_of(dialogue: Dialogue) -> str:
    """What the conversation rests on: the article's id or address."""
    named = text_label(dialogue, "article", "article_url")
    return named or next((r.article.id for r in dialogue.knowledge or () if r.article is not None), "")


def entities_of(dialogue: Dialogue) -> tuple[str, ...]:
    """The entities of the reading sets, each once."""
    sections = (section for reading_set in dialogue.knowledge or () for section in reading_set.sections)
    return tuple(dict.fromkeys(section.entity.name for section in sections))


def people_in(dialogue: Dialogue) -> set[str]:
    """The people who took part, as far as the labels say."""
    return {name for seat in dialogue.speakers for name in _named(dialogue, PARTICIPANT + seat)}


def _named(dialogue: Dialogue, label: str) -> list[str]:
    return [name for name in text_label(dialogue, label).split(_JOINT) if name]


def as_dialogue(conversation: Conversation) -> Dialogue:
    """The dialogue with labels that say who took part and how it ended."""
    labels = dict(conversation.dialogue.labels)
    seats: dict[str, list[str]] = {}
    for participant in conversation.participants:
        prefix = BOT if participant.is_bot else PARTICIPANT
        seats.setdefault(prefix + participant.seat, []).append(participant.id)
    labels.update({seat: _JOINT.join(dict.fromkeys(ids)) for seat, ids in seats.items()})
    if conversation.ending != "complete":
        labels["ending"] = conversation.ending
    if conversation.configuration:
        labels.setdefault("config", conversation.configuration)
    return with_labels(conversation.dialogue, labels)


def with_labels(dialogue: Dialogue, labels: Mapping[str, object]) -> Dialogue:
    """The dialogue with these labels in place of its own."""
    return Dialogue.model_validate({**dict(dialogue), "labels": labels})


def as_conversation(dialogue: Dialogue) -> Conversation:
    """A dialogue as if it had been collected: who took part is what the labels say."""
    participants = [
        Participant(
            id=name,
            seat=seat,
            is_bot=prefix == BOT,
            n_turns=sum(turn.speaker == seat for turn in dialogue.turns),
            exit="finished",
        )
        for seat in dialogue.speakers
        for prefix in (PARTICIPANT, BOT)
        for name in _named(dialogue, prefix + seat)
    ]
    ending = text_label(dialogue, "ending")
    return Conversation(
        id=dialogue.id,
        dialogue=dialogue,
        participants=tuple(participants),
        ending=next((known for known in _ENDINGS if known == ending), "complete"),
        configuration=configuration_of(dialogue) or None,
        began_at=0,
    )


def grade_number(word: object) -> int | None:
    """`Poor` is 1, `Excellent` 5, whatever the case; None for anything else."""
    folded = [grade.casefold() for grade in GRADES]
    text = str(word or "").strip().casefold()
    return folded.index(text) + 1 if text in folded else None


def in_split_order(names: Iterable[str]) -> list[str]:
    """Splits as papers list them; others behind, as they came."""
    distinct = list(dict.fromkeys(names))
    return [name for name in SPLITS if name in distinct] + [n for n in distinct if n not in SPLITS]
