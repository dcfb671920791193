"""Response models (`Seq2Seq`, `KnowledgeTransformer`), sentence encoders and devices.

Names are loaded when first used, since an encoder that averages word vectors needs no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from palaver.models.encoders import ENCODERS, Encoder, Places, open_encoder, open_encoders
    from palaver.models.pretrained import Responder, ResponderConfig, TokenLoss, build, load
    from palaver.models.seq2seq import Seq2Seq, Seq2SeqConfig
    from palaver.models.transformer import KnowledgeTransformer, KnowledgeTransformerConfig

_HOMES = {
    "palaver.models.encoders": ("ENCODERS", "Encoder", "Places", "open_encoder", "open_encoders"),
    "palaver.models.pretrained": ("Responder", "ResponderConfig", "TokenLoss", "build", "load"),
    "palaver.models.seq2seq": ("Seq2Seq", "Seq2SeqConfig"),
    "palaver.models.transformer": ("KnowledgeTransformer", "KnowledgeTransformerConfig"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ENCODERS",
    "Encoder",
    "KnowledgeTransformer",
    "KnowledgeTransformerConfig",
    "Places",
    "Responder",
    "ResponderConfig",
    "Seq2Seq",
    "Seq2SeqConfig",
    "TokenLoss",
    "build",
    "load",
    "open_encoder",
    "open_encoders",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'palaver.models' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
