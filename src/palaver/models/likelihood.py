"""How likely a model holds a reply to be: nats of its tokens, given what stands before it.

Any causal or encoder-decoder model of `transformers`, and Palaver's own checkpoints. Texts of like length
share a batch, padded at the end: no token of a causal model sees what follows it, so neither the size of a
batch nor the side that the tokenizer would pad on changes a figure. Everything is computed in single
precision.

What stands before a reply is its context: through the chat template where the tokenizer has one, else the
turns with the end mark (causal) or a line break (encoder-decoder) between them, and the template's or
tokenizer's own beginning. Without a context it is the template's beginning of a reply, or the beginning
mark. A model that has neither cannot say how likely a first token is; it is left out then. The end mark
after the reply counts. Where all this does not fit the model's window, the beginning of the context goes
first, then the end of the reply.
"""

from __future__ import annotations

import contextlib
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from palaver.artefacts import digest_files
from palaver.errors import UserError, nearest, require
from palaver.models.catalogue import missing_data, not_installed, shipped
from palaver.models.devices import choose_device
from palaver.models.encoders.encoder import batches_by_length
from palaver.models.pretrained import Responder, load
from palaver.models.quiet import quiet_transformers
from palaver.models.turns import encode_knowledge, encode_turns, first_turn_seen, join_turns
from palaver.schema.dialogue import Turn
from palaver.text.vocabulary import EOS, PAD, Vocabulary

MAX_TOKENS = 2048
"""Of a padded batch."""
_UNLIMITED = 1_000_000
"""Tokenizers without a limit give a number far above this."""


class Reply(NamedTuple):
    """A reply, the turns before it, and the knowledge for models that read it."""

    text: str
    context: tuple[Turn, ...] = ()
    knowledge: str = ""


class Likelihoods(NamedTuple):
    """Of each reply: what its tokens cost, how many counted, and whether the model read all there was."""

    nats: NDArray[np.float64]
    n_tokens: NDArray[np.int64]
    is_cut: NDArray[np.bool_]


class LanguageModel(ABC):
    """A model that says how likely replies are."""

    name: str
    """With a digest of its weights."""
    max_tokens: int = MAX_TOKENS

    @abstractmethod
    def policy(self, *, has_context: bool) -> str:
        """What stands before and after a reply, for a signature."""

    @abstractmethod
    def likelihoods(self, replies: Sequence[Reply]) -> Likelihoods:
        """Of each reply. An empty one costs its end mark."""


def nats_of_tokens(
    model: Any,
    prefixes: Sequence[Sequence[int]],
    replies: Sequence[Sequence[int]],
    *,
    max_tokens: int = MAX_TOKENS,
) -> NDArray[np.float64]:
    """What the tokens of each reply cost under a causal model of `transformers`, given those of its prefix.

    Every prefix needs one token at least. A padded batch has about `max_tokens` tokens.
    """
    keeps_few = "logits_to_keep" in inspect.signature(model.forward).parameters
    lengths = [len(prefix) + len(reply) for prefix, reply in zip(prefixes, replies, strict=True)]
    nats = np.zeros(len(lengths))
    for batch in batches_by_length(lengths, max_tokens):
        ids, mask = pad_rows([[*prefixes[n], *replies[n]] for n in batch], 0, model.device)  # (B, T)
        first = min(len(prefixes[n]) for n in batch) - 1  # the first state that predicts a token of a reply
        width = ids.shape[1]
        fewer = {"logits_to_keep": width - first} if keeps_few else {}
        with torch.inference_mode():
            logits = model(ids, attention_mask=mask, use_cache=False, **fewer).logits  # (B, T - first, V)
            if not keeps_few:
                logits = logits[:, first:]
            for place, n in enumerate(batch):
                begin, end = len(prefixes[n]) - 1 - first, lengths[n] - 1 - first
                targets = ids[place, len(prefixes[n]) : lengths[n]]
                nats[n] = F.cross_entropy(logits[place, begin:end].double(), targets, reduction="sum").item()
    return nats


def nats_of_targets(
    model: Any,
    sources: Sequence[Sequence[int]],
    replies: Sequence[Sequence[int]],
    *,
    max_tokens: int = MAX_TOKENS,
) -> NDArray[np.float64]:
    """The same under an encoder-decoder model, given what its encoder reads."""
    lengths = [max(len(source), len(reply)) for source, reply in zip(sources, replies, strict=True)]
    nats = np.zeros(len(lengths))
    for batch in batches_by_length(lengths, max_tokens):
        ids, mask = pad_rows([sources[n] for n in batch], 0, model.device)  # (B, S)
        targets, _ = pad_rows([replies[n] for n in batch], -100, model.device)  # (B, T)
        with torch.inference_mode():
            logits = model(ids, attention_mask=mask, labels=targets, use_cache=False).logits  # (B, T, V)
            costs = F.cross_entropy(logits.double().transpose(1, 2), targets, reduction="none")  # (B, T)
        nats[batch] = costs.sum(1).cpu().numpy()
    return nats


def continue_prefix(
    model: Any, prefix: Sequence[int], continuations: Sequence[Sequence[int]]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (B, T, V) at the tokens (B, T) of several continuations of one prefix, which is read once."""
    with torch.inference_mode():
        first = model(torch.tensor([prefix], device=model.device), use_cache=True, logits_to_keep=1)
        cache = first.past_key_values
        cache.batch_repeat_interleave(len(continuations))
        tokens, _ = pad_rows(continuations, 0, model.device)  # (B, T)
        logits = first.logits.expand(len(continuations), 1, -1)  # (B, 1, V)
        if tokens.shape[1] > 1:
            later = model(tokens[:, :-1], past_key_values=cache, use_cache=True).logits  # (B, T-1, V)
            logits = torch.cat([logits, later], dim=1)
        return logits.float(), tokens


def pad_rows(rows: Sequence[Sequence[int]], filler: int, device: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens filled up at the end, and where there are any."""
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), filler)
    mask = torch.zeros(len(rows), width, dtype=torch.int64)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row, dtype=torch.int64)
        mask[place, : len(row)] = 1
    return ids.to(device), mask.to(device)


class HuggingFaceModel(LanguageModel):
    """A model and a tokenizer of `transformers`."""

    def __init__(self, name: str, model: Any, tokenizer: Any) -> None:
        self.name = name
        self._model, self._tokenizer = model, tokenizer
        self._is_seq2seq = bool(model.config.is_encoder_decoder)
        self._has_template = bool(tokenizer.chat_template) and not self._is_seq2seq
        end = tokenizer.eos_token_id
        self._end = [] if end is None else [end]
        self._begin = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
        self._separator = "\n" if self._is_seq2seq else tokenizer.eos_token or "\n"
        self._window = _window(model.config, tokenizer)
        self._alone = self._without_context()

    def _without_context(self) -> list[int]:
        """What stands before a reply by itself: the template's beginning of one, or the beginning mark."""
        if self._is_seq2seq:
            return self._ids("", special=True) or self._end or [0]
        if self._has_template:
            message = {"role": "user", "content": "x"}
            with contextlib.suppress(Exception):  # templates are programs, and may refuse anything
                before, asked = (self._rendered([message], begins_reply=begins) for begins in (False, True))
                if asked.startswith(before) and asked != before:
                    return self._ids(asked.removeprefix(before), special=False)
        return self._begin

    def policy(self, *, has_context: bool) -> str:
        end = f"end:{self._tokenizer.eos_token or 'none'}|window:{self._window}"
        if not has_context:
            begin = "none, the first token is left out"
            if self._is_seq2seq:
                begin = "the decoder's"
            elif self._alone:
                begin = repr(self._tokenizer.decode(self._alone))
            return f"context:none|bos:{begin}|{end}"
        if self._has_template:
            return f"context:chat-template|bos:the template's|{end}"
        begin = "the decoder's" if self._is_seq2seq else self._tokenizer.bos_token or "none"
        return f"context:turns joined by {self._separator!r}|bos:{begin}|{end}"

    def likelihoods(self, replies: Sequence[Reply]) -> Likelihoods:
        sources = [self._source(reply.context) for reply in replies]
        targets = [
            [*self._tokenizer(reply.text.strip(), add_special_tokens=False, verbose=False)["input_ids"],
             *self._end]
            for reply in replies
        ]  # fmt: skip
        is_cut = np.zeros(len(replies), dtype=bool)
        for n, (source, target) in enumerate(zip(sources, targets, strict=True)):
            sources[n], targets[n] = self._fitting(source, target)
            is_cut[n] = len(sources[n]) + len(targets[n]) < len(source) + len(target)
            if not sources[n]:  # no mark of the beginning: the first token is taken as given
                sources[n], targets[n] = targets[n][:1], targets[n][1:]
        score = nats_of_targets if self._is_seq2seq else nats_of_tokens
        rows = [n for n, target in enumerate(targets) if target]
        nats = np.zeros(len(replies))
        nats[rows] = score(
            self._model, [sources[n] for n in rows], [targets[n] for n in rows], max_tokens=self.max_tokens
        )
        return Likelihoods(nats, np.array([len(target) for target in targets], dtype=np.int64), is_cut)

    def _source(self, context: Sequence[Turn]) -> list[int]:
        """The tokens before the reply; those of the encoder where there is one."""
        turns = [turn for turn in context if turn.text.strip()]
        if not turns:
            return list(self._alone)
        if self._has_template:
            return self._ids(self._rendered(_messages(turns), begins_reply=True), special=False)
        text = self._separator.join(turn.text.strip() for turn in turns)
        if self._is_seq2seq:
            return self._ids(text, special=True)
        ids = self._ids(text + self._separator, special=False)
        return ids if ids[:1] == self._begin else [*self._begin, *ids]

    def _rendered(self, messages: list[dict[str, str]], *, begins_reply: bool) -> str:
        return str(
            self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=begins_reply)
        )

    def _ids(self, text: str, *, special: bool) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"]
        return ids

    def _fitting(self, source: list[int], target: list[int]) -> tuple[list[int], list[int]]:
        if self._is_seq2seq:
            return source[-self._window :], target[: self._window]
        target = target[: self._window - 1]
        return source[-(self._window - len(target)) :], target


def _messages(turns: Sequence[Turn]) -> list[dict[str, str]]:
    """Whoever spoke last is the user; neighbours with one role are one message, as templates insist on."""
    other = turns[-1].speaker
    messages: list[dict[str, str]] = []
    for turn in turns:
        role = "user" if turn.speaker == other else "assistant"
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += "\n" + turn.text.strip()
        else:
            messages.append({"role": role, "content": turn.text.strip()})
    if messages[0]["role"] == "assistant":  # some templates insist that the user begins
        messages.insert(0, {"role": "user", "content": "(The conversation begins.)"})
    return messages


def _window(config: Any, tokenizer: Any) -> int:
    text_config = config.get_text_config() if hasattr(config, "get_text_config") else config
    names = ("max_position_embeddings", "n_positions")
    limits = [getattr(part, name, None) for part in (config, text_config) for name in names]
    limits.append(tokenizer.model_max_length)
    return min((n for n in limits if isinstance(n, int) and 1 < n < _UNLIMITED), default=_UNLIMITED)


class CheckpointModel(LanguageModel):
    """A response model that Palaver trained. Its words cost what they cost it: unknown ones share one id."""

    def __init__(self, name: str, model: Responder, vocabulary: Vocabulary) -> None:
        self.name = name
        self._model, self._vocabulary = model, vocabulary
        if model.config.conditioning != "none":
            raise UserError(
                f"{name} is a model of a {model.config.conditioning}, whom this metric cannot tell it",
                "use a model without",
            )

    def policy(self, *, has_context: bool) -> str:
        return f"context:{'as trained' if has_context else 'none'}|bos:<s>|end:</s>"

    def likelihoods(self, replies: Sequence[Reply]) -> Likelihoods:
        config, vocabulary = self._model.config, self._vocabulary
        contexts, targets, is_cut = [], [], []
        for reply in replies:
            seen = reply.context[first_turn_seen(len(reply.context), config.history_turns) :]
            texts = [turn.text for turn in seen]
            turns = encode_turns(vocabulary, texts, config.max_context)
            excerpt = join_turns(turns, config.max_context, config.frame)
            tokens = vocabulary.encode(reply.text.strip())
            contexts.append(excerpt.tokens)
            targets.append([*tokens[: config.max_response], EOS])
            is_cut.append(excerpt.is_cut or len(tokens) > config.max_response)
        knowledge = [e.tokens for e in encode_knowledge(vocabulary, [r.knowledge for r in replies],
                                                        config.max_knowledge)]  # fmt: skip
        nats = np.zeros(len(replies))
        for batch in batches_by_length([len(target) for target in targets], self.max_tokens):
            rows = [([c[n] for n in batch]) for c in (contexts, targets, knowledge)]
            nats[batch] = self._nats(*rows)
        return Likelihoods(nats, np.array([len(target) for target in targets]), np.array(is_cut, dtype=bool))

    @torch.inference_mode()
    def _nats(
        self, contexts: list[list[int]], targets: list[list[int]], knowledge: list[list[int]]
    ) -> NDArray[np.float64]:
        model = self._model
        context, response = (pad_rows([row or [PAD] for row in rows], PAD, model.device)[0]
                             for rows in (contexts, targets))  # fmt: skip
        sentences = None
        if model.config.knowledge:
            sentences = pad_rows([row or [PAD] for row in knowledge], PAD, model.device)[0]
        memory = model.encode(context, sentences)
        features = model.features(memory, response, speaker=None, ocean=None)  # (B, T, C)
        logits = model.logits(features).double().transpose(1, 2)  # (B, V, T)
        costs = F.cross_entropy(logits, response, reduction="none", ignore_index=PAD)  # (B, T)
        nats: NDArray[np.float64] = costs.sum(1).cpu().numpy()
        return nats


def open_language_model(name: str, device: str = "auto") -> LanguageModel:
    """`smollm2`, a shipped checkpoint, the folder of a checkpoint or of `transformers`, or a fetched name."""
    place = choose_device(device)
    if name == "smollm2":
        from palaver.models.packages import folder_of
        from palaver.models.smollm2 import GGUF, load_smollm2

        model, tokenizer = load_smollm2(str(place), "float32")
        return HuggingFaceModel(_with_digest(name, [folder_of(name) / GGUF]), model, tokenizer)
    if name in not_installed("checkpoints"):
        raise missing_data([name])
    folder = shipped().get(name, Path(name).expanduser())
    if _is_checkpoint(folder):
        responder, vocabulary = load(folder, device=place)
        return CheckpointModel(_with_digest(name, _files(folder)), responder, vocabulary)
    return _load_transformers(name, folder, place)


def _load_transformers(name: str, folder: Path, device: torch.device) -> LanguageModel:
    transformers = require("transformers", "models")
    source = str(folder) if folder.is_dir() else name
    where: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    with quiet_transformers():
        try:
            config = transformers.AutoConfig.from_pretrained(source, **where)
            kind = "AutoModelForSeq2SeqLM" if config.is_encoder_decoder else "AutoModelForCausalLM"
            loader = getattr(transformers, kind)
            tokenizer = transformers.AutoTokenizer.from_pretrained(source, **where)
            model = loader.from_pretrained(source, dtype=torch.float32, **where)
        except Exception as error:  # a damaged file may raise almost anything
            known = ["smollm2", *shipped()]
            choice = f"known: {', '.join(known)}; or the folder of a model that writes text"
            if folder.is_dir():
                first = " ".join(str(error).split())[:200]
                raise UserError(f"the language model {name!r} cannot be loaded: {first}", choice) from error
            raise UserError(
                f"the language model {name!r} cannot be loaded: there is neither such a folder nor "
                f"a whole copy in the cache of Hugging Face{nearest(name, known)}",
                f"{choice}; a model of the hub is fetched with: hf download NAME",
            ) from error
    named = _with_digest(folder.name, _files(folder)) if folder.is_dir() else name
    return HuggingFaceModel(named, model.to(device).eval(), tokenizer)


def _is_checkpoint(folder: Path) -> bool:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and "format" in config


def _files(folder: Path) -> list[Path]:
    kinds = (".json", ".safetensors", ".bin", ".txt")
    return sorted(path for path in folder.iterdir() if path.is_file() and path.suffix in kinds)


def _with_digest(name: str, files: Sequence[Path]) -> str:
    return f"{name}@{digest_files(files)[:8]}"
