"""Readers, one for each noun: every command reads its files through them."""

from palaver.readers.dialogues import DialogueReader, read_dialogues, write_dialogues
from palaver.readers.responses import ResponseReader, is_responses, read_responses

__all__ = [
    "DialogueReader",
    "ResponseReader",
    "is_responses",
    "read_dialogues",
    "read_responses",
    "write_dialogues",
]
