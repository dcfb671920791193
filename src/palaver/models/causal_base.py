"""The language models that responders are made of: folders of `transformers`, and their chat formats.

What a tokenizer's chat template puts around a turn is found out once, by rendering turns that are known. It
is kept with the model as tokens, so that answering needs no template.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palaver.errors import DataError, UserError, nearest, require
from palaver.models.quiet import quiet_transformers
from palaver.models.turns import Frame, Tokens
from palaver.text.vocabulary import SPECIALS

SMOLLM2 = "smollm2"
MOVED = len(SPECIALS)
"""Our ids of a language model's tokens are its own plus this; those below are ours."""
_SYSTEM, _USER, _REPLY, _NEXT = "s0s0s", "u1u1u", "r2r2r", "n3n3n"
"""Texts that no template has in it."""


@dataclass(frozen=True)
class Base:
    """What there is to know of a language model before it is trained."""

    folder: Path
    architecture: dict[str, Any]
    """Its configuration, as `transformers` writes it."""
    frame: Frame
    end: int
    """Our id of the token with which it ends a turn."""
    has_template: bool


def base_folder(base: str) -> Path:
    """The folder of a language model: `smollm2`, or the folder itself."""
    if base == SMOLLM2:
        from palaver.models.packages import folder_of
        from palaver.models.smollm2 import GGUF, converted_folder

        return converted_folder(folder_of(SMOLLM2) / GGUF)
    folder = Path(base).expanduser()
    if not (folder / "config.json").is_file():
        raise UserError(
            f"there is no language model {base!r}{nearest(base, [SMOLLM2])}",
            f"expected {SMOLLM2}, or a folder with config.json, model.safetensors and tokenizer.json",
        )
    if not (folder / "tokenizer.json").is_file():
        raise UserError(
            f"{folder} has no tokenizer.json", "save its tokenizer with transformers: save_pretrained(folder)"
        )
    return folder


def read_base(base: str) -> Base:
    """The architecture and the chat format of a language model; its weights are not read."""
    transformers = require("transformers", "models")
    folder = base_folder(base)
    with quiet_transformers():
        try:
            config = transformers.AutoConfig.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False
            )
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False
            )
        except Exception as error:  # a damaged file may raise almost anything
            words = " ".join(str(error).split())[:200]
            raise DataError(f"{folder} holds no language model that can be read: {words}") from error
    if getattr(config, "is_encoder_decoder", False):
        raise UserError(f"{folder} holds an encoder and a decoder", "expected a causal language model")
    frame, end, has_template = _find_frame(tokenizer)
    architecture = json.loads(config.to_json_string(use_diff=False))
    architecture.pop("_name_or_path", None)  # where the base lay, which is nobody else's folder
    return Base(folder, architecture, frame, end, has_template)


def load_language_model(folder: Path) -> Any:
    """The model of `transformers` in a folder, in float32."""
    transformers = require("transformers", "models")
    with quiet_transformers():
        try:
            return transformers.AutoModelForCausalLM.from_pretrained(
                folder, dtype="float32", local_files_only=True, trust_remote_code=False
            )
        except Exception as error:  # a damaged file may raise almost anything
            words = " ".join(str(error).split())[:200]
            raise DataError(f"the language model in {folder} cannot be read: {words}") from error


def make_language_model(architecture: dict[str, Any]) -> Any:
    """The same with random weights."""
    transformers = require("transformers", "models")
    fields = {name: value for name, value in architecture.items() if name != "model_type"}
    with quiet_transformers():
        try:
            config = transformers.AutoConfig.for_model(architecture.get("model_type", ""), **fields)
            model = transformers.AutoModelForCausalLM.from_config(config, trust_remote_code=False)
            return model.float()
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(f"this language model cannot be made: {error}") from error


def _find_frame(tokenizer: Any) -> tuple[Frame, int, bool]:
    parts = _template_parts(tokenizer) if tokenizer.chat_template else None
    if parts is None:
        parts = _plain_parts(tokenizer)
        closing: Sequence[int] = ()
    else:
        closing = _ids(tokenizer, parts[3][1])
    added = tokenizer.added_tokens_decoder  # the mark of the end may have no name there, or a wrong one
    marks = {*tokenizer.all_special_ids, *(token for token, about in added.items() if about.special)}
    own_end = next((token for token in closing if token in marks), tokenizer.eos_token_id)
    if own_end is None:
        raise UserError("the tokenizer has no end of text", "set its eos_token, and save it again")
    begin, knowledge, theirs, own = (tuple(_moved(tokenizer, text) for text in part) for part in parts)
    frame = Frame(begin[0], (knowledge[0], knowledge[1]), (theirs[0], theirs[1]), (own[0], own[1]))
    return frame, own_end + MOVED, bool(closing)


def _template_parts(tokenizer: Any) -> list[tuple[str, ...]] | None:
    """Begin, knowledge, their turn, own turn; nothing for a template that is not put together of turns."""
    jinja2 = require("jinja2", "models")

    def render(*contents: str, answer: bool = False) -> str:
        roles = ["system", "user", "assistant", "user"]
        messages = [{"role": r, "content": c} for r, c in zip(roles, contents, strict=False)]
        return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=answer))

    try:
        head, after_system = render(_SYSTEM).split(_SYSTEM)
        whole = render(_SYSTEM, _USER, _REPLY, _NEXT)
        before_user, after_user = whole.split(_SYSTEM)[1].split(_USER)[0], whole.split(_NEXT)[1]
        after_reply = whole.split(_REPLY)[1].split(_NEXT)[0]
        opening = render(_SYSTEM, _USER, answer=True).split(_USER)[1]
    except (jinja2.TemplateError, ValueError, IndexError, TypeError, KeyError):
        return None
    before_user = before_user.removeprefix(after_system)
    before_own = opening.removeprefix(after_user)
    after_own = after_reply.removesuffix(before_user)
    bos = tokenizer.bos_token or ""
    begin = bos if bos and head.startswith(bos) and not before_user.startswith(bos) else ""
    if not before_own or before_own == opening != after_user + before_own:
        return None
    return [
        (begin,),
        (head.removeprefix(begin), after_system),
        (before_user, after_user),
        (before_own, after_own),
    ]


def _plain_parts(tokenizer: Any) -> list[tuple[str, ...]]:
    """For a model that was taught no chat format."""
    return [(tokenizer.bos_token or "",), ("Fact: ", "\n"), ("A: ", "\n"), ("B:", "\n")]


def _ids(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]) if text else []


def _moved(tokenizer: Any, text: str) -> Tokens:
    return tuple(token + MOVED for token in _ids(tokenizer, text))
