"""Asking a JSON server: attempts that are repeated, limits on time and rate, and a key that nobody sees.

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
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, TypeVar

from palaver.errors import UserError, require

T = TypeVar("T")

_MENDABLE = {408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529}
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_LARGEST = 1 << 24
"""Bytes of an answer; more is no answer."""


class TryAgain(Exception):
    """Worth another attempt; after `pause` seconds, if the server said so."""

    def __init__(self, why: str, pause: float | None = None) -> None:
        super().__init__(why)
        self.pause = pause


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How patient to be with a server."""

    timeout: float = 60.0
    """Seconds for one answer, all of it."""
    retries: int = 4
    max_wait: float = 120.0
    """Longest wait in seconds that a server may ask for."""
    requests_per_minute: float = 0.0
    """0: no limit."""
    connections: int = 4


class JsonServer:
    """`name` is who asks and begins every message; `key_variable` names the variable that holds the key."""

    def __init__(
        self,
        name: str,
        base_url: str,
        *,
        key_variable: str | None = None,
        key_needed: bool = True,
        limits: Limits | None = None,
        hint: str = "is the server there, and the model's name right?",
    ) -> None:
        self._limits = limits or Limits()
        self._httpx = require("httpx", "models")
        self._name, self._url, self._hint = name, base_url.rstrip("/"), hint
        self._key_variable = key_variable
        self._key = read_key(name, key_variable, needed=key_needed)
        self._spacing = _Spacing(self._limits.requests_per_minute)
        self._stop = threading.Event()
        self._client = self._httpx.Client(
            headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            timeout=self._limits.timeout,
            limits=self._httpx.Limits(max_connections=self._limits.connections),
        )
        weakref.finalize(self, self._client.close)  # of a system that nobody closes

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("an open connection and its key cannot be pickled")

    def close(self) -> None:
        self._client.close()

    def post_all(self, path: str, bodies: Sequence[dict[str, Any]], parse: Callable[[bytes], T]) -> list[T]:
        """`post` for each, several under way at once; if one fails, the others are given up."""
        if len(bodies) <= 1:
            return [self.post(path, body, parse) for body in bodies]
        self._stop.clear()
        pool = ThreadPoolExecutor(min(self._limits.connections, len(bodies)))
        try:
            futures = [pool.submit(self.post, path, body, parse) for body in bodies]
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in futures:
                if future in done and (error := future.exception()):
                    raise error
            return [future.result() for future in futures]
        finally:  # also on Ctrl-C: those who pause between attempts wake up and end
            self._stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            self._stop.clear()

    def post(
        self,
        path: str,
        body: dict[str, Any],
        parse: Callable[[bytes], T],
        hear: Callable[[bytes], None] | None = None,
    ) -> T:
        """What `parse` makes of the answer; it raises `TryAgain` for one that is no answer.

        `hear` is told the bytes of an answer while they come. Once it has heard some there is no other
        attempt: they may have been shown to somebody.
        """
        heard = False

        def listen(piece: bytes) -> None:
            nonlocal heard
            if hear is not None:
                heard = True
                hear(piece)

        attempts = self._limits.retries + 1
        why = ""
        for attempt in range(attempts):
            self._sleep(self._spacing.turn())
            try:
                return parse(self._attempt(path, body, listen))
            except TryAgain as again:
                why = str(again)
                if heard:
                    raise UserError(f"{self._name}: the answer broke off: {self._hide(why)}") from None
                longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)
                pause = random.uniform(longest / 2, longest) if again.pause is None else again.pause
                if again.pause is not None:  # what the server asks of one request holds for all of them
                    self._spacing.hold(again.pause)
            if attempt + 1 < attempts:
                self._sleep(pause)
        times = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        raise UserError(
            f"{self._name}: no reply from {self._url} after {times}: {self._hide(why)}", self._hint
        )

    def _sleep(self, seconds: float) -> None:
        if seconds > 0 and self._stop.wait(seconds):
            raise UserError(f"{self._name}: given up, since another request failed")

    def _attempt(self, path: str, body: dict[str, Any], listen: Callable[[bytes], None]) -> bytes:
        """One question and answer. `TryAgain` where another attempt may help, `UserError` where it cannot."""
        httpx, limits = self._httpx, self._limits
        deadline = time.monotonic() + limits.timeout
        answer = bytearray()
        try:
            with self._client.stream("POST", f"{self._url}/{path}", json=body) as response:
                for piece in response.iter_bytes():
                    answer += piece
                    if response.status_code == 200:
                        listen(piece)
                    if time.monotonic() > deadline:  # httpx only limits the wait for each piece
                        raise httpx.ReadTimeout("")
                    if len(answer) > _LARGEST:
                        raise UserError(f"{self._name}: the answer has more than {_LARGEST:,} bytes")
        except httpx.TimeoutException:
            raise TryAgain(f"no answer within {limits.timeout:g} seconds") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise TryAgain(f"the connection failed ({error or type(error).__name__})") from None
        status = response.status_code
        if status == 200:
            return bytes(answer)
        message = self._hide(_message_in(bytes(answer)))
        what = f"status {status}: {message}" if message else f"status {status}"
        if status in _MENDABLE:
            raise TryAgain(what, self._asked_pause(response.headers.get("retry-after")))
        hint = ""
        if status in (401, 403):
            variable = self._key_variable
            hint = (
                f"is the key in {variable} right?"
                if variable
                else "api_key_env names the variable with a key"
            )
        raise UserError(f"{self._name}: {self._url} refuses: {what}", hint)

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
        if not pause <= self._limits.max_wait:
            raise UserError(
                f"{self._name}: the server asks to wait {pause:.0f} seconds, "
                f"more than max_wait = {self._limits.max_wait:g}",
                "go on later; what was done so far is kept",
            )
        return max(0.0, pause)

    def _hide(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text


class _Spacing:
    """Lets one request go every `60 / per_minute` seconds, from whatever thread."""

    def __init__(self, per_minute: float) -> None:
        self._gap = 60 / per_minute if per_minute else 0.0
        self._next = 0.0
        self._lock = threading.Lock()

    def turn(self) -> float:
        """Seconds to wait until it is the caller's turn, which is now taken."""
        with self._lock:
            now = time.monotonic()
            mine = max(now, self._next)
            self._next = mine + self._gap
            return mine - now

    def hold(self, seconds: float) -> None:
        """Let nobody go for so long."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)


def read_key(name: str, variable: str | None, *, needed: bool = True) -> str:
    """The key in an environment variable; empty where none is named, or it is not needed and not there."""
    if variable is None:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key and needed:
        raise UserError(
            f"{name}: the environment variable {variable} is not set",
            f"it should hold the key: export {variable}=…",
        )
    if not key.isascii() or (key and not key.isprintable()):
        raise UserError(f"{name}: the key in {variable} has characters that no header can carry")
    return key


def _message_in(answer: bytes) -> str:
    """What the server says about an error, in one short line."""
    text = answer[:10_000].decode(errors="replace")
    try:
        error = json.loads(text)["error"]
        text = str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError):
        pass
    return " ".join(text.split())[:300]
