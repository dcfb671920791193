"""Response models: `Seq2Seq` (speaker, personality) and `KnowledgeTransformer`."""

from palaver.models.pretrained import Responder, ResponderConfig, TokenLoss, build, load
from palaver.models.seq2seq import Seq2Seq, Seq2SeqConfig
from palaver.models.transformer import KnowledgeTransformer, KnowledgeTransformerConfig

__all__ = [
    "KnowledgeTransformer",
    "KnowledgeTransformerConfig",
    "Responder",
    "ResponderConfig",
    "Seq2Seq",
    "Seq2SeqConfig",
    "TokenLoss",
    "build",
    "load",
]
