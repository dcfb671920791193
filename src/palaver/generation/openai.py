"""Systems behind an OpenAI-compatible server: `POST {base_url}/chat/completions`.

What a second attempt may mend (429, 5xx, timeouts, lost connections, bodies that are no answer) is asked for
again with growing, jittered pauses, or after the pause the server asks for. The key is read from the
environment, goes into the client's headers only and is taken out of everything that is said or shown.
"""

from __future__ import annotations

import email.utils
import json
import os
import random
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from palaver.errors import UserError, require
from palaver.generation.messages import chat_messages, prompt_fields
from palaver.generation.options import OpenAIOptions
from palaver.generation.system import Notes, Reply, Request, check_context, check_takes, request_key

_MENDABLE = {408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529}
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_LARGEST = 1 << 24
"""Bytes of an answer; more is no answer."""


class _Again(Exception):
    """Worth another attempt; after `pause` seconds, if the server said so."""

    def __init__(self, why: str, pause: float | None = None) -> None:
        super().__init__(why)
        self.pause = pause


class _Spacing:
    """Lets one request go every `60 / per_minute` seconds, from whatever thread."""

    def __init__(self, per_minute: float) -> None:
        self._gap = 60 / per_minute if per_minute else 0.0
        self._next = 0.0
        self._lock = threading.Lock()

    def turn(self) -> float:
        """Seconds to wait until it is the caller's turn, which is now taken."""
        if not self._gap:
            return 0.0
        with self._lock:
            now = time.monotonic()
            mine = max(now, self._next)
            self._next = mine + self._gap
            return mine - now


class OpenAISystem:
    """A model that is asked over HTTP."""

    def __init__(self, name: str, options: OpenAIOptions) -> None:
        httpx = require("httpx", "models")
        self.name = name
        self.takes = prompt_fields(options.system_prompt)
        self.notes = Notes()
        self._options = options
        self._hidden = _key(name, options.api_key_env)
        self._spacing = _Spacing(options.requests_per_minute)
        self._stop = threading.Event()
        self._httpx = httpx
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {self._hidden}"} if self._hidden else {},
            timeout=options.timeout,
            limits=httpx.Limits(max_connections=options.concurrency),
        )
        self._sampling = self._body_of(options.decoding.given())

    def __repr__(self) -> str:
        return f"OpenAISystem({self.name!r}, {self._options.model!r} at {self._options.base_url})"

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("an open connection and its key cannot be pickled")

    @property
    def settings(self) -> dict[str, Any]:
        kept = {"base_url", "model", "system_prompt", "send_seed", "extra"}
        return {"kind": "openai", **self._options.model_dump(include=kept), **self._sampling}

    def close(self) -> None:
        self._client.close()

    @property
    def chunk(self) -> int:
        return 4 * self._options.concurrency

    def reply(self, requests: Sequence[Request]) -> list[Reply]:
        """One reply per request, several under way at once; if one cannot be had, the others are given up."""
        bodies = [self._body(request) for request in requests]
        if len(bodies) <= 1:
            return [self._ask(body) for body in bodies]
        self._stop.clear()
        pool = ThreadPoolExecutor(min(self._options.concurrency, len(bodies)))
        try:
            futures = [pool.submit(self._ask, body) for body in bodies]
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in futures:
                if future in done and (error := future.exception()):
                    raise error
            return [future.result() for future in futures]
        finally:  # also on Ctrl-C: those who pause between attempts wake up and end
            self._stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            self._stop.clear()

    def _body(self, request: Request) -> dict[str, Any]:
        check_takes(self, request)
        check_context(request.dialogue)
        body = {
            "model": self._options.model,
            "messages": chat_messages(request, self._options.system_prompt, self.name),
            **self._sampling,
        }
        if self._options.send_seed:
            body["seed"] = request_key(request) & 0x7FFFFFFF  # servers take 31 or 32 bits
        return {**body, **self._options.extra}

    def _body_of(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Decoding options in the words of the protocol; what it has no word for is said."""
        body: dict[str, Any] = {}
        if given.get("method") == "greedy":
            body["temperature"] = 0
        for ours, theirs in (
            ("temperature", "temperature"),
            ("top_p", "top_p"),
            ("max_length", "max_tokens"),
        ):
            if ours in given:
                body[theirs] = given[ours]
        unsaid = [o for o in given if o not in ("method", "temperature", "top_p", "max_length", "seed")]
        if given.get("method") in ("beam", "stochastic-greedy"):
            unsaid.insert(0, f"method {given['method']}")
        if unsaid:
            self.notes.add("unsaid", f"{self.name}: the server is not told about {', '.join(unsaid)}")
        if self._options.logprobs:
            body["logprobs"] = True
        return body

    def _ask(self, body: dict[str, Any]) -> Reply:
        attempts = self._options.retries + 1
        why = ""
        for attempt in range(attempts):
            self._sleep(self._spacing.turn())
            try:
                return self._attempt(body)
            except _Again as again:
                why = str(again)
                longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)
                pause = random.uniform(longest / 2, longest) if again.pause is None else again.pause
            if attempt + 1 < attempts:
                self._sleep(pause)
        times = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        raise UserError(
            f"{self.name}: no reply from {self._options.base_url} after {times}: {self._hide(why)}",
            "is the server there, and the model's name right? see timeout and retries in the systems file",
        )

    def _sleep(self, seconds: float) -> None:
        if seconds > 0 and self._stop.wait(seconds):
            raise UserError(f"{self.name}: given up, since another request failed")

    def _attempt(self, body: dict[str, Any]) -> Reply:
        """One question and answer. `_Again` where another attempt may help, `UserError` where it cannot."""
        httpx = self._httpx
        url = f"{self._options.base_url}/chat/completions"
        deadline = time.monotonic() + self._options.timeout
        answer = bytearray()
        try:
            with self._client.stream("POST", url, json=body) as response:
                for piece in response.iter_bytes():
                    answer += piece
                    if time.monotonic() > deadline:  # httpx only limits the wait for each piece
                        raise httpx.ReadTimeout("")
                    if len(answer) > _LARGEST:
                        raise UserError(f"{self.name}: the answer has more than {_LARGEST:,} bytes")
        except httpx.TimeoutException:
            raise _Again(f"no answer within {self._options.timeout:g} seconds") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _Again(f"the connection failed ({error or type(error).__name__})") from None
        status = response.status_code
        if status == 200:
            return _reply_in(bytes(answer))
        said = self._hide(_message_in(bytes(answer)))
        what = f"status {status}{f': {said}' if said else ''}"
        if status in _MENDABLE:
            raise _Again(what, self._asked_pause(response.headers.get("retry-after")))
        hint = ""
        if status in (401, 403):
            variable = self._options.api_key_env
            hint = (
                f"is the key in {variable} right?"
                if variable
                else "api_key_env names the variable with a key"
            )
        raise UserError(f"{self.name}: {self._options.base_url} refuses: {what}", hint)

    def _asked_pause(self, header: str | None) -> float | None:
        """Seconds that the server asks to wait, given as a number or a date."""
        if header is None:
            return None
        try:
            pause = float(header)
        except ValueError:
            try:
                pause = email.utils.parsedate_to_datetime(header).timestamp() - time.time()
            except ValueError:
                return None
        if not pause <= self._options.max_wait:
            raise UserError(
                f"{self.name}: the server asks to wait {pause:.0f} seconds, "
                f"more than max_wait = {self._options.max_wait:g}",
                "go on later; palaver generate goes on where it stopped",
            )
        return max(0.0, pause)

    def _hide(self, text: str) -> str:
        return text.replace(self._hidden, "[key]") if self._hidden else text


def _key(name: str, variable: str | None) -> str:
    if variable is None:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UserError(
            f"{name}: the environment variable {variable} is not set",
            f"it should hold the key: export {variable}=…",
        )
    if not key.isascii() or not key.isprintable():
        raise UserError(f"{name}: the key in {variable} has characters that no header can carry")
    return key


def _reply_in(answer: bytes) -> Reply:
    try:
        data = json.loads(answer)
        choice = data["choices"][0]
        message = choice["message"]
        content = message.get("content")
        if isinstance(content, list):  # in parts, as some servers give it
            content = "".join(part.get("text") or "" for part in content)
        if content is None:
            content = message.get("refusal")
    except (ValueError, RecursionError):
        raise _Again("the answer is not JSON") from None
    except IndexError:
        raise _Again("the answer has no choices") from None
    except (KeyError, TypeError, AttributeError):
        raise _Again("the answer is not a chat completion") from None
    if not isinstance(content, str):
        raise _Again("the answer's message has no text")
    scores = _logprobs(choice)
    usage = data.get("usage")
    counted = usage.get("completion_tokens") if isinstance(usage, dict) else None
    n_tokens = len(scores) if scores else counted if isinstance(counted, int) else None
    content = content.encode(errors="replace").decode().strip()  # JSON can spell half a character
    return Reply(content, sum(scores) if scores else None, n_tokens)


def _logprobs(choice: dict[str, Any]) -> list[float]:
    """The log-probability of each token, where the server gives all of them."""
    given = choice.get("logprobs")
    tokens = given.get("content") if isinstance(given, dict) else None
    if not isinstance(tokens, list):
        return []
    scores = [token.get("logprob") if isinstance(token, dict) else None for token in tokens]
    numbers = [float(score) for score in scores if isinstance(score, int | float)]
    return numbers if len(numbers) == len(scores) else []


def _message_in(answer: bytes) -> str:
    """What the server says about an error, in one short line."""
    text = answer[:10_000].decode(errors="replace")
    try:
        error = json.loads(text)["error"]
        text = str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError):
        pass
    return " ".join(text.split())[:300]


def open_openai(name: str, options: OpenAIOptions, folder: Path) -> OpenAISystem:
    """The system that `systems.toml` describes."""
    return OpenAISystem(name, options)
