"""From an experiment to what training reads: speakers, vocabulary, tokenised examples, each made once.

Everything is a stream over the sources: one pass to count speakers (where they are asked for), one for the
vocabulary, one to tokenise.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from palaver.artefacts import digest
from palaver.corpora.personalities import Scores, read_ocean_table
from palaver.errors import UserError, nearest
from palaver.files import sha256_of, write_atomically
from palaver.models.causal_base import base_folder, read_base
from palaver.models.pretrained import read_config
from palaver.text.vocabulary import Vocabulary
from palaver.training.examples import (
    Cast,
    Episode,
    Select,
    check_speakers,
    choose_cast,
    count_turns,
    episodes,
    read_source,
)
from palaver.training.experiment import Experiment, Source
from palaver.training.experiment_file import model_table
from palaver.training.store import FORMAT, Limits, Store, write_store

Say = Callable[[str], None]
"""Receives a line about what is being done."""


@dataclass(frozen=True)
class PreparedData:
    """Where everything is. Small, so that one process can tell the others."""

    vocabulary: Path
    train: Path
    valid: Path | None
    """Missing when the validation examples are held out from `train`."""
    speakers: tuple[str, ...]
    ocean: dict[str, Scores]
    hashes: dict[str, str]
    """Data file -> sha256."""
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Split:
    """Some examples of a store."""

    store: Store
    ids: np.ndarray


def prepare(experiment: Experiment, *, select: Select | None = None, say: Say | None = None) -> PreparedData:
    """Make what is not there yet. `select` chooses knowledge."""
    data = experiment.data
    if not data.train:
        raise UserError(
            "no training data is named", 'give data.train, such as [{ corpus = "self-dialogue" }]'
        )
    work = _Preparation(experiment, select, say or (lambda text: None))
    ocean = read_ocean_table(data.ocean) if data.ocean is not None else {}
    cast = work.cast(ocean)
    vocabulary_at = work.vocabulary()
    vocabulary = Vocabulary.load(vocabulary_at, foreign=base_of(experiment) is not None)
    work.hashes[str(vocabulary_at / "tokenizer.json")] = sha256_of(vocabulary_at / "tokenizer.json")
    train = work.store("training", vocabulary, cast)
    notes = [_describe("training", Store(train))]
    valid = None
    if data.valid:
        valid = work.store("validation", vocabulary, cast)
        notes.append(_describe("validation", Store(valid)))
    names = cast.names if cast else ()
    scores = {name: ocean[name] for name in names if name in ocean}
    return PreparedData(vocabulary_at, train, valid, names, scores, work.hashes, tuple(notes))


def open_splits(experiment: Experiment, prepared: PreparedData) -> tuple[Split, Split | None]:
    """Training and validation examples; the latter held out by the seed where it has no source."""
    train = Store(prepared.train)
    everything = np.arange(len(train))
    if prepared.valid is not None:
        valid = Store(prepared.valid)
        return Split(train, everything), Split(valid, np.arange(len(valid)))
    n_held = experiment.data.valid_examples
    if not n_held:
        return Split(train, everything), None
    if n_held >= len(train):
        raise UserError(
            f"{n_held:,} examples are to be held out for validation, but there are only {len(train):,}",
            "lower data.valid_examples, or name data.valid",
        )
    held = np.random.default_rng((experiment.seed, 0x48454C44)).permutation(len(train))[:n_held]
    return Split(train, np.setdiff1d(everything, held)), Split(train, np.sort(held))


def _describe(what: str, store: Store) -> str:
    parts = [f"{len(store):,} {what} examples"]
    parts += [f"{n:,} left out: {why}" for why, n in store.skipped.items() if n]
    parts += [f"{n:,} {why}" for why, n in store.cut.items() if n]
    return "; ".join(parts)


def limits_of(experiment: Experiment) -> Limits:
    """How long sequences may be, by the model's settings."""
    settings: Any = model_table(experiment.model.kind)(**experiment.model_settings)
    base = base_of(experiment)
    return Limits(
        settings.max_context,
        settings.max_response,
        settings.max_knowledge if settings.knowledge else 0,
        read_base(base).frame if base is not None else None,
    )


def base_of(experiment: Experiment) -> str | None:
    """The language model that is trained, where it is one that others have made."""
    settings: Any = model_table(experiment.model.kind)(**experiment.model_settings)
    return getattr(settings, "base", None)


class _Preparation:
    """The steps of `prepare`, and what they share."""

    def __init__(self, experiment: Experiment, select: Select | None, say: Say) -> None:
        self.experiment, self.data = experiment, experiment.data
        self.select = select
        self.say = say
        self.hashes = _hashes(experiment)
        self.folder = experiment.prepared
        self.folder.mkdir(parents=True, exist_ok=True)

    def cast(self, ocean: dict[str, Scores]) -> Cast | None:
        """Who gets an id. One pass over the training sources, where that is needed."""
        data = self.data
        if not (data.speakers or data.min_turns or ocean):
            return None
        self.say("counting the turns of each speaker")
        counts = [count_turns(read_source(source, data)) for source in data.train]
        cast = choose_cast(data, counts, tuple(ocean))
        heard = sum(counts, Counter[str]())
        if cast is not None and ocean and data.ocean is not None:
            check_speakers(ocean, cast.names, list(heard), data.ocean)
        silent = [name for name in (cast.names if cast else ()) if not heard[name]]
        if silent:
            raise UserError(
                "data.speakers names people who never speak in the training data:",
                problems=[f"{name!r}{nearest(name, list(heard))}" for name in silent],
            )
        return cast

    def vocabulary(self) -> Path:
        """The folder of the vocabulary: a checkpoint's, one that is named, or a new one of the texts."""
        data, settings = self.data, self.experiment.vocabulary
        base = base_of(self.experiment)
        if base is not None:
            return base_folder(base)
        start = self.experiment.model.initialise_from
        if start is not None:
            read_config(start)
            theirs = settings.from_
            if theirs is not None and Vocabulary.load(start).signature != Vocabulary.load(theirs).signature:
                raise UserError(
                    f"vocabulary.from ({theirs}) is not that of model.initialise_from ({start})",
                    "leave vocabulary.from out: the vocabulary comes with the checkpoint",
                )
            return start
        if settings.from_ is not None:
            return settings.from_
        inputs = {
            "format": FORMAT,
            "hashes": [self.hashes[f] for f in _files_of(self.experiment, data.train)],
            "splits": [source.split for source in data.train],
            "vocabulary": settings.model_dump(mode="json"),
        }
        target = self.folder / f"vocabulary-{digest(inputs)}"
        if not (target / "tokenizer.json").is_file():
            self.say("making the vocabulary")
            dialogues = (dialogue for source in data.train for dialogue in read_source(source, data))
            texts = (turn.text for dialogue in dialogues for turn in dialogue.turns)
            made = Vocabulary.train(
                texts, kind=settings.kind, size=settings.size, lowercase=settings.lowercase
            )
            made.save(target)
        return target

    def store(self, which: str, vocabulary: Vocabulary, cast: Cast | None) -> Path:
        """The folder of the training or validation examples."""
        data, limits = self.data, limits_of(self.experiment)
        is_training = which == "training"
        sources = data.train if is_training else data.valid
        ids: Sequence[Mapping[str, int] | None] = [None] * len(sources)
        if cast is not None:
            ids = cast.by_source if is_training else [cast.everyone] * len(sources)
        maximum = data.max_examples if is_training else None
        keys = ("task", "window", "history_turns", "merge_turns", "knowledge")
        inputs = {
            "format": FORMAT,
            "hashes": [self.hashes[f] for f in _files_of(self.experiment, sources)],
            "sources": [[s.corpus, s.split, *sorted((s.columns or {}).items())] for s in sources],
            "vocabulary": vocabulary.signature,
            "settings": {key: getattr(data, key) for key in keys},
            "limits": asdict(limits),
            "speakers": [list(names.items()) for names in ids if names is not None] if cast else None,
            "maximum": maximum,
        }
        target = self.folder / f"examples-{digest(inputs)}"
        if target.is_dir():
            return target
        if data.knowledge != "none" and self.select is None:
            raise UserError(f"knowledge is to be chosen by {data.knowledge!r}, but no selector was passed in")
        skipped: Counter[str] = Counter()
        last_said = time.monotonic()

        def stream() -> Iterator[Episode]:
            select = self.select if data.knowledge != "none" else None
            for source, names in zip(sources, ids, strict=True):
                dialogues = read_source(source, data)
                yield from episodes(dialogues, data, ids=names, select=select, skipped=skipped)

        def report(what: str, done: int, total: int) -> None:
            nonlocal last_said
            if time.monotonic() - last_said > 5:
                last_said = time.monotonic()
                self.say(f"  {done:,} {what} so far")

        self.say(f"preparing {which} examples")
        write_store(
            target,
            stream(),
            vocabulary,
            limits,
            window=data.window if data.task == "windows" else 0,
            max_examples=maximum,
            skipped=skipped,
            progress=report,
        )
        return target


def _files_of(experiment: Experiment, sources: Sequence[Source]) -> list[str]:
    """The files of the sources, each once; of a folder, all that is in it."""
    files: dict[Path, None] = {}
    for source in sources:
        at = read_source(source, experiment.data).path
        files |= dict.fromkeys(_inside(at) or [at])
        files |= dict.fromkeys(_inside(at.parent / "reading_sets"))  # of Topical-Chat: its knowledge
    return list(map(str, files))


def _inside(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []


def _hashes(experiment: Experiment) -> dict[str, str]:
    """File -> sha256, remembered by size and time of change: subtitles are not read anew at every start."""
    memory_at = experiment.prepared / "hashes.json"
    try:
        memory = json.loads(memory_at.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        memory = {}
    memory = memory if isinstance(memory, dict) else {}
    hashes, known = {}, dict(memory)
    data = experiment.data
    table = [str(data.ocean)] if data.ocean is not None else []
    for name in [*_files_of(experiment, (*data.train, *data.valid)), *table]:
        about = Path(name).stat()
        key = f"{name}|{about.st_size}|{about.st_mtime_ns}"
        hashes[name] = known[key] = memory.get(key) or sha256_of(Path(name))
    if known != memory:
        with write_atomically(memory_at) as file:
            json.dump(known, file, indent=1)
    return hashes
