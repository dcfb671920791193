"""Language models that answer prompts: behind an OpenAI-compatible server, or on this machine."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from palaver.errors import UserError, require
from palaver.generation.options import OpenAIOptions
from palaver.generation.systems_file import find_system
from palaver.http import JsonServer, Limits, TryAgain
from palaver.judges.llm_prompts import Prompt, offered

Outcome = Literal["answered", "refused", "failed"]
_LONGEST_ANSWER = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a model said to one prompt, and what it cost."""

    outcome: Outcome
    text: str = ""
    model: str = ""
    """The name and revision under which the server answered."""
    probability: float | None = None
    """Of the answer, where the model gives it."""
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    why: str = ""


class LanguageModel(Protocol):
    """Answers prompts. `settings` are all that changes its answers."""

    name: str
    settings: dict[str, Any]
    chunk: int

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer]: ...


def open_language_model(name: str, *, systems: Path | None = None, device: str = "auto") -> LanguageModel:
    """`smollm2`, the folder of a `transformers` model, or a system of kind openai in systems.toml."""
    if name == "smollm2" or Path(name).is_dir():
        return LocalModel(name, device)
    spec = find_system(name, systems)
    if not isinstance(spec.options, OpenAIOptions):
        raise UserError(
            f"{name} is no language model that can be asked",
            'give smollm2, the folder of a transformers model, or a system of kind "openai" in systems.toml',
        )
    return EndpointModel(name, spec.options)


class EndpointModel:
    """A model behind a server, asked for JSON of the prompt's schema until the server refuses schemas."""

    def __init__(self, name: str, options: OpenAIOptions) -> None:
        self.name = name
        self.chunk = 4 * options.concurrency
        self._options = options
        decoding = options.decoding.given()
        self._temperature = decoding.get(
            "temperature", 0 if decoding.get("method", "greedy") == "greedy" else 1
        )
        self.settings = {
            "base_url": options.base_url, "model": options.model, "temperature": self._temperature,
            "extra": options.extra,
        }  # fmt: skip
        limits = Limits(
            timeout=options.timeout,
            retries=options.retries,
            max_wait=options.max_wait,
            requests_per_minute=options.requests_per_minute,
            connections=options.concurrency,
        )
        self._server = JsonServer(name, options.base_url, key_variable=options.api_key_env, limits=limits)
        self._schemas = True
        self._lock = threading.Lock()

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer]:
        with ThreadPoolExecutor(self._options.concurrency) as pool:
            return list(pool.map(self._ask, prompts))

    def _ask(self, prompt: Prompt) -> Answer:
        begin = time.monotonic()
        with_schema = self._schemas
        try:
            answer = self._server.post("chat/completions", self._body(prompt, with_schema), _answer_in)
        except UserError as error:
            if with_schema and "status 400" in error.message:
                with self._lock:
                    self._schemas = False  # from now on the prompt alone asks for JSON
                return self._ask(prompt)
            if "refuses: status 401" in error.message or "status 403" in error.message:
                raise
            return Answer(outcome="failed", why=error.message, seconds=time.monotonic() - begin)
        self._check_model(answer.model)
        return replace(answer, seconds=time.monotonic() - begin)

    def _body(self, prompt: Prompt, with_schema: bool) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._options.model,
            "messages": prompt.messages,
            "temperature": self._temperature,
            "max_tokens": _LONGEST_ANSWER,
        }
        if self._options.send_seed:
            body["seed"] = prompt.repeat
        if with_schema:
            schema = {"name": "answers", "strict": True, "schema": prompt.schema()}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if self._options.logprobs:
            body["logprobs"] = True
        return {**body, **self._options.extra}

    def _check_model(self, answered: str) -> None:
        """A server that lets another model answer would have its verdicts filed under this one's name."""
        asked = self._options.model
        if answered and not (answered.startswith(asked) or asked.endswith(answered)):
            raise UserError(
                f"{self.name}: asked {asked}, but {answered} answered at {self._options.base_url}",
                "put the name of the model that the server runs into systems.toml",
            )


def _answer_in(body: bytes) -> Answer:
    try:
        data = json.loads(body)
        choice = data["choices"][0]
        message = choice["message"]
        content = message.get("content")
        refusal = message.get("refusal")
    except (ValueError, RecursionError):
        raise TryAgain("the answer is not JSON") from None
    except (KeyError, TypeError, AttributeError, IndexError):
        raise TryAgain("the answer is not a chat completion") from None
    usage = data.get("usage") if isinstance(data.get("usage"), dict) else {}
    answer = Answer(
        outcome="answered",
        model=str(data.get("model") or ""),
        tokens_in=int(usage.get("prompt_tokens") or 0),
        tokens_out=int(usage.get("completion_tokens") or 0),
    )
    if refusal or choice.get("finish_reason") == "content_filter" or not isinstance(content, str):
        return replace(answer, outcome="refused", why=str(refusal or "")[:200])
    return replace(answer, text=content, probability=_probability(choice))


def _probability(choice: dict[str, Any]) -> float | None:
    """Of the whole answer, where the server tells that of each token."""
    given = choice.get("logprobs")
    tokens = given.get("content") if isinstance(given, dict) else None
    if not isinstance(tokens, list) or not tokens:
        return None
    given = [token.get("logprob") if isinstance(token, dict) else None for token in tokens]
    values = [float(value) for value in given if isinstance(value, int | float)]
    return float(np.exp(sum(values))) if len(values) == len(tokens) else None


class LocalModel:
    """A causal model on this machine. It can say nothing but permitted answers; the likeliest wins."""

    chunk = 8

    def __init__(self, name: str, device: str = "auto") -> None:
        require("torch", "models")
        self.name = Path(name).name
        if name == "smollm2":
            from palaver.models.smollm2 import NAME, load_smollm2

            self._model, self._tokenizer = load_smollm2(device, "float32")
            revision = NAME
        else:
            from palaver.models.devices import choose_device
            from palaver.models.smollm2 import load_converted

            model, self._tokenizer = load_converted(Path(name))
            self._model = model.to(choose_device(device)).eval()
            revision = str(Path(name).resolve())
        self.settings = {"model": revision, "decoding": "the likeliest permitted answer"}
        self._room = int(getattr(self._model.config, "max_position_embeddings", 2048)) - 64

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer]:
        return [self._ask(prompt) for prompt in prompts]

    def _ask(self, prompt: Prompt) -> Answer:
        begin = time.monotonic()
        text = prompt.text
        if getattr(self._tokenizer, "chat_template", None):
            template = self._tokenizer.apply_chat_template
            text = str(template(prompt.messages, tokenize=False, add_generation_prompt=True))
        written = "{"
        probability = 1.0
        n_in = len(self._ids(text))
        for number, slot in enumerate(prompt.slots):
            written += (", " if number else "") + json.dumps(slot.name) + ": "
            answers = offered(slot)
            shares = self._shares(text + written, answers)
            best = int(np.argmax(shares))
            written += answers[best]
            probability *= float(shares[best])
        return Answer(
            outcome="answered",
            text=written + "}",
            model=str(self.settings["model"]),
            probability=probability,
            tokens_in=n_in,
            tokens_out=len(self._ids(written)),
            seconds=time.monotonic() - begin,
        )

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return ids[-self._room :]

    def _shares(self, text: str, answers: Sequence[str]) -> Any:
        """How the model shares its belief among the answers, each read to its end."""
        from palaver.models.likelihood import continue_prefix

        endings = [self._tokenizer(a, add_special_tokens=False, verbose=False)["input_ids"] for a in answers]
        logits, tokens = continue_prefix(self._model, self._ids(text), endings)
        chosen = logits.log_softmax(dim=2).gather(2, tokens[..., None])[..., 0]  # (answers, tokens)
        scores = np.array([float(chosen[row, : len(ids)].sum()) for row, ids in enumerate(endings)])
        shares = np.exp(scores - scores.max())
        return shares / shares.sum()
