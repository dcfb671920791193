"""Encoders behind an OpenAI-compatible server: `POST {base_url}/embeddings`."""

from __future__ import annotations

import json
import os

from palaver.artefacts import digest
from palaver.errors import UserError
from palaver.http import JsonServer, Limits, TryAgain
from palaver.models.encoders.encoder import Encoder, Places

KEY = "OPENAI_API_KEY"
_BATCH = 128


def open_endpoint(arguments: list[str], places: Places) -> Encoder:
    """`openai=MODEL` or `openai=URL,MODEL` with, say, http://localhost:8000/v1."""
    url = next((a.rstrip("/") for a in arguments if a.startswith(("http://", "https://"))), "")
    models = [a for a in arguments if not a.startswith(("http://", "https://"))]
    url = url or os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/")
    if len(models) != 1:
        raise UserError(
            "openai takes the name of a model, and the server's address where it is another",
            "for example openai=http://localhost:8000/v1,bge-small",
        )
    (model,) = models
    server = JsonServer(
        model,
        url,
        key_variable=KEY,
        key_needed=False,
        limits=Limits(retries=3, connections=1),
        hint="is the server there, and its address right? What was encoded so far is kept.",
    )

    def encode(texts: list[str]) -> list[list[float]]:
        rows: list[list[float]] = []
        for begin in range(0, len(texts), _BATCH):
            part = texts[begin : begin + _BATCH]
            vectors = server.post("embeddings", {"model": model, "input": part}, _vectors_in)
            if len(vectors) != len(part):
                raise UserError(f"{url} gave {len(vectors)} vectors for {len(part)} texts")
            rows += vectors
        return rows

    return Encoder(model, digest("openai", url, model), f"{model} at {url}", encode)


def _vectors_in(answer: bytes) -> list[list[float]]:
    """The vectors in the order of the texts, which `index` tells."""
    try:
        rows = sorted(json.loads(answer)["data"], key=lambda row: row.get("index", 0))
        return [row["embedding"] for row in rows]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise TryAgain("the answer is no list of embeddings") from None
