"""The shapes in which people keep conversations, brought onto ours; used by both readers.

A turn is an object with a speaker and a text under any of the usual keys, a pair of texts, or a text alone.
What else stands beside it becomes a label.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from palaver.schema.response import SYSTEM, USER

Tally = Counter[str]
"""What a reader should know, and how often: "rejected assignments, left out" -> 12."""

FIELDS = {
    "system": ("system", "model", "bot"),
    "rating": ("rating", "rating100", "score", "stars"),
    "rater": ("rater", "worker", "user", "user_id"),
    "group": ("group", "hit", "sitting"),
}
"""Labels that are understood everywhere, and the names they come under, the first present one counts."""

ID_KEYS = ("id", "dialogue_id", "dialog_id", "conversation_id", "conv_id")
SPEAKER_KEYS = (
    *("speaker", "role", "author_role", "author_type", "sender_type"),  # before who has the role
    *("from", "s", "spk", "agent", "author", "sender"),
)
TEXT_KEYS = ("text", "content", "value", "t", "utterance", "message", "body", "comment")
REMARKS = ("body", "comment")
"""Of these the names that also mean what was said about a text or an answer in the same row."""
TURN_LISTS = (
    "turns",
    "messages",
    "conversations",
    "conversation",
    "dialogue",
    "dialog",
    "utterances",
    "history",
    "context",
    "prompt",
)
"""Where turns are looked for first; a list of turns is taken under any other name, too."""

_OTHERS = (
    ({"palaver", "format", "taken_at"}, "a backup", "palaver study restore"),
    ({"rater", "state", "checks_failed"}, "a list of raters without their ratings", ""),
    ({"id", "exit", "pay"}, "a list of people without what they said", ""),
    ({"conversation", "verdict", "decision"}, "decisions", "palaver collect check --decisions"),
    ({"dialogue", "participants"}, "dialogues", "palaver compare score"),
    ({"id", "score", "low", "high"}, "scores", "palaver compare rank"),
    ({"set", "original", "plus", "star"}, "triplets", "palaver probe run"),
    ({"results", "n-shot"}, "lm-eval's means; --log_samples writes samples_*.jsonl, which have items", ""),
    ({"eval", "plan", "stats"}, "a log of Inspect without its samples", ""),
    ({"id", "label_annotations"}, "Potato's annotations, which name neither a system nor a rater", ""),
    ({"Submission id", "Participant id"}, "Prolific's list of people, without their ratings", ""),
    (
        {"ResponseId", "RecordedDate"},
        "an export of Qualtrics; give columns names such as 'Q01 [system]', in its first or second row",
        "",
    ),
    ({"chosen", "rejected"}, "preferences without names of systems", "palaver compare rank"),
    ({"rater", "value"}, "ratings", "palaver study analyse"),
    ({"rater", "criterion"}, "ratings", "palaver study analyse"),
    ({"item", "system", "rater"}, "ratings", "palaver study analyse"),
    ({"annotations", "data"}, "ratings", "palaver study analyse"),
    ({"g1_winner", "g2_winner"}, "ratings", "palaver study analyse"),
    ({"model_a", "model_b", "winner"}, "ratings", "palaver study analyse"),
    ({"a", "b", "better"}, "compared pairs", "palaver compare train --dev-pairs"),
    *(({name}, "dialogues", "palaver compare score") for name in ("turns", "messages", "conversations")),
    ({"dialogue", "speaker", "text"}, "dialogues", "palaver compare score"),
    ({"sender_id", "events"}, "dialogues", "palaver compare score"),
    ({"message_tree_id", "prompt"}, "dialogues", "palaver compare score"),
    ({"question_id", "model_id", "choices"}, "dialogues", "palaver compare score"),
    ({"request", "response"}, "dialogues", "palaver compare score"),
    ({"custom_id", "response"}, "dialogues", "palaver compare score"),
    *(
        ({context, response}, "responses", "palaver judge")
        for context in ("context", "prompt", "history")
        for response in ("response", "output")
    ),
)
"""Columns of the other files that Palaver knows: what they hold, and the command that takes them, if any."""

_ASSISTANTS = frozenset({"assistant", "gpt", "chatgpt", "model", "bot"})
_INSTRUCTORS = frozenset({"system", "developer"})
_TOOLS = frozenset({"tool", "function"})
_CALLS = ("tool_calls", "function_call")
PROMPT = "prompt"
"""The label under which the instructions of a chat model are kept: nobody said them."""


def other_file(columns: Iterable[str], sought: Container[str] = ()) -> str:
    """What a file with these columns seems to hold and who reads it, in words; empty if nothing is known.

    `sought` is what the file should hold, or may hold besides: that it looks like this helps nobody.
    """
    names = set(columns)
    for known, noun, command in _OTHERS:
        if known <= names and noun not in sought:
            return f"it looks like {noun}" + (f", which `{command}` takes" if command else "")
    return ""


def holds_ratings(row: Mapping[str, Any], texts: Iterable[str]) -> bool:
    """Whether a row is a rating, and none of `texts`, the names of what was rated, stands in it."""
    return {"rater", "criterion", "value"} <= row.keys() and not any(row.get(name) for name in texts)


def known_label(labels: Mapping[str, Any], field: str) -> Any:
    """The `system`, `rating`, `rater` or `group` among labels, under any of its names."""
    for name in FIELDS[field]:
        if labels.get(name) is not None:
            return labels[name]
    return None


def labels_of(row: Mapping[str, Any], taken: frozenset[str] | set[str]) -> dict[str, Any]:
    """All fields but those taken, as labels: the known ones under their own name, then the row's `labels`.

    `rating100` also stays under its name, which tells the scale.
    """
    own = row.get("labels")
    own = own if isinstance(own, dict) else {}
    labels = _further(row, taken)
    known: dict[str, Any] = {}
    for field, names in FIELDS.items():
        for name in names:
            if name in labels and is_scalar(row[name]):
                known[field] = labels[name] if name == "rating100" else labels.pop(name)
                break
            if own.get(name) is not None:
                break
    if isinstance(known.get("rating"), str):
        known["rating"] = number_or_text(known["rating"])
    return {**labels, **own, **known}


def _further(row: Mapping[str, Any], taken: frozenset[str] | set[str]) -> dict[str, Any]:
    """Labels are single values; a list or an object is kept as JSON text."""
    return {
        name: json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
        for name, value in row.items()
        if name not in taken and name != "labels" and _is_there(value)
    }


def is_scalar(value: Any) -> bool:
    return isinstance(value, str | bool | int | float)


def _is_there(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


def unpack(value: Any, name: str) -> Any:
    """What a cell of JSON text holds: tables have no other way to keep lists and objects."""
    if not isinstance(value, str) or not value:
        return value or None
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError(f"{name}: expected JSON, found {value!r}") from None


def json_list(cell: Any) -> list[Any] | None:
    """The list that a cell of JSON text holds; None for any other cell."""
    if not isinstance(cell, str) or not cell.lstrip().startswith("["):
        return None
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def as_name(value: Any) -> Any:
    """Numbers as text: 7 and 7.0 are the id "7"; whatever else stays for the check of the noun."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value


def number_or_text(cell: str) -> float | int | str:
    """A cell of a CSV as the number it is, or else as it stands."""
    try:
        value = float(cell)
    except ValueError:
        return cell
    if not math.isfinite(value):
        return cell
    return int(value) if value.is_integer() else value


def first_key(row: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The first of these names that the row has, be it with nothing in it."""
    for name in names:
        if name in row:
            return name
    return None


def first_of(row: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The first of these names under which the row holds something."""
    for name in names:
        if row.get(name) is not None:
            return name
    return None


def is_turn(value: Any) -> bool:
    """Whether it is an object with a speaker and a text."""
    if not isinstance(value, dict):
        return False
    speaker = any(name in value for name in SPEAKER_KEYS)
    return speaker and any(name in value for name in TEXT_KEYS)


def is_turns(value: Any) -> bool:
    """Whether it is a list of turns: objects, texts, or pairs of texts."""
    if not isinstance(value, list) or not value:
        return False
    return is_turn(value[0]) or isinstance(value[0], str) or _is_pair(value[0]) or _is_parley(value[0])


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(v, str | None) for v in value)


def _is_parley(value: Any) -> bool:
    """Whether it is what ParlAI's logs hold: the acts of an exchange, each with the agent's id and a text."""
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(act, dict) and "id" in act and "text" in act for act in value)


def turn_list(row: Mapping[str, Any]) -> str | None:
    """The name under which a row has its turns."""
    if isinstance(row.get("turns"), list):
        return "turns"
    for name in TURN_LISTS:
        if is_turns(row.get(name)):
            return name
    for name, value in row.items():
        is_list = isinstance(value, list) and value and is_turn(value[0])
        if is_list and not (first_key(value[0], TEXT_KEYS) in REMARKS and _has_text(row)):
            return name
    return None


def _has_text(row: Mapping[str, Any]) -> bool:
    """Whether a row has a text of its own, about which remarks may be."""
    return any(isinstance(row.get(name), str) for name in (*TURN_LISTS, *TEXT_KEYS))


def turns_of(value: Any, tally: Tally) -> Any:
    """A list of turns as plain values of `Turn`; what is no turn stays for the check of the noun."""
    if isinstance(value, str):
        return [{"speaker": USER, "text": value}]
    if not isinstance(value, list) or not value:
        return value
    if all(isinstance(turn, str) for turn in value):
        tally["lists of texts, taken as said by user and system in turn"] += 1
        return [{"speaker": (USER, SYSTEM)[i % 2], "text": text} for i, text in enumerate(value)]
    if all(_is_pair(turn) for turn in value):
        pairs = [zip((USER, SYSTEM), pair, strict=True) for pair in value]
        return [{"speaker": who, "text": text} for pair in pairs for who, text in pair if text is not None]
    if all(_is_parley(turn) for turn in value):
        value = [{"speaker": act["id"], "text": act["text"]} for parley in value for act in parley]
    first = value[0] if isinstance(value[0], dict) else {}
    speaker = first_key(first, SPEAKER_KEYS) or "speaker"
    text = first_key(first, TEXT_KEYS) or "text"
    return [
        {"speaker": turn[speaker], "text": turn[text]}
        if _is_plain(turn, speaker, text)
        else _turn(turn, tally)
        for turn in value
    ]


def _is_plain(turn: Any, speaker: str, text: str) -> bool:
    """Whether there is nothing else in it: most turns are so, and there are many."""
    return (
        isinstance(turn, dict)
        and len(turn) == 2
        and type(turn.get(speaker)) is str
        and type(turn.get(text)) is str
    )


def _turn(turn: Any, tally: Tally) -> Any:
    if not isinstance(turn, dict):
        return turn
    speaker = first_key(turn, SPEAKER_KEYS) or "speaker"
    text = first_key(turn, TEXT_KEYS) or "text"
    fields: dict[str, Any] = {}
    if speaker in turn:
        fields["speaker"] = as_name(turn[speaker])
    if text in turn:
        fields["text"] = _text(turn[text], tally)
    taken = {speaker, text, "knowledge"}
    knowledge = turn.get("knowledge")
    if isinstance(knowledge, str):
        fields["knowledge"] = [knowledge]
    elif isinstance(knowledge, list):
        fields["knowledge"] = knowledge
    own = unpack(turn.get("labels"), "labels")
    if len(turn) > len(fields) or own:
        labels = _further(turn, taken)
        fields["labels"] = {**labels, **own} if isinstance(own, dict) else own or labels
    return fields


def _text(value: Any, tally: Tally) -> Any:
    """What was said; of content in parts the texts."""
    if value is None:
        return ""
    if not isinstance(value, list):
        return value
    parts = [part.get("text") if isinstance(part, dict) else part for part in value]
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) < len(value):
        tally["parts of turns that are no text, left out"] += len(value) - len(texts)
    return "\n".join(texts)


def take_prompt(source: Any, turns: list[Any], tally: Tally) -> tuple[list[Any], str | None]:
    """The turns that somebody says, and a chat model's instructions: `system` is a role beside `assistant`.

    What tools answer, and messages that do nothing but call them, are left out and counted.
    """
    if not isinstance(source, list) or not source or not isinstance(source[0], dict):
        return turns, None
    if "role" not in source[0] and "from" not in source[0]:
        return turns, None
    names = [turn.get("speaker") if isinstance(turn, dict) else None for turn in turns]
    if not any(isinstance(name, str) and name in _ASSISTANTS for name in names):
        return turns, None
    spoken: list[Any] = []
    prompts: list[str] = []
    for message, turn, name in zip(source, turns, names, strict=True):
        if name in _INSTRUCTORS:
            prompts.append(str(turn.get("text") or ""))
        elif name in _TOOLS or (not turn.get("text") and any(message.get(call) for call in _CALLS)):
            tally["messages to and from tools, left out"] += 1
        else:
            spoken.append(turn)
    return spoken, "\n".join(prompts) if prompts else None
