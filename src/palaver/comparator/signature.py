"""What a stage's result depends on, as a short hash: settings, seed, data, encoder, the stage before."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from palaver.comparator.data import Pairs, Ratings
from palaver.comparator.presets import Preset, Settings, StageName
from palaver.files import sha256_of
from palaver.models.encoders.transformer import find_transformer

_FORMAT = 1
_OWN: dict[str, tuple[str, ...]] = {
    "rate": ("within",),
    "flow": (),
    "smooth": ("k", "rounds", "within"),
    "shapley": ("k", "within"),
}


def stage_settings(stage: StageName, settings: Settings, preset: Preset) -> dict[str, Any]:
    """The settings that matter to a stage: changing any other leaves it as it is."""
    plain = settings.to_json()
    names = ["pooling", "max_tokens", *_OWN[stage]]
    names += [
        f.name for f in dataclasses.fields(settings.training) if f.name not in ("epochs", "graph_tokens")
    ]
    names.append("flow_epochs" if stage == "flow" else "epochs")
    chosen = {name: plain[name] for name in names}
    if stage == "rate":
        chosen |= {"objective": preset.objective, "dev": preset.dev}
        if preset.objective == "classification":
            chosen["classes"] = settings.classes
    return chosen


def short_hash(value: Any) -> str:
    """Twelve hexadecimal digits over anything JSON can hold."""
    text = json.dumps([_FORMAT, value], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def data_digest(data: Ratings | Pairs) -> str:
    """A hash of what is learnt from: turns, ratings and who gave them; labels do not count."""
    digest = hashlib.sha256()
    if isinstance(data, Pairs):
        for column in (data.first, data.second, data.label):
            digest.update(column.tobytes())
        return digest.hexdigest()[:16]
    for row in data.rows:
        said = [(turn.speaker, turn.text) for turn in row.dialogue.turns]
        fields = [row.dialogue.id, said, row.rating, row.rater, row.group, row.system]
        digest.update(json.dumps(fields, ensure_ascii=False).encode())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=8)
def encoder_digest(name: str) -> str:
    """The encoder's weights, wherever they lie; its name where it is not a folder."""
    source = Path(find_transformer(name))
    if not source.is_dir():
        return str(source)
    files = sorted(
        p for p in source.iterdir() if p.suffix in (".safetensors", ".bin") or p.name == "config.json"
    )
    return hashlib.sha256("".join(sha256_of(p) for p in files).encode()).hexdigest()[:16]


def compare_inputs(earlier: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What was different, in words."""
    found = []
    for name in sorted({*earlier, *now}):
        old, new = earlier.get(name), now.get(name)
        if name == "data" and isinstance(old, dict) and isinstance(new, dict):
            changed = [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
            found += [f"the data differ: {key}" for key in changed]
        elif old != new:
            found.append(f"{name} was {old!r} and is {new!r}")
    return found
