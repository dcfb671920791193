"""From whatever a user names (a corpus, a dialogue file, generated responses) to pools and to the answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from palaver.corpora.catalogue import corpus_names, read_corpus
from palaver.engine import Engine
from palaver.personality.plan import Settings
from palaver.personality.pools import Choice, Pools
from palaver.personality.protocol import run_protocol
from palaver.personality.recogniser import AnyRecogniser, load_recogniser
from palaver.personality.responses import read_responses
from palaver.personality.results import Distinguishability
from palaver.personality.transcripts import read_transcripts
from palaver.progress import Progress, no_progress
from palaver.readers import is_responses


def is_response_file(source: str | Path, columns: Mapping[str, str] | None = None) -> bool:
    """Whether it is a file of responses; otherwise it holds dialogues, or is a corpus by name."""
    path = Path(source)
    return str(source) not in corpus_names() and path.is_file() and is_responses(path, columns)


def read_pools(
    source: str | Path,
    recogniser: Any,
    choice: Choice | None = None,
    *,
    root: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    n_words: int = 200,
    engine: Engine | str = "processes",
    progress: Progress | None = None,
) -> Pools:
    """The utterances of a source, counted by a recogniser and, for the controls, by words.

    `root` is the folder of the corpora, for a corpus by name; `columns` are field -> name in a file;
    `n_words` are the words of the bag, 0 for none.
    """
    options: dict[str, Any] = {"source": str(source), "n_words": n_words, "engine": engine}
    options["progress"] = progress or no_progress
    if is_response_file(source, columns):
        return read_responses(Path(source), recogniser, choice or Choice(), columns=columns, **options)
    dialogues = read_corpus(source, root=root, columns=columns)
    return read_transcripts(dialogues, recogniser, choice or Choice(), **options)


def distinguish(
    source: str | Path,
    *,
    recogniser: str | AnyRecogniser = "default",
    choice: Choice | None = None,
    settings: Settings | None = None,
    root: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    n_words: int = 200,
    progress: Progress | None = None,
) -> Distinguishability:
    """Do the words tell who speaks, and is that more than chance (Xing & Fernández 2018)?

    `choice` says which characters are told apart, `settings` how many samples of which size are drawn.
    """
    settings = settings or Settings()
    judge = load_recogniser(recogniser) if isinstance(recogniser, str) else recogniser
    pools = read_pools(
        source,
        judge,
        choice,
        root=root,
        columns=columns,
        n_words=n_words,
        engine=settings.engine,
        progress=progress,
    )
    return run_protocol(pools, settings, progress=progress)
