"""Our own checkpoints as systems: a folder with `config.json`, `model.safetensors` and `tokenizer.json`.

What they read of a dialogue is what `palaver.models.turns` makes of it, in training as here.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from palaver.artefacts import digest
from palaver.corpora.personalities import TRAITS
from palaver.errors import UserError
from palaver.files import sha256_of
from palaver.generation.decode import Decoded, Decoding, Hear, decode
from palaver.generation.options import CheckpointOptions
from palaver.generation.streaming import TokenPieces
from palaver.generation.system import (
    Notes,
    check_context,
    check_ocean,
    check_speaker,
    check_takes,
    cut_note,
    request_key,
)
from palaver.models.catalogue import PREFIX, shipped_checkpoint
from palaver.models.devices import choose_device, choose_dtype
from palaver.models.int16 import round_weights
from palaver.models.pretrained import load
from palaver.models.turns import encode_knowledge, encode_turns, first_turn_seen, join_turns
from palaver.registry import Named
from palaver.schema import Dialogue, Reply, Request, Say
from palaver.text.vocabulary import UNK


class CheckpointSystem(Named):
    """A trained response model that decodes by itself."""

    def __init__(
        self,
        folder: str | Path,
        *,
        name: str | None = None,
        device: str = "auto",
        dtype: str = "auto",
        decoding: Decoding | None = None,
        batch_size: int = 0,
    ) -> None:
        self.folder = Path(folder)
        self.name = name or self.folder.name
        self.notes = Notes()
        self.decoding = decoding or Decoding()
        self.batch_size = batch_size
        where = choose_device(device)
        self.model, self.vocabulary = load(self.folder, device=where, dtype=choose_dtype(dtype, where))
        self.model.merge()
        if dtype == "int16" and where.type == "cpu":
            round_weights(self.model)
        self.config = self.model.config
        self.speakers: tuple[str, ...] = self.config.speakers
        most, wanted = self.config.max_response, self.decoding.max_length
        if wanted > most and wanted != Decoding.max_length:  # nobody chose the default
            self.notes.add(
                "length", f"{self.name} replies with {most} tokens at most, although max_length is {wanted}"
            )
        takes = set()
        if self.config.conditioning == "speaker":
            takes.add("speaker")
        elif self.config.conditioning == "personality":
            takes.add("ocean")
            if self.config.ocean:
                takes.add("speaker")  # by name: the scores it was trained on
                self.speakers = tuple(self.config.ocean)
        if self.config.knowledge:
            takes.add("knowledge")
        self.takes = frozenset(takes)
        if self.decoding.guidance and (not takes or self.decoding.method == "beam"):
            reason = "it is not for beam search" if takes else "the model is told the history alone"
            self.notes.add("guidance", f"{self.name}: guidance has no effect, since {reason}")

    @functools.cached_property
    def settings(self) -> dict[str, Any]:
        parts = [self.folder / part for part in ("config.json", "tokenizer.json", "model.safetensors")]
        model = digest([sha256_of(part) for part in parts if part.is_file()])
        return {"kind": "checkpoint", "model": model, **self.decoding.settings}

    @property
    def chunk(self) -> int:
        return 16384 if self.model.device.type == "cuda" else 1024

    def reply(self, requests: Sequence[Request]) -> list[Reply]:
        """Replies that depend on each request alone."""
        return self._reply(requests)

    def stream(self, request: Request, say: Say) -> Reply:
        """The reply to one request; `say` is told each piece of it as soon as it is there."""
        pieces = TokenPieces(self.vocabulary.decode, say)
        (reply,) = self._reply([request], pieces.hear)
        pieces.finish(reply.text)
        return reply

    def _reply(self, requests: Sequence[Request], hear: Hear | None = None) -> list[Reply]:
        for request in {(r.speaker, r.ocean, r.knowledge is None): r for r in requests}.values():
            check_takes(self, request)
        for dialogue in {id(r.dialogue): r.dialogue for r in requests}.values():
            check_context(dialogue)
        contexts = self._contexts([request.dialogue for request in requests])
        knowledge = self._knowledge([request.knowledge for request in requests])
        keys = self._keys(requests)
        who = self._conditions(requests)
        replies: list[Decoded] = [Decoded([], 0.0)] * len(requests)
        for informed in (True, False):  # without knowledge the model is the plain Transformer
            rows = [i for i in range(len(requests)) if bool(knowledge[i]) is informed]
            if not rows:
                continue
            decoded = decode(
                self.model,
                [contexts[i] for i in rows],
                self.decoding,
                knowledge=[knowledge[i] for i in rows] if informed else None,
                keys=[keys[i] for i in rows],
                batch_size=self.batch_size,
                hear=hear,
                **{name: [values[i] for i in rows] for name, values in who.items()},
            )
            for i, one in zip(rows, decoded, strict=True):
                replies[i] = one
        longest = min(self.decoding.max_length, self.config.max_response)
        if any(len(one.tokens) == longest for one in replies):
            self.notes.add("cut", cut_note(self.name, longest, can_grow=longest < self.config.max_response))
        each = [tuple(one.tokens) for one in replies]
        distinct = list(dict.fromkeys(each))  # dull models say the same thing over and over
        texts = dict(zip(distinct, self.vocabulary.decode_batch(distinct), strict=True))
        return [
            Reply(texts[tokens], one.logprob, len(tokens)) for tokens, one in zip(each, replies, strict=True)
        ]

    def _keys(self, requests: Sequence[Request]) -> list[int]:
        """What seeds each reply; worked out once per dialogue, which all speakers share."""
        shared: dict[int, int] = {}
        for request in requests:
            if request.key is None and id(request.dialogue) not in shared:
                shared[id(request.dialogue)] = request_key(request)
        return [shared[id(r.dialogue)] if r.key is None else r.key for r in requests]

    def _conditions(self, requests: Sequence[Request]) -> dict[str, list[Any]]:
        """Who speaks, as `decode` is told; looked up once per speaker or personality."""
        kind = self.config.conditioning
        if kind == "none":
            return {}
        known: dict[Any, Any] = {}
        for request in requests:
            if (request.speaker, request.ocean) not in known:
                condition = self._speaker(request) if kind == "speaker" else self._ocean(request)
                known[request.speaker, request.ocean] = condition
        name = "speaker" if kind == "speaker" else "ocean"
        return {name: [known[request.speaker, request.ocean] for request in requests]}

    def _speaker(self, request: Request) -> int:
        if request.speaker is None:
            raise UserError(
                f"{self.name} needs to know who speaks", f"--speaker is one of {', '.join(self.speakers)}"
            )
        return check_speaker(request.speaker, self.speakers, self.name)

    def _ocean(self, request: Request) -> tuple[float, ...]:
        if request.ocean is not None:
            return check_ocean(request.ocean)
        if request.speaker is not None:
            check_speaker(request.speaker, self.speakers, self.name)
            return tuple(self.config.ocean[request.speaker])
        named = f", or --speaker, one of {', '.join(self.speakers)}" if self.speakers else ""
        raise UserError(
            f"{self.name} needs a personality",
            f"--ocean takes five numbers from 1 to 7: {', '.join(TRAITS)}{named}",
        )

    def _contexts(self, dialogues: Sequence[Dialogue]) -> list[list[int]]:
        """The history of each dialogue; every text is encoded once."""
        longest = self.config.max_context
        seen: dict[int, list[str]] = {}
        for dialogue in dialogues:
            if id(dialogue) not in seen:  # all speakers of one context share it
                first = first_turn_seen(len(dialogue.turns), self.config.history_turns)
                turns = dialogue.turns[first:][-longest - 1 :]  # each takes a token or more
                seen[id(dialogue)] = [turn.text for turn in turns]
        texts = self._readable(list(dict.fromkeys(text for kept in seen.values() for text in kept)))
        ids = dict(zip(texts, encode_turns(self.vocabulary, list(texts.values()), longest), strict=True))
        histories = {}
        for key, kept in seen.items():
            history = join_turns([ids[text] for text in kept], longest, self.config.frame)
            histories[key] = history.tokens or [UNK]
            if history.is_cut:
                self.notes.add(
                    "context", f"{self.name} reads the last {longest} tokens of a history, not those before"
                )
        return [histories[id(dialogue)] for dialogue in dialogues]

    def _knowledge(self, sentences: Sequence[str | None]) -> list[list[int]]:
        if not any(sentences):
            return [[]] * len(sentences)
        longest = self.config.max_knowledge
        texts = self._readable([sentence or "" for sentence in sentences])
        excerpts = dict(
            zip(texts, encode_knowledge(self.vocabulary, list(texts.values()), longest), strict=True)
        )
        if any(excerpt.is_cut for excerpt in excerpts.values()):
            self.notes.add(
                "knowledge", f"{self.name} reads the first {longest} tokens of a knowledge sentence"
            )
        return [excerpts[sentence or ""].tokens for sentence in sentences]

    def _readable(self, texts: Sequence[str]) -> dict[str, str]:
        """Each text as it can be encoded: half of a surrogate pair is no text."""
        readable = {
            text: text if text.isascii() else text.encode(errors="replace").decode() for text in texts
        }
        if any(text != other for text, other in readable.items()):
            self.notes.add("text", f"{self.name} reads ? in place of characters that are not whole")
        return readable


def open_checkpoint(name: str, options: CheckpointOptions, folder: Path) -> CheckpointSystem:
    """The system that `systems.toml` describes."""
    path = folder / options.path
    if options.path.startswith(PREFIX) and not path.is_dir():
        path = shipped_checkpoint(options.path)
    return CheckpointSystem(
        path,
        name=name,
        device=options.device,
        dtype=options.dtype,
        decoding=Decoding(**options.decoding.given()),
        batch_size=options.batch_size,
    )
