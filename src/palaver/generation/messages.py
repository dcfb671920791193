"""A request as chat messages: who is `user`, who is `assistant`, and what stands in the system prompt."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence

from palaver.corpora.personalities import TRAITS
from palaver.errors import UserError, nearest
from palaver.generation.system import CONDITIONS
from palaver.schema import Request

Message = dict[str, str]
BEGINNING = "(The conversation begins.)"
"""Said by the user where a model's template insists that the user speaks first."""


def prompt_fields(template: str) -> frozenset[str]:
    """The conditions a system prompt has a place for."""
    return frozenset(field for field in _fields(template) if field in CONDITIONS)


def prompt_mistakes(template: str) -> list[str]:
    """What is wrong with a system prompt."""
    try:
        fields = list(_fields(template))
    except ValueError as error:
        return [f"{error}; write {{{{ and }}}} for braces that are text"]
    return [
        f"there is no field {{{field}}}{nearest(field, CONDITIONS)}; "
        "known: {speaker}, {ocean}, {knowledge}"
        for field in fields
        if field not in CONDITIONS
    ]


def _fields(template: str) -> Iterator[str]:
    for _, field, form, conversion in string.Formatter().parse(template):
        if field is not None:
            yield field + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")


def system_prompt(template: str, request: Request, name: str) -> str:
    """The prompt with its fields filled in; knowledge may be missing in a turn, a speaker may not."""
    fields = prompt_fields(template)
    for condition, what in (("speaker", "a speaker"), ("ocean", "OCEAN scores")):
        if condition in fields and getattr(request, condition) is None:
            raise UserError(
                f"{name} needs {what}: its system prompt asks for {{{condition}}}",
                f"give --{condition}, or {condition} in the systems file",
            )
    scores = zip(TRAITS, request.ocean or (), strict=False)
    return template.format_map(
        {
            "speaker": request.speaker or "",
            "ocean": ", ".join(f"{trait} {score:g}" for trait, score in scores),
            "knowledge": request.knowledge or "none",
        }
    )


def chat_messages(
    request: Request, template: str, name: str, examples: Sequence[tuple[str, str]] = ()
) -> list[Message]:
    """System prompt and examples, then the turns; neighbours with one role are one message, as templates
    insist on.

    The assistant is the speaker who was asked for, if that one has spoken; otherwise everybody but the one
    who spoke last.
    """
    turns = [turn for turn in request.dialogue.turns if turn.text.strip()]
    other = turns[-1].speaker if turns else ""
    own = {turn.speaker for turn in turns} - {other}
    if request.speaker is not None and request.speaker in own:
        own = {request.speaker}
    prompt = system_prompt(template, request, name).strip()
    messages: list[Message] = [{"role": "system", "content": prompt}] if prompt else []
    for said, answer in examples:
        messages += [{"role": "user", "content": said}, {"role": "assistant", "content": answer}]
    for turn in turns:
        role = "assistant" if turn.speaker in own else "user"
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += "\n" + turn.text.strip()
        else:
            messages.append({"role": role, "content": turn.text.strip()})
    return messages
