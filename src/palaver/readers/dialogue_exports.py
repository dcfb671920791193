"""Dialogues as other tools keep them, where a row of the file is no dialogue but a log, a tree or a pair.

`dialogue_rows` gives the dialogues of such a row as plain rows, which the reader of dialogues knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from palaver.readers.shapes import Tally, first_of, is_scalar, is_turn, is_turns, json_list, turn_list
from palaver.schema.response import SYSTEM, USER

Fields = dict[str, Any]

NO_QUESTIONS = "answers without what was asked, which is in another file"


def dialogue_rows(
    row: Any, name: str, tally: Tally, battles: dict[str, int] | None = None
) -> list[Fields] | None:
    """The dialogues of a row of one of these shapes; None for any other row.

    `name` is for rows without an id, and for other battles about a question than the first, which `battles`
    remembers.
    """
    if not isinstance(row, dict) or isinstance(row.get("turns"), list):
        return None
    for marks, take in _SHAPES:
        if not marks <= row.keys():
            continue
        seen = Tally()
        try:
            dialogues = take(row, name, seen)
        except (TypeError, KeyError, AttributeError, IndexError):
            continue  # the names of the shape, with something else in them
        if dialogues is not None:
            tally.update(seen)
            if battles is not None and take in (_battle, _preference):
                _name_apart(dialogues, name, battles)
            return dialogues
    return None


def _name_apart(pair: list[Fields], name: str, battles: dict[str, int]) -> None:
    """Ids of the row's own where an earlier row was another battle about the same question."""
    question, content = pair[0]["group"], hash(repr(pair))
    if battles.setdefault(question, content) != content:
        for dialogue in pair:
            dialogue["id"] = name + dialogue["id"].removeprefix(question)


def _inspect_log(row: Fields, name: str, tally: Tally) -> list[Fields] | None:
    """Inspect: each sample has messages and scores; each epoch is a dialogue of its own."""
    samples, run = row["samples"], row["eval"]
    if not isinstance(samples, list) or not isinstance(run, dict):
        return None
    dialogues = []
    for sample in samples:
        scores = {key: score.get("value") for key, score in (sample.get("scores") or {}).items()}
        id = f"{sample['id']}#{sample['epoch']}" if sample.get("epoch", 1) > 1 else str(sample["id"])
        about = {"id": id, "group": str(sample["id"]), "system": run.get("model")}
        dialogues.append({**scores, **about, "messages": sample.get("messages")})
    return dialogues


def _battle(row: Fields, name: str, tally: Tally) -> list[Fields] | None:
    """An arena's battle: two conversations, or what both systems answered to the same prompts."""
    taken = {"conversation_a", "conversation_b", "prompt", "response_a", "response_b", "model_a", "model_b"}
    taken |= {"id", "question_id", "system"}
    if "conversation_a" in row:
        sides = [_turns(row[f"conversation_{side}"]) for side in "ab"]
    else:
        asked = first_of(row, ("prompt", "question", "instruction", "context")) or "prompt"
        sides = [_answered(row.get(asked), row[f"response_{side}"]) for side in "ab"]
        taken.add(asked)
    if any(side is None for side in sides):
        return None
    return _two(row, name, sides, ("a", "b"), (row["model_a"], row["model_b"]), taken)


def _preference(row: Fields, name: str, tally: Tally) -> list[Fields] | None:
    """A chosen and a rejected conversation, as messages or as one text with `Human:` and `Assistant:`.

    What was asked comes first where it is not repeated. Chosen and rejected answers in plain text are
    responses.
    """
    row = {_of_a_side(name): value for name, value in row.items()}
    sides = [_turns(row[side]) or _transcript(row[side]) for side in ("chosen", "rejected")]
    if any(side is None for side in sides):
        return None
    before = _asked(row, sides)
    sides = [side if side[: len(before)] == before else [*before, *side] for side in sides if side]
    models = [row.get(f"{side}_model") or side for side in ("chosen", "rejected")]
    scores = [first_of(row, (f"{s}_rating", f"score_{s}", f"{s}_score")) for s in ("chosen", "rejected")]
    taken = {"id", "prompt_id", "chosen", "rejected", "chosen_model", "rejected_model", *_ASKED}
    taken |= {score for score in scores if score}
    pair = _two(row, name, sides, ("chosen", "rejected"), models, taken)
    for dialogue, score in zip(pair, scores, strict=True):
        if score:
            dialogue["rating"] = row[score]
    return pair


_ASKED = ("prompt", "messages", "conversations")
"""Where a preference has what was asked."""


def _of_a_side(name: str) -> str:
    """`chosen-model` as `chosen_model`; any other name as it is."""
    return name.replace("-", "_") if name.startswith(("chosen-", "rejected-")) else name


def _asked(row: Fields, sides: list[Any]) -> list[Any]:
    """What came before a chosen and a rejected side; nothing where they have it themselves."""
    prompt = row.get("prompt")
    if isinstance(prompt, list) and is_turns(prompt):
        return prompt
    if any(len(side) > 1 for side in sides):
        return []
    if prompt and isinstance(prompt, str):
        return _turns(prompt) or [{"role": "user", "content": prompt}]
    return next((turns for name in _ASKED if (turns := _turns(row.get(name))) and turns not in sides), [])


def _two(
    row: Fields, name: str, sides: list[Any], ends: tuple[str, str], systems: Any, taken: set[str]
) -> list[Fields]:
    """Two dialogues of one row: what it says besides is said of both."""
    key = first_of(row, ("question_id", "prompt_id", "id"))
    group = str(row[key]) if key else name
    shared = {field: value for field, value in row.items() if field not in taken}
    return [
        {**shared, "id": f"{group}:{end}", "group": group, "system": system, "messages": turns}
        for end, system, turns in zip(ends, systems, sides, strict=True)
    ]


def _turns(value: Any) -> list[Any] | None:
    """Messages, be they in a cell of JSON text, or one alone."""
    turns: Any = json_list(value) if isinstance(value, str) else [value] if is_turn(value) else value
    return turns if is_turns(turns) and isinstance(turns[0], dict) else None


_SPOKEN = re.compile(r"\n\n(Human|Assistant): ?")


def _transcript(text: Any) -> list[Any] | None:
    """Turns of a text in which each begins with who speaks."""
    if not isinstance(text, str) or not text.startswith("\n\nHuman:"):
        return None
    parts = _SPOKEN.split(text)[1:]
    roles = {"Human": "user", "Assistant": "assistant"}
    return [{"role": roles[who], "content": said} for who, said in zip(parts[::2], parts[1::2], strict=True)]


def _answered(asked: Any, answer: Any) -> list[Any] | None:
    """What was asked and what was answered; each is a text, texts of one turn each, or messages."""
    before, after = _turns(asked), _turns(answer)
    if before is None and after is None:
        asked, answers = (json_list(said) or said for said in (asked, answer))
        asked, answers = (said if isinstance(said, list) else [said] for said in (asked, answers))
        if len(answers) == 1 < len(asked):  # the conversation so far, said by both in turn
            return [*asked, *answers] if len(asked) % 2 else None
        return _alternating(asked, answers) if len(asked) == len(answers) else None
    before = before or [{"role": "user", "content": asked}]
    after = after or [{"role": "assistant", "content": answer}]
    return after if len(after) > 1 else [*before, *after]


def _alternating(asked: list[Any], answers: list[Any]) -> list[Any]:
    pairs = zip(asked, answers, strict=True)
    speakers = (USER, SYSTEM)
    return [
        {"speaker": who, "text": said} for pair in pairs for who, said in zip(speakers, pair, strict=True)
    ]


def _bench_answers(row: Fields, name: str, tally: Tally) -> list[Fields] | None:
    """MT-Bench: the answers of a model to the turns of a question, which stands elsewhere."""
    choices = row["choices"]
    if not isinstance(choices, list) or not all(is_turns(choice.get("turns")) for choice in choices):
        return None
    question, model = str(row["question_id"]), row["model_id"]
    dialogues = []
    for number, choice in enumerate(choices):
        turns = [{"speaker": SYSTEM, "text": text} for text in choice["turns"]]
        id = f"{question}:{model}" + (f"#{number}" if number else "")
        dialogues.append({"id": id, "group": question, "system": model, "turns": turns})
    tally[NO_QUESTIONS] += len(dialogues)
    return dialogues


def _completion(row: Fields, name: str, tally: Tally) -> list[Fields] | None:
    """A request to a chat model with its answer, in one object or as `request` and `response`."""
    answer = _object(_object(row, "response"), "body")
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0].get("message"), dict):
        return None
    request = _object(_object(row, "request"), "body")
    messages = request.get("messages")
    if not isinstance(messages, list):
        messages = []
        tally[NO_QUESTIONS] += 1
    if len(choices) > 1:
        tally["answers of a chat model besides the first, left out"] += len(choices) - 1
    id = first_of(row, ("id", "custom_id"))
    model = answer.get("model") or request.get("model")
    kept = {
        field: value for field, value in row.items() if is_scalar(value) and field not in ("id", "object")
    }
    about = {"id": str(row[id]) if id else None, "model": model}
    answer = choices[0]["message"]
    is_there = messages[-1:] == [answer]  # a log that was written after the answer was taken over
    return [{**kept, **about, "messages": messages if is_there else [*messages, answer]}]


def _object(row: Fields, name: str) -> Fields:
    """The object under a name, or the row itself where there is none."""
    inner = row.get(name)
    return inner if isinstance(inner, dict) else row


def _tracker(row: Fields, name: str, tally: Tally) -> list[Fields] | None:
    """Rasa's tracker: of its events, those that somebody said."""
    events = row["events"]
    if not events or not all(isinstance(event, dict) and "event" in event for event in events):
        return None
    if turn_list(row) is not None:  # a dialogue, and what happened beside it
        return None
    if not {event["event"] for event in events} & {"user", "bot", "action"}:
        return None  # somebody else's events: a tracker begins with an action
    spoken = [event for event in events if event["event"] in ("user", "bot")]
    tally["events in which nobody speaks, left out"] += len(events) - len(spoken)
    turns = [{"speaker": event["event"], "text": event.get("text") or ""} for event in spoken]
    kept = {field: value for field, value in row.items() if is_scalar(value) and field != "sender_id"}
    return [{**kept, "id": row.get("sender_id", row.get("id")), "turns": turns}]


def _message_tree(row: Fields, name: str, tally: Tally) -> list[Fields] | None:
    """OpenAssistant: each way from the prompt to a last reply is a dialogue."""
    tree = row["message_tree_id"]
    if not isinstance(row["prompt"], dict):
        return None
    return [
        {"id": path[-1].get("message_id"), "group": tree, "rank": path[-1].get("rank"), "turns": _said(path)}
        for path in _paths(row["prompt"], [])
    ]


def _paths(message: Mapping[str, Any], before: list[Any]) -> Iterator[list[Any]]:
    here = [*before, message]
    replies = message.get("replies") or []
    if not replies:
        yield here
    for reply in replies:
        yield from _paths(reply, here)


def _said(messages: list[Any]) -> list[Fields]:
    speakers = {"prompter": USER, "assistant": SYSTEM}
    return [{"speaker": speakers.get(m["role"], m["role"]), "text": m["text"]} for m in messages]


_SHAPES: tuple[tuple[set[str], Callable[[Fields, str, Tally], list[Fields] | None]], ...] = (
    ({"samples", "eval"}, _inspect_log),
    ({"model_a", "model_b", "conversation_a", "conversation_b"}, _battle),
    ({"model_a", "model_b", "response_a", "response_b"}, _battle),
    ({"chosen", "rejected"}, _preference),
    ({"question_id", "model_id", "choices"}, _bench_answers),
    ({"choices"}, _completion),
    ({"response"}, _completion),
    ({"events"}, _tracker),
    ({"message_tree_id", "prompt"}, _message_tree),
)
"""Names that the row of a shape has, and what takes its dialogues out."""
