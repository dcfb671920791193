"""Encoders behind an OpenAI-compatible server: `POST {base_url}/embeddings`.

What a second attempt may mend (429, 5xx, lost connections) is asked for again with growing pauses. The key is
read from the environment, and taken out of everything that is said.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from palaver.errors import UserError, require
from palaver.probes.encoders.encoder import Encoder, Places, signature

KEY = "OPENAI_API_KEY"
_BATCH, _ATTEMPTS, _TIMEOUT = 128, 4, 60.0
_MENDABLE = {408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529}


def open_endpoint(
    arguments: list[str],
    places: Places,
    *,
    sleep: Callable[[float], None] = time.sleep,
    transport: Any = None,
) -> Encoder:
    """`openai=MODEL` or `openai=URL,MODEL` with, say, http://localhost:8000/v1."""
    url = next((a.rstrip("/") for a in arguments if a.startswith(("http://", "https://"))), "")
    models = [a for a in arguments if not a.startswith(("http://", "https://"))]
    url = url or os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/")
    if len(models) != 1:
        raise UserError(
            "openai takes the name of a model, and the server's address where it is another",
            "for example openai=http://localhost:8000/v1,bge-small",
        )
    httpx = require("httpx", "models")
    key = os.environ.get(KEY, "").strip()
    client = httpx.Client(
        headers={"Authorization": f"Bearer {key}"} if key else {}, timeout=_TIMEOUT, transport=transport
    )

    def hide(text: str) -> str:
        return " ".join((text.replace(key, "[key]") if key else text).split())[:300]

    def ask(texts: list[str]) -> list[list[float]]:
        why = ""
        for attempt in range(_ATTEMPTS):
            if attempt:
                sleep(0.5 * 2**attempt)
            try:
                answer = client.post(f"{url}/embeddings", json={"model": models[0], "input": texts})
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                why = f"the connection failed ({error or type(error).__name__})"
                continue
            if answer.status_code == 200:
                return _rows(answer, len(texts), url)
            why = f"status {answer.status_code}: {answer.text}"
            if answer.status_code not in _MENDABLE:
                hint = (
                    f"is the key in {KEY} right?"
                    if answer.status_code in (401, 403)
                    else "is the model's name right?"
                )
                raise UserError(f"{url} refuses: {hide(why)}", hint)
        raise UserError(
            f"no vectors from {url} after {_ATTEMPTS} attempts: {hide(why)}",
            "is the server there, and its address right? What was encoded so far is kept.",
        )

    def encode(texts: list[str]) -> list[list[float]]:
        return [row for begin in range(0, len(texts), _BATCH) for row in ask(texts[begin : begin + _BATCH])]

    return Encoder(models[0], signature("openai", url, models[0]), f"{models[0]} at {url}", encode)


def _rows(answer: Any, n: int, url: str) -> list[list[float]]:
    """The vectors in the order of the texts, which `index` tells."""
    try:
        data = sorted(answer.json()["data"], key=lambda one: one.get("index", 0))
        found = [one["embedding"] for one in data]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(
            f"{url} gave something that is no list of embeddings", "is it OpenAI-compatible?"
        ) from None
    if len(found) != n:
        raise UserError(f"{url} gave {len(found)} vectors for {n} texts")
    return found
