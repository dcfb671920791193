"""Made the files of this folder with Palaver 1.0.0. They are frozen: later versions have to read them.

python tests/data/version-1/make.py FOLDER     # in the repository's folder, with PYTHONPATH=.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import sqlite3
import sys
from pathlib import Path

import torch
from tests.server import sham

from palaver.cli.main import run as run_palaver
from palaver.models.pretrained import build
from palaver.server.backup import backup
from palaver.server.database import Database
from palaver.server.migrations import migrate
from palaver.server.study_state import StudyState
from palaver.studies import load_study
from palaver.text.vocabulary import Vocabulary

SYSTEMS = """[systems.good]
kind = "replay"
path = "responses.jsonl"
system = "good"

[systems.plain]
kind = "replay"
path = "responses.jsonl"
system = "plain"
"""
EXPERIMENT = f"""title = "Version 1"
seed = 1

[test]
contexts = "responses.jsonl"

{SYSTEMS}
[judges]
by = ["unigram_f1", "words"]
"""
TEXTS = ["hello there , how are you ?", "i am fine , thanks .", "what do you like to eat ?"]


def palaver(*words: str) -> None:
    sys.argv = ["palaver", *words]
    try:
        run_palaver()
    except SystemExit as end:
        if end.code:
            raise


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    palaver("study", "new", "--preset", "likert", "--out", "study.toml")
    palaver("collect", "new", "--preset", "talk-and-rate", "--out", "collection.toml")
    with open("responses.jsonl", "w", encoding="utf-8") as file:
        for n in range(4):
            for system, text in (("good", f"Yes, number {n} is on the left."), ("plain", "I do not know.")):
                context = [{"speaker": "user", "text": f"Where is number {n}?"}]
                row = {"id": f"c{n}", "system": system, "context": context, "response": text}
                file.write(json.dumps({**row, "reference": f"Number {n} is left."}) + "\n")
    with open("dialogues.jsonl", "w", encoding="utf-8") as file:
        for n in range(3):
            turns = [{"speaker": "a", "text": f"Hello {n}"}, {"speaker": "b", "text": "Grüß dich"}]
            file.write(json.dumps({"id": f"d{n}", "turns": turns, "labels": {"rating": n + 1}}) + "\n")
    Path("systems.toml").write_text(SYSTEMS)
    Path("experiment.toml").write_text(EXPERIMENT)
    palaver("study", "simulate", "study.toml", "--raters", "3", "--seed", "1", "--out", "ratings.csv")
    palaver("study", "simulate", "study.toml", "--raters", "3", "--seed", "1", "--out", "ratings.parquet")
    palaver(
        "study", "analyse", "ratings.csv", "--study", "study.toml", "--out", "analysis", "--replicates", "20"
    )
    Path("analysis/results.json").rename("results.json")
    for path in Path("analysis").iterdir():
        path.unlink()
    Path("analysis").rmdir()
    palaver("generate", "--system", "good", "--contexts", "responses.jsonl", "--out", "generated.jsonl")
    palaver("evaluate", "experiment.toml", "--out", "evaluation")
    for path in Path("evaluation").iterdir():
        if path.name not in ("cells.db", "run.json"):
            path.unlink()
    database = Database("sqlite:///study.db")
    migrate(database)
    state = StudyState.create(database, load_study("study.toml"), "study.toml")
    rng = random.Random(1)
    for _ in range(2):
        sham.work(state, sham.come_in(state), rng)
    backup(database, Path("study-backup.jsonl.gz"))
    database.close()
    for name in ("study.db", "evaluation/cells.db"):
        with sqlite3.connect(name) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("VACUUM")
        connection.close()
    with open("study.db", "rb") as plain, open("study.db.gz", "wb") as packed:
        packed.write(gzip.compress(plain.read(), mtime=0))
    Path("study.db").unlink()
    torch.manual_seed(0)
    words = Vocabulary.train(TEXTS, kind="word", size=30)
    config = {"model": "seq2seq", "embedding": 8, "hidden": 8, "layers": 1, "max_response": 8}
    build({**config, "vocab_size": len(words)}).eval().save_pretrained(Path("checkpoint"))
    words.save(Path("checkpoint"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
