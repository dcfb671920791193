"""Dialogues from files on disk."""

from palaver.corpora.files import DialogueReader, read_dialogues, write_dialogues

__all__ = ["DialogueReader", "read_dialogues", "write_dialogues"]
