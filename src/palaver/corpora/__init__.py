"""The corpora we know by name, in the layouts of their releases."""

from palaver.corpora.catalogue import (
    CORPORA,
    Corpus,
    CorpusCard,
    CorpusReader,
    Layout,
    corpus,
    corpus_names,
    read_corpus,
)
from palaver.corpora.reading import merge_turns
from palaver.corpora.scripts import main_characters

__all__ = [
    "CORPORA",
    "Corpus",
    "CorpusCard",
    "CorpusReader",
    "Layout",
    "corpus",
    "corpus_names",
    "main_characters",
    "merge_turns",
    "read_corpus",
]
