"""What is carried to a machine with a GPU: dialogues, the sentence of every turn, and the scripts."""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Sequence
from pathlib import Path

from smollm_data import ROOT, SHOWS, SPLITS, TESTS  # type: ignore[import-not-found]

from palaver.corpora.catalogue import read_corpus
from palaver.knowledge.candidates import reading_sentences
from palaver.knowledge.corpus import select_for
from palaver.knowledge.selector import make_selector


def prepare(data: Path, out: Path, selectors: Sequence[str], characters: bool) -> None:
    """The oracle's sentence for every turn; on the test sets those of other selectors, too."""
    out.mkdir(parents=True, exist_ok=True)
    sentences = reading_sentences(read_corpus("topical-chat", root=data))
    for split in SPLITS:
        _write_dialogues(data, out, split)
        for name in ["oracle", *(selectors if split in TESTS else ())]:
            _write_choices(data, out / f"{split}.{name}.jsonl.xz", split, make_selector(name, sentences))
    if characters:
        _prepare_characters(data, out)


def _write_dialogues(data: Path, out: Path, split: str) -> None:
    with lzma.open(out / f"{split}.jsonl.xz", "wt", encoding="utf-8") as file:
        for dialogue in read_corpus("topical-chat", root=data, split=split):
            turns = [{"s": turn.speaker, "t": turn.text} for turn in dialogue.turns]
            file.write(json.dumps({"id": dialogue.id, "turns": turns}, ensure_ascii=False) + "\n")


def _write_choices(data: Path, path: Path, split: str, selector: object) -> None:
    n = 0
    with lzma.open(path, "wt", encoding="utf-8") as file:
        for dialogue, chosen in select_for(read_corpus("topical-chat", root=data, split=split), selector):  # type: ignore[arg-type]
            texts = [choice.sentence if choice is not None else "" for choice in chosen]
            file.write(json.dumps([dialogue.id, texts], ensure_ascii=False) + "\n")
            n += 1
    print(f"{path.name}: {n:,} dialogues", flush=True)


def _prepare_characters(data: Path, out: Path) -> None:
    sys.path.insert(0, str(ROOT / "experiments/personality"))
    import prepare as scripts  # type: ignore[import-not-found]

    from palaver.corpora.personalities import write_ocean_table
    from palaver.personality.recogniser import load_recogniser
    from palaver.personality.table import estimate_table
    from palaver.reproduce.personality import EXTREMES

    wide = estimate_table(SHOWS, load_recogniser(), root=data).scores(relative=True)
    write_ocean_table(out / "ocean-wide.csv", wide)
    write_ocean_table(out / "extremes.csv", EXTREMES)
    write_ocean_table(out / "requests-wide.csv", scripts.requests(wide))
    texts = scripts.contexts(data, 3_000)
    (out / "contexts.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    for show in SHOWS:
        scripts.write_talk(out / f"{show}.jsonl.xz", read_corpus(show, root=data))
