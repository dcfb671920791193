"""All rows of Topical-Chat's Tables 3 and 5 on one GPU, several trainings at a time.

    python experiments/responders/topical_chat.py prepare --data DATA --out carry/tables
    python experiments/responders/topical_chat.py run --from carry/tables --out OUT --minutes 22
    python experiments/responders/evaluate.py --from OUT --carried carry/tables --out results.json

`run` takes the experiment files beside it and does what `palaver train responder` does with them, which is
faster here for models this small: examples lie on the GPU, a step is recorded as a CUDA graph, and trainings
run in one process on streams of their own. It needs torch, tokenizers, safetensors, accelerate, pydantic and
numpy. A training that has ended is tested by a process of its own: what each true response costs, and a reply
to every context by beam search of 5. OUT gets, for each row, NAME.npz (costs and replies as token ids) and
NAME.json (its epochs, why it ended, the machine). Trainings and examples lie under ./runs. Called again,
`run` keeps the rows that have ended and the replies that are there.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from palaver.text.vocabulary import Vocabulary
from palaver.training.examples import Episode
from palaver.training.experiment_file import load_experiment
from palaver.training.store import Limits, Store, write_store

HERE = Path(__file__).parent
RUNS = Path("runs")
EXAMPLES = RUNS / "examples"
VOCABULARIES = RUNS / "vocabularies"
SPLITS = ("train", "valid_freq", "test_freq", "test_rare")
TESTS = SPLITS[2:]
SELECTORS = ("oracle", "tfidf", "bm25", "trained")
SELECTED = "tf-knowledge"
"""The row that is tested with the sentences of all selectors."""
TALK = {"pretrain-37758": "tf-pretrain", "pretrain-16000": "modern-pretrain"}
"""Vocabulary -> experiment that says its size. Both are made of the same texts."""
ROWS = {
    "tf-pretrain": "pretrain-37758",
    "tf-knowledge-w16": "word",
    "tf-knowledge-w64": "word",
    "tf-knowledge-w128": "word",
    "tf-knowledge-w512": "word",
    "tf": "word",
    "tf-knowledge": "word",
    "modern-pretrain": "pretrain-16000",
    "tf-pt": "pretrain-37758",
    "tf-knowledge-pt": "pretrain-37758",
    "modern-tf": "pretrain-16000",
    "modern-tf-knowledge": "pretrain-16000",
}
"""Row -> vocabulary. Those that begin with another's weights wait for it."""
AFTER = {
    "tf-pt": "tf-pretrain",
    "tf-knowledge-pt": "tf-pretrain",
    "modern-tf": "modern-pretrain",
    "modern-tf-knowledge": "modern-pretrain",
}
SAVE_SECONDS = 120
"""Between two times that the best model of a training is written."""
PLANNED = {"modern-pretrain": ["optimiser.epochs=2"]}
"""Where the window leaves no time for what the experiment file says."""
LIMITS = {
    "word": Limits(512, 64, 128),
    "pretrain-37758": Limits(32, 64, 128),
    "pretrain-16000": Limits(128, 64, 64),
}
"""Of the examples of Topical-Chat; a narrower context is the end of a wider one."""


# Here: what is carried ------------------------------------------------------------------------------------


def prepare(data: Path, out: Path) -> None:
    """Texts with their sentences."""
    from palaver.corpora.catalogue import read_corpus
    from palaver.knowledge.candidates import reading_sentences
    from palaver.knowledge.corpus import select_for
    from palaver.knowledge.selector import make_selector
    from palaver.training.examples import read_source

    out.mkdir(parents=True, exist_ok=True)
    sentences = reading_sentences(read_corpus("topical-chat", root=data))
    for split in SPLITS:
        names = SELECTORS if split in TESTS else SELECTORS[:1]
        picks: dict[str, list[list[str]]] = {}
        for name in names:
            dialogues = read_corpus("topical-chat", root=data, split=split)
            chosen = list(select_for(dialogues, make_selector(name, sentences)))
            picks[name] = [[pick.sentence if pick else "" for pick in own] for _, own in chosen]
        with lzma.open(out / f"{split}.jsonl.xz", "wt", encoding="utf-8") as file:
            for i, (dialogue, _) in enumerate(chosen):
                turns = [turn.text for turn in dialogue.turns]
                row = {"id": dialogue.id, "turns": turns, "knowledge": {n: picks[n][i] for n in names}}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        print(split, len(chosen), flush=True)
    settings = load_experiment(HERE / "tf-pretrain.toml", [f"data.root={data.resolve()}"]).data
    with gzip.open(out / "talk.jsonl.gz", "wt", encoding="utf-8", compresslevel=6) as file:
        for source in settings.train:
            for dialogue in read_source(source, settings):
                turns = [turn.text for turn in dialogue.turns]
                file.write(json.dumps({"turns": turns}, ensure_ascii=False) + "\n")


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    with (gzip if path.suffix == ".gz" else lzma).open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


# Examples ---------------------------------------------------------------------------------------------------


def read_episodes(carried: Path, split: str, selector: str) -> Iterator[Episode]:
    """Every turn but the first of each conversation, as `palaver.training.examples.episodes` gives them."""
    for row in read_rows(carried / f"{split}.jsonl.xz"):
        texts = [text.strip() for text in row["turns"]]
        wanted = [i for i in range(1, len(texts)) if texts[i] and any(texts[:i])]
        n = len(wanted)
        knowledge = [row["knowledge"][selector][i] for i in wanted]
        yield Episode(texts, wanted, [0] * n, [-1] * n, knowledge)


def write_vocabulary(carried: Path, name: str) -> None:
    """As `palaver train` makes it: of all turns that are trained on."""
    if (VOCABULARIES / name).is_dir():
        return
    wanted = load_experiment(HERE / f"{TALK.get(name, 'tf')}.toml").vocabulary
    rows = read_rows(carried / ("train.jsonl.xz" if name == "word" else "talk.jsonl.gz"))
    texts = (text for row in rows for text in row["turns"])
    made = Vocabulary.train(texts, kind=wanted.kind, size=wanted.size, lowercase=wanted.lowercase)
    made.save(VOCABULARIES / name)


def write_examples(carried: Path, vocabulary: str, split: str, selector: str = "oracle") -> None:
    target = EXAMPLES / f"{vocabulary}-{split}-{selector}"
    if target.is_dir():
        return
    tokens = Vocabulary.load(VOCABULARIES / vocabulary)
    write_store(target, read_episodes(carried, split, selector), tokens, LIMITS[vocabulary])


def write_talk(carried: Path, vocabulary: str) -> None:
    """What a model is trained on before: windows of 32 tokens for the paper's, replies for the modern one."""
    target = EXAMPLES / f"{vocabulary}-talk-oracle"
    if target.is_dir():
        return
    window = 32 if vocabulary == "pretrain-37758" else 0
    tokens = Vocabulary.load(VOCABULARIES / vocabulary)
    write_store(target, _talk_episodes(carried), tokens, Limits(128, 64, 0), window=window)


def _talk_episodes(carried: Path) -> Iterator[Episode]:
    for row in read_rows(carried / "talk.jsonl.gz"):
        texts = [text.strip() for text in row["turns"]]
        wanted = [i for i in range(1, len(texts)) if texts[i] and any(texts[:i])]
        n = len(wanted)
        yield Episode(texts, wanted, [0] * n, [-1] * n, [""] * n)


def open_examples(vocabulary: str, split: str, selector: str = "oracle") -> Store:
    return Store(EXAMPLES / f"{vocabulary}-{split}-{selector}")


# There: training and testing ------------------------------------------------------------------------------


class Preparation:
    """Vocabularies, then examples, each made by a process of its own while trainings run already."""

    def __init__(self, carried: Path, rows: list[str], workers: int) -> None:
        self.carried, self.rows = carried, rows
        self.pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
        used = sorted({ROWS[name] for name in rows}, key=lambda name: name != "word")
        self.vocabularies = {v: self.pool.submit(write_vocabulary, carried, v) for v in used}
        self.examples: dict[str, list[Future[None]]] = {}

    def is_ready(self, name: str) -> bool:
        """Whether row `name` can be trained."""
        vocabulary, is_talk = ROWS[name], name in TALK.values()
        if not self.vocabularies[vocabulary].done():
            return False
        self.vocabularies[vocabulary].result()
        if vocabulary not in self.examples:
            self._submit(vocabulary)
        jobs = self.examples["talk-" + vocabulary if is_talk else vocabulary]
        for job in jobs:
            if job.done():
                job.result()
        return all(job.done() for job in jobs)

    def _submit(self, vocabulary: str) -> None:
        submit, carried = self.pool.submit, self.carried
        if vocabulary in TALK:
            self.examples["talk-" + vocabulary] = [submit(write_talk, carried, vocabulary)]
        self.examples[vocabulary] = [submit(write_examples, carried, vocabulary, split) for split in SPLITS]
        if ROWS[SELECTED] == vocabulary and SELECTED in self.rows:
            for selector in SELECTORS[1:]:
                for split in TESTS:
                    submit(write_examples, carried, vocabulary, split, selector)


def plain_command(words: list[str]) -> str:
    """What was typed, without the machine's folders: of an absolute path the last part stays."""
    return " ".join(Path(word).name if word.startswith("/") else word for word in words)


class Window:
    """Trainings side by side until the time is up, and a process that tests each one when it has ended."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.carried, self.out, self.settings = given.carried, given.out, given.settings
        self.limit, self.workers, self.minutes = given.limit, given.workers, given.minutes
        self.at_once = given.at_once
        self.began = time.monotonic()
        self.tests: dict[str, subprocess.Popen[bytes]] = {}
        self.out.mkdir(parents=True, exist_ok=True)
        VOCABULARIES.mkdir(parents=True, exist_ok=True)

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.began:4.0f} s  {text}", flush=True)

    def train(self, rows: list[str], end: float) -> None:
        """Until all have ended or it is `end`."""
        import graphs
        import torch

        torch.set_float32_matmul_precision("high")
        trainings: dict[str, graphs.Training] = {}
        ended = {name for name in AFTER.values() if (self.out / f"{name}.json").is_file()}
        waiting = [name for name in rows if not (self.out / f"{name}.json").is_file()]
        for name in [n for n in rows if n not in waiting and n not in TALK.values()]:
            self.start_test(name)
        preparation = Preparation(self.carried, rows, self.workers)
        while (waiting or trainings) and time.monotonic() < end:
            for name in [n for n in waiting if n not in AFTER or AFTER[n] in ended]:
                if len(trainings) == self.at_once or not preparation.is_ready(name):
                    continue
                waiting.remove(name)
                is_talk = name in TALK.values()
                train = open_examples(ROWS[name], "talk" if is_talk else "train")
                valid = None if is_talk else open_examples(ROWS[name], "valid_freq")
                settings = [*PLANNED.get(name, []), *self.settings]
                file, vocabulary = HERE / f"{name}.toml", VOCABULARIES / ROWS[name]
                try:
                    trainings[name] = graphs.Training(name, file, vocabulary, train, valid, settings)
                except Exception as error:  # the other rows go on
                    waiting = self.give_up(name, error, waiting)
                    break
                self.say(f"{name}: started")
            is_busy = False
            for name, training in list(trainings.items()):
                try:
                    is_busy |= training.advance()
                except Exception as error:
                    del trainings[name]
                    waiting = self.give_up(name, error, waiting)
                    continue
                if not training.ended and time.monotonic() - training.saved > SAVE_SECONDS:
                    training.save(RUNS / name / "best")
                if training.ended:
                    del trainings[name]
                    self.finish(training)
                    ended.add(name)
            if not is_busy:
                time.sleep(0.0005)
        for training in trainings.values():
            training.ended = "its GPU time was spent"
            self.finish(training)
        preparation.pool.shutdown(wait=False, cancel_futures=True)
        if waiting:
            self.say(f"not started: {', '.join(waiting)}")

    def give_up(self, name: str, error: Exception, waiting: list[str]) -> list[str]:
        """Tell why a row failed; the rows that still wait, without those that begin with its weights."""
        self.say(f"{name}: failed: {type(error).__name__}: {error}")
        return [other for other in waiting if AFTER.get(other) != name]

    def finish(self, training: Any) -> None:
        """Keep the best model, and test it in a process of its own."""
        name = training.name
        self.say(f"{name}: {training.ended}")
        if not training.save(RUNS / name / "best"):
            self.say(f"{name}: not one epoch was finished")
            return
        about = training.describe() | {"command": plain_command(sys.argv)}
        (self.out / f"{name}.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
        if name not in TALK.values():
            self.start_test(name)

    def start_test(self, name: str) -> None:
        """In a process of its own, which keeps what was tested before."""
        shutil.copytree(VOCABULARIES / ROWS[name], self.out / ROWS[name], dirs_exist_ok=True)
        options = ["--out", str(self.out), "--limit", str(self.limit)]
        self.tests[name] = subprocess.Popen([sys.executable, __file__, "test", name, *options])

    def wait(self) -> None:
        end = self.began + 60 * self.minutes
        for name, process in self.tests.items():
            try:
                process.wait(max(1.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                self.say(f"{name}: its test was not finished in time")
        self.say("done")


def test(name: str, out: Path, limit: int) -> None:
    import replies

    selectors = SELECTORS if name == SELECTED else SELECTORS[:1]
    stores = {}
    for selector in selectors:
        for split in TESTS:
            stores[split if selector == "oracle" else f"{selector}.{split}"] = open_examples(
                ROWS[name], split, selector
            )
    replies.test(name, RUNS / name / "best", stores, out, limit)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("prepare", help="here: write what is carried to the GPU")
    verb.add_argument("--data", type=Path, required=True)
    verb.add_argument("--out", type=Path, required=True)
    verb = verbs.add_parser("run", help="train and test")
    verb.add_argument("--from", type=Path, required=True, dest="carried")
    verb.add_argument("--out", type=Path, required=True)
    verb.add_argument("--minutes", type=float, default=22)
    verb.add_argument("--test-minutes", type=float, default=6, help="of them, kept for the tests at the end")
    verb.add_argument("--rows", nargs="*", default=list(ROWS))
    verb.add_argument("--set", nargs="*", default=[], dest="settings")
    verb.add_argument("--limit", type=int, default=0, help="test on so many turns of each set only")
    verb.add_argument("--at-once", type=int, default=7, help="trainings side by side; 2 to 4 GB each")
    verb.add_argument("--workers", type=int, default=8, help="processes that prepare examples")
    verb = verbs.add_parser("test", help="score and decode the test sets with a row that is trained")
    verb.add_argument("name")
    verb.add_argument("--out", type=Path, required=True)
    verb.add_argument("--limit", type=int, default=0)
    given = parser.parse_args()
    if given.verb == "prepare":
        prepare(given.data, given.out)
    elif given.verb == "test":
        test(given.name, given.out, given.limit)
    else:
        window = Window(given)
        window.train(given.rows, window.began + 60 * (given.minutes - given.test_minutes))
        window.wait()


if __name__ == "__main__":
    main()
