"""Pools from whatever a user names: a corpus, a dialogue file, or a file of generated responses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from palaver.corpora.catalogue import corpus_names, read_corpus
from palaver.personality.pools import Choice, Pools
from palaver.personality.responses import read_responses
from palaver.personality.transcripts import read_transcripts
from palaver.progress import Progress
from palaver.readers import is_responses


def read_pools(
    source: str | Path,
    recogniser: Any,
    choice: Choice | None = None,
    *,
    root: str | Path | None = None,
    n_words: int = 200,
    workers: int = 0,
    tell: Progress | None = None,
) -> Pools:
    """The utterances of a source, counted by a recogniser and, for the controls, by words.

    `root` is the folder of the corpora, for a corpus by name; `n_words` are the words of the bag, 0 for none.
    """
    path = Path(source)
    options: dict[str, Any] = {"n_words": n_words, "workers": workers, "tell": tell, "source": str(source)}
    if str(source) not in corpus_names() and path.exists() and is_responses(path):
        return read_responses(path, recogniser, choice or Choice(), **options)
    return read_transcripts(read_corpus(source, root=root), recogniser, choice or Choice(), **options)
