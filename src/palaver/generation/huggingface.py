"""Any `transformers` model as a system: encoder-decoder or causal, from the hub or a folder.

A model whose tokenizer has a chat template gets messages; any other gets the turns joined by a separator,
which also ends its reply. Sampling is seeded per request: each step of each row draws one number of its own
generator, so that a reply does not depend on the rows around it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from palaver.errors import UserError, require
from palaver.generation.choose import forbid_repeats, penalise
from palaver.generation.decode import Decoding
from palaver.generation.messages import BEGINNING, Message, chat_messages, prompt_fields, system_prompt
from palaver.generation.options import HuggingFaceOptions
from palaver.generation.streaming import TokenPieces
from palaver.generation.system import (
    Notes,
    check_context,
    check_takes,
    cut_note,
    request_key,
    stable_key,
)
from palaver.models.causal_base import SMOLLM2, base_folder
from palaver.models.devices import choose_device, choose_dtype
from palaver.registry import Named
from palaver.schema import Reply, Request, Say

_UNLIMITED = 1_000_000
"""Tokenizers without a limit give a number far above this."""


class HuggingFaceSystem(Named):
    """A model and a tokenizer that `transformers` loads by name."""

    def __init__(self, name: str, options: HuggingFaceOptions, folder: Path = Path()) -> None:
        self.name = name
        self.takes = prompt_fields(options.system_prompt)
        self.notes = Notes()
        self.decoding = Decoding(**options.decoding.given())
        if self.decoding.guidance:
            self.notes.add("guidance", f"{name}: guidance has no effect, since it is for checkpoints of ours")
        self._options = options
        self.device = choose_device(options.device)
        source = str(folder / options.model) if (folder / options.model).is_dir() else options.model
        if source == SMOLLM2:
            source = str(base_folder(SMOLLM2))
        self.model, self.tokenizer = _load(name, source, options, self.device)
        self.seq2seq = bool(self.model.config.is_encoder_decoder)
        self.templated = bool(self.tokenizer.chat_template) and not self.seq2seq
        self.tokenizer.truncation_side = "left"
        usual = "\n" if self.seq2seq else self.tokenizer.eos_token or "\n"
        self.separator: str = usual if options.separator is None else options.separator
        self._room = self._room_for_context()

    @property
    def settings(self) -> dict[str, Any]:
        kept = {"model", "revision", "system_prompt", "examples", "max_context"}
        return {
            "kind": "huggingface",
            **self._options.model_dump(include=kept),
            **self.decoding.settings,
        }

    @property
    def chunk(self) -> int:
        return 8 * self._options.batch_size

    def reply(self, requests: Sequence[Request]) -> list[Reply]:
        """Batches of requests of like length; replies in the order of the requests."""
        for request in requests:
            check_takes(self, request)
            check_context(request.dialogue)
        inputs = [self._input_ids(request) for request in requests]
        order = sorted(range(len(inputs)), key=lambda i: len(inputs[i]))
        replies: dict[int, Reply] = {}
        for start in range(0, len(order), self._options.batch_size):
            rows = order[start : start + self._options.batch_size]
            generated = self._generate([inputs[i] for i in rows], [request_key(requests[i]) for i in rows])
            replies.update(zip(rows, generated, strict=True))
        return [replies[i] for i in range(len(requests))]

    def stream(self, request: Request, say: Say) -> Reply:
        """The reply to one request; `say` is told each piece of it as soon as it is there."""
        check_takes(self, request)
        check_context(request.dialogue)
        pieces = TokenPieces(self._text, say)
        heard = self.templated and self.decoding.method != "beam"  # else the end is known when all is there
        streamer = _Streamer(pieces) if heard else None
        (reply,) = self._generate([self._input_ids(request)], [request_key(request)], streamer)
        pieces.finish(reply.text)
        return reply

    def _text(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

    def _room_for_context(self) -> int:
        """Tokens a context may have; a causal model's reply needs its place beside it."""
        config = self.model.config
        text_config = config.get_text_config() if hasattr(config, "get_text_config") else config
        known = [
            getattr(c, f, None)
            for c in (config, text_config)
            for f in ("max_position_embeddings", "n_positions")
        ]
        limits = [
            n for n in (*known, self.tokenizer.model_max_length) if isinstance(n, int) and 0 < n < _UNLIMITED
        ]
        room = min(limits, default=_UNLIMITED) - (0 if self.seq2seq else self.decoding.max_length)
        if room < 1:
            raise UserError(
                f"{self.name}: replies of {self.decoding.max_length} tokens leave no room for a context",
                f"the model takes {min(limits)} tokens in all; give a smaller max_length",
            )
        return min(room, self._options.max_context or room)

    def _input_ids(self, request: Request) -> list[int]:
        if self.templated:
            shown = self._options.examples
            messages = chat_messages(request, self._options.system_prompt, self.name, shown)
            return self._ids(self._rendered(self._fitting(messages)), special=False)
        turns = [text for example in self._options.examples for text in example]
        turns += [turn.text.strip() for turn in request.dialogue.turns if turn.text.strip()]
        prompt = system_prompt(self._options.system_prompt, request, self.name)
        text = self.separator.join([*([prompt] if prompt else []), *turns])
        return self._ids(text if self.seq2seq else text + self.separator, special=True)

    def _ids(self, text: str, *, special: bool) -> list[int]:
        ids = self.tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"]
        if len(ids) > self._room:
            self._say_cut()
            ids = self.tokenizer(text, add_special_tokens=special, truncation=True, max_length=self._room)[
                "input_ids"
            ]
        return ids or [self.tokenizer.unk_token_id or self.tokenizer.eos_token_id or 0]

    def _say_cut(self) -> None:
        self.notes.add(
            "context", f"{self.name} reads the last {self._room} tokens of a history, not those before"
        )

    def _rendered(self, messages: Sequence[Message]) -> str:
        """The template's text. Some templates know no system role, some insist that the user begins."""
        jinja2 = require("jinja2", "models")
        tried = [list(messages)]
        if messages[0]["role"] == "system":
            first, *rest = messages
            tried.append([{"role": "user", "content": first["content"]}, *rest])
            if rest[0]["role"] == "user":
                joined = f"{first['content']}\n\n{rest[0]['content']}"
                tried[-1] = [{"role": "user", "content": joined}, *rest[1:]]
        elif messages[0]["role"] == "assistant":
            tried.append([{"role": "user", "content": BEGINNING}, *messages])
        problem: Exception | None = None
        for attempt in tried:
            try:
                return str(
                    self.tokenizer.apply_chat_template(attempt, tokenize=False, add_generation_prompt=True)
                )
            except jinja2.TemplateError as error:
                problem = error
        raise UserError(f"{self.name}: the model's chat template refuses the dialogue: {problem}")

    def _fitting(self, messages: list[Message]) -> list[Message]:
        """The newest messages that fit beside the system prompt; of a single one, its end."""
        head = [m for m in messages if m["role"] == "system"]
        said = messages[len(head) :]
        frame = len(self.tokenizer(self._rendered([*head, {**said[-1], "content": ""}]))["input_ids"])
        room = self._room - frame
        around = 16  # what a template puts around a message: roles and marks
        kept: list[Message] = []
        for message in reversed(said):
            ids = self.tokenizer(message["content"], add_special_tokens=False, verbose=False)["input_ids"]
            if len(ids) + around > room:
                self._say_cut()
                if not kept:
                    if room < around:
                        raise UserError(f"{self.name}: the system prompt leaves no room for the dialogue")
                    end = self.tokenizer.decode(ids[-max(1, room - around) :], skip_special_tokens=False)
                    kept.append({**message, "content": end})
                break
            room -= len(ids) + around
            kept.append(message)
        return [*head, *reversed(kept)]

    @torch.inference_mode()
    def _generate(
        self, inputs: Sequence[Sequence[int]], keys: Sequence[int], streamer: _Streamer | None = None
    ) -> list[Reply]:
        filler = self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else 0
        longest = max(map(len, inputs))
        padded = torch.full((len(inputs), longest), filler, device=self.device)  # (B, S)
        mask = torch.zeros_like(padded)
        for row, ids in enumerate(inputs):
            place = slice(0, len(ids)) if self.seq2seq else slice(longest - len(ids), longest)
            padded[row, place] = torch.tensor(ids, device=self.device)
            mask[row, place] = 1
        d = self.decoding
        beams = d.beam_size if d.method == "beam" else 1
        processors: list[Any] = []
        if d.no_repeat_ngram:
            processors.append(_ReplyRule(forbid_repeats, d.no_repeat_ngram))
        if d.repetition_penalty != 1 and d.method != "beam":
            processors.append(_ReplyRule(penalise, d.repetition_penalty))
        if d.method in ("sample", "stochastic-greedy"):
            processors.append(_Sampler(d, keys))
        out = self.model.generate(
            input_ids=padded,
            attention_mask=mask,
            do_sample=False,  # the sampler leaves one token to choose from
            num_beams=beams,
            length_penalty=d.length_penalty,
            min_new_tokens=d.min_length,
            max_new_tokens=d.max_length,
            max_length=None,
            pad_token_id=filler,
            logits_processor=processors,
            streamer=streamer,
            return_dict_in_generate=True,
            output_logits=True,
        )
        indices = out.beam_indices if beams > 1 else None
        scores = self.model.compute_transition_scores(
            out.sequences, out.logits, indices, normalize_logits=True
        )
        new = out.sequences[:, out.sequences.shape[1] - scores.shape[1] :]  # (B, T)
        ends = self.model.generation_config.eos_token_id
        ended = {ends} if isinstance(ends, int) else set(ends or ())
        replies = [self._reply(*row) for row in _cut(new, scores, ended)]
        if any(reply.n_tokens == d.max_length for reply in replies):
            self.notes.add("cut", cut_note(self.name, d.max_length))
        return replies

    def _reply(self, ids: list[int], scores: list[float]) -> Reply:
        text = self._text(ids)
        if self.separator and not self.templated and not self.seq2seq and self.separator in text.lstrip():
            text = text.lstrip().split(self.separator)[0]  # what follows is somebody else's turn
            for size in range(1, len(ids) + 1):
                if self.separator in self._text(ids[:size]).lstrip():
                    ids, scores = ids[: size - 1], scores[:size]  # the separator is the end mark then
                    break
        return Reply(text.strip(), sum(scores), len(ids))


class _Streamer:
    """What the library tells tokens to: first those of the prompt, then the reply's, one by one."""

    def __init__(self, pieces: TokenPieces) -> None:
        self._pieces = pieces
        self._is_prompt = True

    def put(self, tokens: Tensor) -> None:
        if not self._is_prompt:
            for token in tokens.flatten().tolist():
                self._pieces.hear(token)
        self._is_prompt = False

    def end(self) -> None:
        """All is said."""


class _ReplyRule:
    """A logits processor that looks at the reply. The library's own look at prompt and padding, too."""

    def __init__(self, rule: Callable[[Tensor, Tensor, Any], Tensor], setting: float) -> None:
        self._rule, self._setting = rule, setting
        self._start: int | None = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if self._start is None:
            self._start = input_ids.shape[1]
        return self._rule(scores.clone(), input_ids[:, self._start :], self._setting)


class _Sampler:
    """A logits processor: temperature, top-k, nucleus, then one draw per row, whose token alone is left."""

    def __init__(self, decoding: Decoding, keys: Sequence[int]) -> None:
        self._temperature = decoding.temperature
        self._top_k = decoding.k if decoding.method == "stochastic-greedy" else decoding.top_k
        self._top_p = 1.0 if decoding.method == "stochastic-greedy" else decoding.top_p
        self._rngs = [torch.Generator().manual_seed(stable_key(decoding.seed, key)) for key in keys]

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        scaled = scores.double() / self._temperature  # (B, V)
        probable, tokens = scaled.softmax(-1).sort(dim=-1, descending=True, stable=True)
        if self._top_k:
            probable[:, self._top_k :] = 0
        before = probable.cumsum(-1) - probable  # (B, V): mass of the more probable tokens
        probable[before >= self._top_p * probable.sum(-1, keepdim=True)] = 0
        mass = probable.cumsum(-1)  # (B, V)
        draws = torch.stack(
            [torch.rand(1, generator=rng, dtype=torch.float64) for rng in self._rngs]
        )  # (B, 1)
        place = torch.searchsorted(mass, draws.to(mass.device) * mass[:, -1:], right=True)  # (B, 1)
        drawn = tokens.gather(1, place.clamp(max=scores.shape[1] - 1))
        return torch.full_like(scores, -torch.inf).scatter(1, drawn, 0.0)


def _cut(new: Tensor, scores: Tensor, ends: set[int]) -> Iterator[tuple[list[int], list[float]]]:
    """Each row's tokens before the end mark, and their log-probabilities, that of the end mark included."""
    for row, score in zip(new.tolist(), scores.double().tolist(), strict=True):
        length = next((i for i, token in enumerate(row) if token in ends), len(row))
        yield row[:length], score[: length + 1]


def _load(name: str, source: str, options: HuggingFaceOptions, device: torch.device) -> tuple[Any, Any]:
    transformers = require("transformers", "models")
    # code that comes with a model is never run, and nobody is asked whether it may be
    where: dict[str, Any] = {"revision": options.revision, "local_files_only": options.local_files_only}
    where["trust_remote_code"] = False
    bars = transformers.utils.logging
    shown = bars.is_progress_bar_enabled()
    if not sys.stderr.isatty():  # only for a person who waits
        bars.disable_progress_bar()
    try:
        config = transformers.AutoConfig.from_pretrained(source, **where)
        task = (
            options.task if options.task != "auto" else "seq2seq" if config.is_encoder_decoder else "causal"
        )
        loader = (
            transformers.AutoModelForSeq2SeqLM if task == "seq2seq" else transformers.AutoModelForCausalLM
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, **where)
        model = loader.from_pretrained(source, dtype=choose_dtype(options.dtype, device), **where)
    except (OSError, ValueError, KeyError, ImportError) as error:
        first = " ".join(str(error).split())[:300]
        raise UserError(
            f"{name}: transformers cannot load {options.model!r}: {first}",
            "give a folder, or a name on huggingface.co; local_files_only = true never asks the network",
        ) from None
    finally:
        if shown:
            bars.enable_progress_bar()
    return model.to(device).eval(), tokenizer
