"""The script that trains the three sentence models, on a page of made-up text."""

from __future__ import annotations

import gzip
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from palaver.models.sentence import load_sentence_model

SCRIPTS = Path(__file__).parents[2] / "experiments" / "probes"
WORDS = "how are you ? i am fine , thanks . is the dog happy it not a man"
SICK = (
    "pair_ID sentence_A sentence_B entailment_label relatedness_score sentence_A_original sentence_B_original"
)


@pytest.fixture
def reading() -> ModuleType:
    spec = importlib.util.spec_from_file_location("probes_reading", SCRIPTS / "reading.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["probes_reading"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "dialogue").mkdir()
    (tmp_path / "sentences").mkdir()
    turns = [
        {"t": t} for t in ("How are you?", "I am fine, thanks.", "Is the dog happy?", "It is not happy.")
    ]
    with gzip.open(tmp_path / "dialogue" / "small.jsonl.gz", "wt") as file:
        for n in range(40):
            file.write(json.dumps({"id": str(n), "turns": turns[n % 3 :] + turns[: n % 3]}) + "\n")
    words = WORDS.split()
    vectors = np.random.default_rng(0).normal(size=(len(words), 6)).astype(np.float16)
    np.savez(tmp_path / "sentences" / "glove_small.npz", words=np.array(words), vecs=vectors)
    pairs = [
        "A man is happy.\tA man is not happy.\tcontradiction",
        "The dog is fine.\tThe dog is a dog.\tneutral",
    ]
    (tmp_path / "sentences" / "cad_nli_train.tsv").write_text(
        "sentence1\tsentence2\tgold_label\n" + "\n".join(pairs * 30) + "\n"
    )
    rows = [
        ("1", "A cat runs", "A cat is running", "cap1", "cap1", "TRAIN"),
        ("2", "A cat sleeps", "A cat rests", "cap1", "cap2", "TRAIN"),  # made from the same caption as 1
        ("3", "A bird sings", "A bird is singing", "cap3", "cap3", "TRAIN"),
        ("4", "A fish swims", "A fish is swimming", "cap4", "cap4", "TEST"),
    ]
    lines = [f"{i}\t{a}\t{b}\tENTAILMENT\t4.5\t{c}\t{d}\t{part}" for i, a, b, c, d, part in rows]
    head = "\t".join([*SICK.split(), "SemEval_set"])
    (tmp_path / "sentences" / "SICK.txt").write_text("\n".join([head, *lines]) + "\n")
    triplet = {"original": "A cat runs.", "plus": "A cat races.", "star": "The dog is fine!"}
    (tmp_path / "triplets.jsonl").write_text(json.dumps(triplet) + "\n")
    return tmp_path


def test_no_sentence_of_the_probes_is_trained_on(data: Path, reading: ModuleType) -> None:
    found = reading.read_pairs(data / "sentences", data / "triplets.jsonl")
    assert dict(found.sources) == {"cad_nli": 30, "SICK": 1}
    assert dict(found.left_out) == {
        "cad_nli: a sentence of the triplets": 30,
        "SICK: a sentence of the triplets": 1,
        "SICK: made from a caption of the triplets": 1,
        "SICK: not of the training part": 1,
    }
    assert [row for row in found.rows if "bird" in row[0]]
    assert reading.read_pairs(data / "sentences", None).sources["SICK"] == 3


def test_neighbours_stay_inside_their_dialogue(data: Path, reading: ModuleType) -> None:
    text = reading.read_text(data / "dialogue")
    assert len(text.turns) == sum(4 for _ in range(40))
    middles = text.middles()
    assert len(middles) == 2 * 40
    begins = set(text.begin)
    assert not any(int(m) in begins or int(m) + 1 in begins for m in middles)


def test_all_three_are_trained_and_kept(data: Path, tmp_path: Path) -> None:
    script = SCRIPTS / "train.py"
    ran = subprocess.run(
        [sys.executable, str(script), "--data", str(data), "--triplets", str(data / "triplets.jsonl"),
         "--out", str(tmp_path / "out"), "--tiny", "--minutes", "0.03", "--device", "cpu"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    for kind in ("sent2vec", "skipthought", "infersent"):
        model = load_sentence_model(tmp_path / "out" / kind)
        assert model.kind == kind
        assert np.isfinite(model.encode(["Is the dog happy?"])).all()
        assert model.trained["triplets_left_out"] is True
    assert model.trained["left_out"]["SICK: a sentence of the triplets"] == 1
