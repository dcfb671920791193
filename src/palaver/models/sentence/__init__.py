"""Sentence encoders of the probes' paper that have weights of their own: Sent2Vec, SkipThought, InferSent."""

from palaver.models.sentence.infersent import InferSent, InferSentConfig
from palaver.models.sentence.sent2vec import Sent2Vec, Sent2VecConfig
from palaver.models.sentence.sentence_model import SentenceModel, Words, load_sentence_model
from palaver.models.sentence.skipthought import SkipThought, SkipThoughtConfig

__all__ = [
    "InferSent",
    "InferSentConfig",
    "Sent2Vec",
    "Sent2VecConfig",
    "SentenceModel",
    "SkipThought",
    "SkipThoughtConfig",
    "Words",
    "load_sentence_model",
]
