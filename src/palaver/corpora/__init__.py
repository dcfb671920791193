"""Dialogues from files on disk, and the corpora we know by name."""

from palaver.corpora.catalogue import Corpus, CorpusCard, CorpusReader, corpus, corpus_names, read_corpus
from palaver.corpora.files import DialogueReader, read_dialogues, write_dialogues
from palaver.corpora.reading import merge_turns
from palaver.corpora.scripts import main_characters

__all__ = [
    "Corpus",
    "CorpusCard",
    "CorpusReader",
    "DialogueReader",
    "corpus",
    "corpus_names",
    "main_characters",
    "merge_turns",
    "read_corpus",
    "read_dialogues",
    "write_dialogues",
]
