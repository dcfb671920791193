"""Checkpoint folders: saved and loaded, in half precision, damaged, from another version, on a full disk."""

from __future__ import annotations

import json
import re
import resource
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from palaver.errors import ConfigError, DataError, UserError
from palaver.models.pretrained import Responder, build, fingerprint, load
from palaver.models.seq2seq import Seq2Seq
from palaver.text.vocabulary import Vocabulary

VOCABULARY = Vocabulary.train(["hello there", "how are you", "fine thanks"] * 3, kind="word", size=40)
SMALL: dict[str, dict[str, Any]] = {
    "seq2seq": {"embedding": 6, "hidden": 8, "layers": 2, "conditioning": "speaker", "speakers": ["a", "ü"]},
    "knowledge-transformer": {"dim": 64, "heads": 2, "layers": 1, "feed_forward": 8, "max_knowledge": 9},
}


def made(kind: str, **changes: Any) -> Responder:
    torch.manual_seed(1)
    limits = {"max_context": 9, "max_response": 9}
    return build({"model": kind, "vocab_size": len(VOCABULARY), **limits, **SMALL[kind], **changes}).eval()


def saved(folder: Path, kind: str = "seq2seq") -> Path:
    made(kind).save_pretrained(folder)
    VOCABULARY.save(folder)
    return folder


@pytest.mark.parametrize("kind", list(SMALL))
def test_a_saved_model_comes_back(kind: str, tmp_path: Path) -> None:
    model = made(kind)
    model.save_pretrained(tmp_path)
    VOCABULARY.save(tmp_path)
    loaded, vocabulary = load(tmp_path)
    assert loaded.config == model.config
    assert not loaded.training
    assert vocabulary.signature == VOCABULARY.signature
    for name, weight in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], weight), name
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]


def test_half_precision_is_half_the_size_and_loads_as_float32(tmp_path: Path) -> None:
    made("seq2seq").save_pretrained(tmp_path / "whole")
    made("seq2seq").half().save_pretrained(tmp_path / "half")
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("whole", "half")]
    assert sizes[1] < 0.6 * sizes[0]
    assert Seq2Seq.from_pretrained(tmp_path / "half").dtype == torch.float32
    assert Seq2Seq.from_pretrained(tmp_path / "half", dtype=torch.float64).dtype == torch.float64


def test_a_file_cut_anywhere_is_a_clear_error(tmp_path: Path) -> None:
    saved(tmp_path)
    for name in ("model.safetensors", "config.json"):
        whole = (tmp_path / name).read_bytes()
        for size in (0, 1, 7, len(whole) // 2, len(whole) - 1):
            (tmp_path / name).write_bytes(whole[:size])
            if name == "config.json" and size == len(whole) - 1:
                continue  # only its last line break is gone
            with pytest.raises(DataError, match="damaged or cut short"):
                load(tmp_path)
        (tmp_path / name).write_bytes(whole)
    load(tmp_path)


def test_missing_parts(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no checkpoint folder .*nothing"):
        load(tmp_path / "nothing")
    with pytest.raises(DataError, match="is not a checkpoint"):
        load(tmp_path)
    saved(tmp_path / "best")
    with pytest.raises(DataError, match=r"it is a run: .*best is one"):
        load(tmp_path)
    saved(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(DataError, match="no weights in"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "checkpoint format 2, this version of Palaver reads 1"),
        ({"model": "seqseq"}, "did you mean 'seq2seq'"),
        ({"hiden": 8}, "hiden: there is no such field .did you mean 'hidden'"),
        ({"hidden": 16}, "does not fit its config.json"),
        ({"layers": 3}, "does not fit its config.json"),
        ({"hidden": "many"}, "1 mistake:\n  - hidden: expected a whole number, found 'many'"),
    ],
)
def test_another_version_and_a_config_that_does_not_fit(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    config = json.loads((saved(tmp_path) / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(config | change), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load(tmp_path)
    assert re.search(message, str(caught.value))


def test_somebody_elses_config(tmp_path: Path) -> None:
    saved(tmp_path)
    for text in ("[]", '{"model_type": "bart"}', "null"):
        (tmp_path / "config.json").write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match="not written by Palaver"):
            load(tmp_path)


def test_the_vocabulary_of_another_run(tmp_path: Path) -> None:
    saved(tmp_path)
    Vocabulary.train(["other words altogether"], kind="word", size=40).save(tmp_path)
    with pytest.raises(DataError, match="come from different runs"):
        load(tmp_path)


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    saved(tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    larger = made("seq2seq", hidden=64)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before["model.safetensors"]) + 100, hard))
    try:
        with pytest.raises(UserError, match="is the disk full"):
            larger.save_pretrained(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_all_wrong_settings_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        build(
            {
                "model": "knowledge-transformer",
                "vocab_size": 0,
                "dim": 30,
                "heads": 4,
                "dropout": 1.0,
                "positions": "two-hot",
                "norm": "mid",
                "conditioning": "speaker",
            }
        )
    assert len(caught.value.problems) == 4
    with pytest.raises(ConfigError) as caught:
        build({"model": "knowledge-transformer", "vocab_size": 9, "dim": 30, "conditioning": "speaker"})
    assert len(caught.value.problems) == 2
    with pytest.raises(ConfigError, match="vocab_size: is missing"):
        build({"model": "seq2seq"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": ["seq2seq"]}, "there is no model"),
        ({"speakers": 5}, "speakers: expected a list, found 5"),
        ({"speakers": "ab"}, "speakers: expected a list"),
        ({"ocean": None}, "ocean: expected a table"),
        ({"ocean": {"a": "12345"}}, "ocean: expected a list, found '12345'"),
        ({"ocean": {"a": [1, 2, 3, 4, 9]}}, "ocean: expected at most 7, found 9"),
        ({"layers": 1.5}, "layers: expected a whole number, found 1.5"),
        ({"hidden": True}, "hidden: expected a whole number"),
        ({"tied": "yes"}, "tied: expected true or false"),
        ({"dropout": "0.2"}, "dropout: expected a number"),
        ({"conditioning": ["speaker"]}, "conditioning: expected 'none'"),
        ({"vocab_size": 10**12}, "not enough memory for a model of this size"),
        ({"vocab_size": 10**30}, "not enough memory for a model of this size"),
    ],
)
def test_a_config_of_wrong_types(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    config = json.loads((saved(tmp_path) / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(config | change), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load(tmp_path)
    assert message in str(caught.value)


def test_a_config_too_deep_and_one_nobody_may_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (saved(tmp_path) / "config.json").write_text("[" * 100_000)
    with pytest.raises(DataError, match="damaged or cut short"):
        load(tmp_path)
    saved(tmp_path)

    def refused(self: Path, *args: Any, **options: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(DataError, match="config.json cannot be read: permission denied"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda w: w.fill_(float("nan")), "weights that are no numbers: embed.weight"),
        (lambda w: w.fill_(float("inf")), "weights that are no numbers: embed.weight"),
        (lambda w: w.to(torch.int8), "embed.weight holds torch.int8"),
    ],
)
def test_weights_that_are_no_numbers(spoil: Any, message: str, tmp_path: Path) -> None:
    path = saved(tmp_path) / "model.safetensors"
    weights = load_file(path)
    weights["embed.weight"] = spoil(weights["embed.weight"])
    save_file(weights, path)
    with pytest.raises(DataError) as caught:
        load(tmp_path)
    assert message in str(caught.value)


def test_another_vocabulary_of_the_same_size(tmp_path: Path) -> None:
    made("seq2seq", vocabulary=fingerprint(VOCABULARY)).save_pretrained(tmp_path)
    VOCABULARY.save(tmp_path)
    load(tmp_path)
    other = Vocabulary.train(["hello there", "how are we", "fine thanks"] * 3, kind="word", size=40)
    assert len(other) == len(VOCABULARY)
    other.save(tmp_path)
    with pytest.raises(DataError, match="not the vocabulary that the model was trained with"):
        load(tmp_path)
