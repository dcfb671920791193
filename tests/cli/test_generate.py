"""`palaver generate`: a file of responses, gone on with after a stop, cleaned of what is common to all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Palaver = Callable[..., Any]
DIALOGUES = [
    {
        "id": "a",
        "split": "train",
        "turns": [{"s": "x", "t": "hello"}, {"s": "y", "t": "i am fine"}, {"s": "x", "t": "bye"}],
    },
    {"id": "b", "split": "valid", "turns": [{"s": "x", "t": "the moon"}, {"s": "y", "t": "pizza"}]},
    {"id": "c", "split": "valid", "turns": []},
]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    from palaver.models.pretrained import build
    from palaver.text.vocabulary import Vocabulary

    torch.set_num_threads(1)
    torch.manual_seed(0)
    root = tmp_path_factory.mktemp("checkpoints")
    words = Vocabulary.train(["hello there i am fine", "the moon is pizza"] * 3, kind="word", size=20)
    small = {"model": "seq2seq", "embedding": 8, "hidden": 8, "layers": 1, "max_response": 3}
    for name, config in {
        "plain": small,
        "friends": {**small, "conditioning": "speaker", "speakers": ["Joey", "Ross"]},
        "person": {**small, "conditioning": "personality"},
        "knows": {"model": "knowledge-transformer", "dim": 8, "layers": 1, "positions": "sinusoidal"},
    }.items():
        model = build({**config, "vocab_size": len(words)})
        model.eval().save_pretrained(root / name)
        words.save(root / name)
    return root


@pytest.fixture
def contexts(tmp_path: Path) -> Path:
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps(d) + "\n" for d in DIALOGUES))
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_turn_with_its_reference(
    palaver: Palaver, checkpoints: Path, contexts: Path, tmp_path: Path
) -> None:
    words = (
        "generate",
        "--system",
        checkpoints / "plain",
        "--contexts",
        contexts,
        "--every-turn",
        "--out",
        "o.jsonl",
    )
    ran = palaver(*words)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("o.jsonl: 3 rows for 3 contexts\n")
    found = rows(tmp_path / "o.jsonl")
    assert [(r["id"], r["reference"]) for r in found] == [
        ("a#1", "i am fine"),
        ("a#2", "bye"),
        ("b#1", "pizza"),
    ]
    assert all(r["logprob"] < 0 for r in found)
    again = palaver(*words)
    assert again.out.startswith("o.jsonl: 3 rows, 3 of them from before for 3 contexts\n")
    other = palaver(*words, "--beam-size", "3")
    assert other.code == 1
    assert 'method: was "greedy", is "beam"' in other.err
    assert palaver(*words, "--beam-size", "3", "--force").code == 0


def test_speakers_splits_and_what_is_left_out(
    palaver: Palaver, checkpoints: Path, contexts: Path, tmp_path: Path
) -> None:
    words = ("generate", "--system", checkpoints / "friends", "--contexts", contexts, "--out", "o.jsonl")
    ran = palaver(*words, "--split", "valid", "--speakers", "all", "--k", "3", "--seed", "2")
    assert ran.code == 0, ran.err
    assert "2 rows for 1 context, 2 conditions each" in ran.out
    assert "left out: 1 context: nothing to reply to" in ran.out
    assert [r["speaker"] for r in rows(tmp_path / "o.jsonl")] == ["Joey", "Ross"]
    config = json.loads((tmp_path / "o.jsonl.json").read_text())["config"]
    decoding = [config[f"systems.{checkpoints / 'friends'}.{key}"] for key in ("method", "k", "seed")]
    assert decoding == ["stochastic-greedy", 3, 2]


def test_common_responses_are_dropped(palaver: Palaver, checkpoints: Path, tmp_path: Path) -> None:
    (tmp_path / "u.txt").write_text("hello\nmoon\n\npizza\nfine\n" * 5)
    ran = palaver(
        *("generate", "--system", checkpoints / "friends", "--contexts", "u.txt", "--speakers", "Joey,Ross"),
        *("--out", "o.jsonl", "--max-length", "1", "--method", "stochastic-greedy", "--drop-common", "1"),
    )
    assert ran.code == 0, ran.err
    everything, cleaned = rows(tmp_path / "o.jsonl"), rows(tmp_path / "o.cleaned.jsonl")
    assert len(everything) == 40
    (gone,) = {r["response"] for r in everything} - {r["response"] for r in cleaned}
    n_gone = sum(r["response"] == gone for r in everything)
    assert len(cleaned) == 40 - n_gone
    assert (
        f"o.cleaned.jsonl: without {n_gone} rows of 1 responses that occur under every condition" in ran.out
    )
    assert f"  {n_gone} × {gone}" in ran.out
    for speaker in ("Joey", "Ross"):
        dropped = sum(r["response"] == gone and r["speaker"] == speaker for r in everything)
        assert f"{speaker}: {dropped} dropped, {20 - dropped} kept" in ran.out


def test_a_table_of_personalities(
    palaver: Palaver, checkpoints: Path, contexts: Path, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("speaker,O,C,E,A,N\ncalm,4,4,4,4,1\nloud,4,2,7,4,4\n")
    words = ("generate", "--system", checkpoints / "person", "--contexts", contexts, "--out", "o.jsonl")
    ran = palaver(*words, "--ocean-table", "t.csv", "--limit", "1")
    assert ran.code == 0, ran.err
    assert [(r["speaker"], r["ocean"][2]) for r in rows(tmp_path / "o.jsonl")] == [
        ("calm", 4.0),
        ("loud", 7.0),
    ]
    assert "needs a personality" in palaver(*words, "--force").err
    (tmp_path / "t.csv").write_text("speaker,O,C,E,A,N\ncalm,4,4,4,4,8\n")
    ran = palaver(*words, "--ocean-table", "t.csv")
    assert "line 2: neuroticism should be a number from 1 to 7, found 8" in ran.err
    assert "both given" in palaver(*words, "--ocean-table", "t.csv", "--speakers", "all").err


def test_several_systems_by_name(palaver: Palaver, checkpoints: Path, contexts: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps(DIALOGUES[0]) + "\n")
    (tmp_path / "mine.toml").write_text(
        f'[systems.log]\nkind = "replay"\npath = "log.jsonl"\nmissing = "skip"\n'
        f'[systems.model]\nkind = "checkpoint"\npath = "{checkpoints / "plain"}"\n'
        "decoding = { top_k = 2 }\n"
    )
    ran = palaver(
        *("generate", "--system", "log", "--system", "model", "--contexts", contexts, "--every-turn"),
        *("--systems", "mine.toml", "--out", "o.jsonl", "--drop-common", "5"),
    )
    assert ran.code == 0, ran.err
    assert "log gave no reply to 1 context;" in ran.out
    found = rows(tmp_path / "o.jsonl")
    assert [r["response"] for r in found[:3]] == ["i am fine", "bye", None]
    assert [r["system"] for r in found] == ["log"] * 3 + ["model"] * 3


def test_knowledge(palaver: Palaver, checkpoints: Path, contexts: Path, tmp_path: Path) -> None:
    (tmp_path / "facts.txt").write_text("Cheese is old. Pizza is flat.\n")
    words = ("--contexts", contexts, "--out", "o.jsonl", "--knowledge", "facts.txt")
    ran = palaver("generate", "--system", checkpoints / "plain", *words)
    assert ran.code == 1
    assert "no system takes knowledge" in ran.err
    assert "such as default-knowledge" in ran.err
    ran = palaver("generate", "--system", checkpoints / "knows", "--system", checkpoints / "plain", *words)
    assert ran.code == 0, ran.err
    assert f"{checkpoints / 'plain'} takes no knowledge and goes on without" in ran.err
    found = [(r["id"], r.get("knowledge")) for r in rows(tmp_path / "o.jsonl")]
    assert found == [("a", None), ("b", "Pizza is flat."), ("a", None), ("b", None)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--contexts", "nothing.txt"), "there is no file nothing.txt"),
        (("--contexts", "dailydialo"), "did you mean 'dailydialog'"),
        (("--contexts", "d.jsonl", "--speakers", "all"), "such as default-speaker"),
        (("--contexts", "d.jsonl", "--drop-common", "5"), "two or more conditions"),
        (("--contexts", "d.jsonl", "--out", "o.csv"), "end the name in .jsonl"),
        (("--contexts", "d.jsonl", "--out", "."), "cannot write responses to '.'"),
        (("--contexts", "d.jsonl", "--split", "test"), "test"),
        (("--contexts", "d.jsonl", "--beam-size", "2", "--top-k", "3"), "do not go together"),
        (("--contexts", "broken.jsonl"), "line 2"),
    ],
)
def test_clear_errors(
    options: tuple[str, ...], said: str, palaver: Palaver, checkpoints: Path, contexts: Path, tmp_path: Path
) -> None:
    (tmp_path / "broken.jsonl").write_text('{"id": "a", "turns": [{"speaker": "x", "text": "hi"}]}\n{oh no\n')
    ran = palaver("generate", "--system", checkpoints / "plain", "--out", "o.jsonl", *options)
    assert ran.code == (2 if said in ("two or more conditions", "do not go together") else 1)
    assert said in ran.err
    assert not (tmp_path / "o.jsonl").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("generate", "--system", "everyday", "--contexts", "r.jsonl"),
        ("metrics", "r.jsonl", "--by", "words"),
        ("judge", "r.jsonl", "--by", "words"),
    ],
)
def test_a_file_that_is_read_is_never_written(
    words: tuple[str, ...], palaver: Palaver, tmp_path: Path
) -> None:
    content = json.dumps({"id": "a", "system": "s", "context": "Hi.", "response": "Hello."}) + "\n"
    (tmp_path / "r.jsonl").write_text(content)
    ran = palaver(*words, "--out", "./r.jsonl", "--force")
    assert ran.code == 2
    assert "is the file that is read" in ran.err
    assert (tmp_path / "r.jsonl").read_text() == content


def test_a_run_that_is_stopped_says_how_to_go_on(
    palaver: Palaver, checkpoints: Path, contexts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from palaver.generation.checkpoint import CheckpointSystem

    def stop(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(CheckpointSystem, "reply", stop)
    ran = palaver("generate", "--system", checkpoints / "plain", "--contexts", contexts, "--out", "o.jsonl")
    assert ran.code == 130
    assert "the rows so far are in o.jsonl; the same command goes on" in ran.err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("\n\n", "there is no dialogue in it"),
        ('{"id": "a", "turns": [{"s": "x", "t": "hi"}]}\n{broken\n', "line 2"),
        ('{"id": "a", "turns": [{"s": "x", "t": "hi"}]}\n\n{"id": "b", "turns": [{"s": "x"}]}\n', "line 3"),
        ('{"id": "a", "turns": [{"s": "x", "t": "\\ud800"}]}\n', "line 1"),
        ('{"id": "a", "turns": []}\n{"id": "b", "turns": [{"s": "x", "t": " "}]}\n', "there are no contexts"),
        ("[" * 100_000, "too deep"),
    ],
)
def test_contexts_that_are_wrong(
    content: str, said: str, palaver: Palaver, checkpoints: Path, tmp_path: Path
) -> None:
    (tmp_path / "c.jsonl").write_text(content)
    ran = palaver("generate", "--system", checkpoints / "plain", "--contexts", "c.jsonl", "--out", "o.jsonl")
    assert ran.code == 1
    assert said in ran.err
    assert not (tmp_path / "o.jsonl").exists()


def test_a_second_system_on_the_contexts_of_the_first(
    palaver: Palaver, checkpoints: Path, contexts: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    common = ("--device", "cpu", "--contexts")
    ran = palaver(
        "generate", "--system", checkpoints / "plain", "--every-turn", "--out", first, *common, contexts
    )
    assert f"next: palaver study new --from {first}" in ran.out
    ran = palaver("generate", "--system", checkpoints / "knows", "--out", second, *common, first)
    assert ran.code == 0, ran.err
    assert "holds responses; their contexts were answered" in ran.err
    fields = ("id", "context", "reference")
    assert [[row[f] for f in fields] for row in rows(second)] == [
        [row[f] for f in fields] for row in rows(first)
    ]
