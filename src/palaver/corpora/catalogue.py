"""The corpora we know by name: a card for each (`cards.toml`), where they may lie, and how they are read.

`read_corpus("friends")` looks in the folder given, or else in `PALAVER_DATA` and in the folder that
`palaver corpus get` fills. A path reads any dialogue file. Installed packages add a `Corpus` through the
entry points `palaver.corpora`; `MODULE:FUNCTION` names one too, or a function that gives dialogues.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, cast

from palaver.corpora.plain import read_plain
from palaver.corpora.reading import Loader, in_split, merge_turns, named, normal_split
from palaver.corpora.scripts import COLUMNS, read_script
from palaver.errors import DataError, UserError, nearest
from palaver.files import TextStream, cache_home, check_readable, detect_format
from palaver.readers.shapes import Tally
from palaver.registry import Registry, import_object
from palaver.schema import Dialogue


@dataclass(frozen=True, kw_only=True)
class CorpusCard:
    """What one should know about a corpus before using it."""

    name: str
    title: str
    licence: str
    source: str
    """The page of the people who made it."""
    redistributable: bool
    """Whether it, and what is trained on it, may be passed on by anybody, under the licence's terms."""
    description: str
    counts: dict[str, int] = field(default_factory=dict)
    """Dialogues and turns as we counted them in the copy whose hashes are in `sha256`."""
    sha256: dict[str, str] = field(default_factory=dict)
    """File name -> hash, of the copy that was counted. Files that are not here are not pinned."""
    splits: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    """What `get` downloads."""
    keep: tuple[str, ...] = ()
    """Patterns of the files in a downloaded archive that are wanted; all, if there are none."""
    manual: str = ""
    """What a person has to do first, where nothing can be downloaded just so."""


@dataclass(frozen=True)
class Layout:
    """A file or folder by which a copy is known, and what reads it.

    The loader is a function, or "module:function".
    """

    file: str
    loader: str | Loader


@dataclass(frozen=True)
class Copy:
    """A copy of a corpus: what to read, in which layout, and the folder the layout's name starts from."""

    path: Path
    layout: Layout
    base: Path


@dataclass(frozen=True)
class Corpus:
    """A card with the layouts in which the corpus comes, the ones to prefer first."""

    card: CorpusCard
    layouts: tuple[Layout, ...]
    folder: str = ""
    """Where it lies in a collection of corpora, besides a folder of its own name."""

    def find(self, root: str | Path | None = None) -> Path | None:
        """The file or folder to read under `root`, or under the usual folders."""
        roots = usual_roots() if root is None else (Path(root).expanduser(),)
        for folder in roots:
            copy = self.locate(folder)
            if copy is not None:
                return copy.path
        return None

    def read(self, path: str | Path, split: str | None = None, *, merge_turns: bool = False) -> CorpusReader:
        """The dialogues of a copy: its file, its folder, or the folder that holds that."""
        wanted = self._split(split)
        path = Path(path).expanduser()
        copy = self.locate(path)
        if copy is None:
            if not path.exists():
                raise DataError(
                    f"there is no {path}", f"get the corpus with: palaver corpus get {self.card.name}"
                )
            expected = ", ".join(layout.file for layout in self.layouts)
            raise DataError(f"{path} does not look like {self.card.title}", f"expected one of: {expected}")
        tally: Tally = Tally()
        dialogues = load(copy.layout)(copy.path, wanted, tally)
        return CorpusReader(dialogues, copy.path, tally, wanted, self.card, merge=merge_turns)

    def _split(self, split: str | None) -> str | None:
        if split is None:
            return None
        if not self.card.splits:
            raise UserError(f"{self.card.name} has no splits, found {split!r}", "leave the split out")
        wanted = normal_split(split)
        if any(in_split(known, wanted) for known in self.card.splits):
            return wanted
        raise UserError(
            f"{self.card.name} has no split {split!r}{nearest(wanted, self.card.splits)}",
            f"it has: {', '.join(self.card.splits)}",
        )

    def locate(self, path: Path) -> Copy | None:
        """The copy that `path` is, or holds; None if it is neither."""
        if path.is_dir():
            own = (path / self.folder,) if self.folder else ()
            for base in (*own, path / self.card.name, path):
                for layout in self.layouts:
                    at = named(base, layout.file)
                    if at is not None:
                        return Copy(at, layout, base)
            for layout in self.layouts:  # the folder itself, as in `swda_data`
                if Path(layout.file).name == path.name:
                    return Copy(path, layout, path.parent)
        elif path.exists():
            plain = path.name.removesuffix(".gz")
            for layout in self.layouts:
                if Path(layout.file).name == plain:
                    return Copy(path, layout, path.parent)
            for layout in self.layouts:  # a file of another name
                if Path(layout.file).suffix == Path(plain).suffix != "":
                    return Copy(path, layout, path.parent)
        return None


class CorpusReader(Iterator[Dialogue]):
    """Dialogues one by one. The counts are about those taken so far; after the last, `notes` are complete."""

    def __init__(
        self,
        dialogues: Iterator[Dialogue],
        path: Path,
        tally: Tally,
        split: str | None = None,
        card: CorpusCard | None = None,
        *,
        merge: bool = False,
    ) -> None:
        self.path = path
        self.card = card
        self.split = split
        self.n_dialogues = 0
        self.n_turns = 0
        self.n_merged = 0
        """Turns that were joined to the one before, of the same speaker."""
        self._dialogues = dialogues
        self._other_splits: set[str] = set()
        self._tally = tally
        self._merge = merge

    def __repr__(self) -> str:
        return f"CorpusReader({str(self.path)!r}: {self.n_dialogues:,} dialogues so far)"

    def _splits_hint(self) -> str:
        named = sorted(self._other_splits - {""})
        if named:
            return f"it has: {', '.join(named[:10])}"
        return "its dialogues name no split; leave out --split" if self._other_splits else ""

    def __next__(self) -> Dialogue:
        for dialogue in self._dialogues:
            split = dialogue.labels.get("split")
            if in_split(split, self.split):
                break
            self._other_splits.add("" if split is None else str(split))
        else:
            if not self.n_dialogues:
                of = f" of split {self.split!r}" if self.split else ""
                raise DataError(f"{self.path}: there is no dialogue{of} in it", self._splits_hint())
            raise StopIteration
        if self._merge:
            dialogue, n_joined = merge_turns(dialogue)
            self.n_merged += n_joined
        if self.card is not None and not dialogue.source:
            dialogue = dialogue.model_copy(update={"source": self.card.name})
        self.n_dialogues += 1
        self.n_turns += len(dialogue.turns)
        return dialogue

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out or is odd, with counts."""
        notes = [f"{what}: {count:,}" for what, count in self._tally.items() if count]
        if self.n_merged:
            notes.append(f"turns joined to the one before, of the same speaker: {self.n_merged:,}")
        return tuple(notes)


def usual_roots() -> tuple[Path, ...]:
    """Where corpora are looked for: `PALAVER_DATA`, then the folder that `get` fills."""
    named_root = os.environ.get("PALAVER_DATA")
    return (*((Path(named_root).expanduser(),) if named_root else ()), cache_root())


def cache_root() -> Path:
    """Where `get` puts what it downloads."""
    return cache_home() / "corpora"


def corpus(name: str) -> Corpus:
    """The corpus called `name`, with its card."""
    known = CORPORA.get(name)
    if not isinstance(known, Corpus):
        raise UserError(f"{name} gives dialogues and has no card", "read it with read_corpus")
    return known


def corpus_names() -> tuple[str, ...]:
    """All names of the catalogue."""
    return tuple(CORPORA)


def read_corpus(
    name_or_path: str | Path,
    *,
    root: str | Path | None = None,
    split: str | None = None,
    merge_turns: bool = False,
    columns: Mapping[str, str] | None = None,
) -> CorpusReader:
    """The dialogues of a corpus by its name, of any dialogue file by its path, or of `MODULE:FUNCTION`.

    `columns` are field -> name in the file, for files with names that are not known.
    """
    name = str(name_or_path)
    if columns and name in CORPORA:
        raise UserError(f"{name} is a corpus, whose columns are known", "leave out --column")
    if name in CORPORA or re.fullmatch(r"[\w.]+:\w+", name):
        known = CORPORA.get(name)
        if not isinstance(known, Corpus):
            wanted = normal_split(split) if split is not None else None
            return CorpusReader(iter(known()), Path(name), Tally(), wanted, merge=merge_turns)
        copy = known.find(root)
        if copy is None:
            looked = ", ".join(map(str, (root,) if root is not None else usual_roots()))
            hint = f"get it with: palaver corpus get {name} (or say where it is: --data, PALAVER_DATA)"
            raise UserError(f"{known.card.title} is not here; looked in {looked}", hint)
        return known.read(copy, split, merge_turns=merge_turns)
    path = Path(name_or_path).expanduser()
    if not path.exists() and path.name == name and "." not in name:
        raise CORPORA.unknown(name)
    if path.is_dir():
        raise UserError(f"{path} is a folder", "say which corpus it holds: NAME --data FOLDER")
    return _read_path(path, split, merge_turns, columns)


def _read_path(path: Path, split: str | None, merge: bool, columns: Mapping[str, str] | None) -> CorpusReader:
    tally: Tally = Tally()
    wanted = normal_split(split) if split is not None else None
    check_readable(path)
    loader: Loader = partial(read_plain, columns=columns)
    if detect_format(path) == "csv":
        with TextStream(path) as stream:
            first = stream.readline(1000).decode(errors="replace").strip()
        loader = read_script if first.startswith(",".join(COLUMNS)) and not columns else loader
    return CorpusReader(loader(path, wanted, tally), path, tally, wanted, merge=merge)


def load(layout: Layout) -> Loader:
    """What reads a copy in this layout."""
    return cast(Loader, import_object(layout.loader)) if isinstance(layout.loader, str) else layout.loader


def _corpus(name: str, data: dict[str, Any]) -> Corpus:
    layouts = tuple(Layout(**layout) for layout in data.pop("layouts"))
    folder = data.pop("folder", "")
    lists = {key: tuple(value) for key, value in data.items() if isinstance(value, list)}
    return Corpus(CorpusCard(name=name, **{**data, **lists}), layouts, folder)


def _cards() -> dict[str, Corpus]:
    text = resources.files("palaver.corpora").joinpath("cards.toml").read_text(encoding="utf-8")
    return {name: _corpus(name, card) for name, card in tomllib.loads(text).items()}


CORPORA: Registry[Corpus | Callable[[], Iterable[Dialogue]]] = Registry(
    "corpus", _cards(), group="palaver.corpora"
)
