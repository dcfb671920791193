"""Metrics of files: all systems, all pairs, and what is wrong with a file."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import sacrebleu
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from palaver.errors import DataError, UserError
from palaver.metrics import bleu, blocks, file_scores, pooling
from palaver.metrics.examples import Examples
from palaver.metrics.file_scores import score_files
from palaver.statistics import bootstrap

WORDS = ["cats", "dogs", "like", "the", "sun", "and", "rain", "fall", "on", "us"]


def sentences(seed: int, n: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, 8)) for _ in range(n)]


def noisy(texts: list[str], share: float, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(w if rng.random() > share else rng.choice(WORDS) for w in t.split()) for t in texts]


REFERENCES = sentences(0, 60)
SAID = {
    "good": noisy(REFERENCES, 0.2, 1),
    "fair": noisy(REFERENCES, 0.5, 2),
    "same": noisy(REFERENCES, 0.5, 3),
}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def responses(tmp_path: Path) -> Path:
    rows = [
        {"id": str(i), "system": system, "context": f"c{i}", "response": said[i], "reference": reference}
        for i, reference in enumerate(REFERENCES)
        for system, said in SAID.items()
    ]
    return write(tmp_path / "responses.jsonl", rows)


def test_every_system_and_every_pair(responses: Path) -> None:
    result = score_files(responses, ["bleu", "unigram_f1", "distinct_1"], n_replicates=300)
    figures = {(row.name, row.system): row for row in result.scores}
    assert list(figures)[:3] == [("bleu", name) for name in SAID]
    for name, said in SAID.items():
        bleu = figures["bleu", name]
        assert bleu.value == pytest.approx(sacrebleu.corpus_bleu(said, [REFERENCES]).score, abs=1e-9)
        assert bleu.low < bleu.value < bleu.high
    pairs = {(d.metric, d.system, d.other): d for d in result.differences}
    assert set(pairs) == {
        (metric, *pair)
        for metric in ("bleu", "unigram_f1")
        for pair in (("good", "fair"), ("good", "same"), ("fair", "same"))
    }
    clear, unclear = pairs["bleu", "good", "fair"], pairs["bleu", "fair", "same"]
    assert clear.difference == figures["bleu", "good"].value - figures["bleu", "fair"].value
    assert 0 < clear.low < clear.difference < clear.high
    assert clear.p == pytest.approx(1 / 301)
    assert clear.p_holm == pytest.approx(3 / 301)  # three pairs
    assert unclear.p > 0.05
    assert {d.n for d in pairs.values()} == {60}


def test_the_paired_bootstrap_is_that_of_sacrebleu(responses: Path) -> None:
    systems = [("fair", SAID["fair"]), ("same", SAID["same"])]
    _, scores = PairedTest(systems, {"BLEU": BLEU()}, [REFERENCES], test_type="bs", n_samples=2000)()
    result = score_files(responses, ["bleu"], n_replicates=4000)
    theirs = scores["BLEU"][1]
    ours = next(row for row in result.scores if row.system == "same")
    assert ours.value == pytest.approx(theirs.score, abs=1e-9)
    assert (ours.high - ours.low) / 2 == pytest.approx(theirs.ci, rel=0.1)


def test_three_responses_prove_nothing(tmp_path: Path) -> None:
    """Three coins fall on one side in a quarter of all throws; so do those among many that do not differ."""
    rows = [
        {"id": str(i), "system": system, "response": said, "reference": "the cat sat"}
        for i in range(40)
        for system, said in (("a", "the cat sat"), ("b", "no" if i < 3 else "the cat sat"))
    ]
    for n in (3, 40):
        path = write(tmp_path / f"{n}.jsonl", rows[: 2 * n])
        [pair] = score_files([path], metrics=["unigram_f1"]).differences
        assert pair.n == n
        assert pair.p >= 0.25


def test_a_pair_is_compared_on_what_both_answered(tmp_path: Path) -> None:
    rows = [
        {"id": str(i), "system": system, "response": said, "reference": "cats like the sun"}
        for system, said, n in (("a", "cats like rain", 9), ("b", "dogs like the sun", 6), ("c", "us", 0))
        for i in (range(n) if n else [100])
    ]
    rows[0]["response"] = "cats like the sun"
    result = score_files(write(tmp_path / "r.jsonl", rows), ["unigram_f1"], n_replicates=200)
    [pair] = [d for d in result.differences if d.system == "a"]
    assert (pair.other, pair.n) == ("b", 6)  # c shares nothing with anybody
    means = [row.value for row in score_files(tmp_path / "r.jsonl", ["unigram_f1"]).scores]
    assert pair.difference != pytest.approx(means[0] - means[1])
    assert math.isnan(result.scores[2].low)
    assert "two responses" in result.scores[2].reason


def test_empty_responses_are_rows_and_missing_ones_are_counted(tmp_path: Path) -> None:
    rows = [
        {"id": "1", "system": "a", "response": "", "reference": "cats"},
        {"id": "2", "system": "a", "response": "cats", "reference": "cats"},
        {"id": "3", "system": "a", "response": None, "reference": "cats"},
        {"id": "4", "system": "a", "response": "word " * 3000, "reference": "cats"},
    ]
    result = score_files(write(tmp_path / "r.jsonl", rows))
    assert dict(result.left_out) == {"responses that the system did not give": 1}
    empty = next(row for row in result.scores if row.name == "empty")
    assert (empty.value, empty.n) == (pytest.approx(1 / 3), 3)
    frame = pl.concat(result.rating_frames())
    marks = frame.filter(frame["criterion"] == "empty")
    assert dict(zip(marks["item"], marks["value"], strict=True)) == {"1": "1", "2": "0", "4": "0"}
    of_bleu = frame.filter(frame["criterion"] == "bleu")
    assert dict(zip(of_bleu["item"], of_bleu["value"], strict=True))["2"] in ("100", "100.00000000000004")
    assert set(frame["kind"]) == {"metric"}


def test_reading_in_parts_changes_nothing(responses: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = score_files(responses, n_replicates=50)
    monkeypatch.setattr(file_scores, "_BUFFER", 7)
    parts = score_files(responses, n_replicates=50)
    assert [row.value for row in parts.scores] == pytest.approx([row.value for row in whole.scores])
    assert [row.low for row in parts.scores] == pytest.approx([row.low for row in whole.scores], nan_ok=True)


def test_what_does_not_fit_into_memory_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {
            "id": str(i),
            "system": system,
            "response": text,
            "reference": REFERENCES[i],
            "knowledge": REFERENCES[i],
        }
        for system, said in {"a": SAID["good"], "b": SAID["fair"][:50], "c": SAID["same"]}.items()
        for i, text in enumerate(said)
    ]
    file = write(tmp_path / "r.jsonl", rows)
    monkeypatch.setattr(bootstrap, "MANY", 32)
    whole = score_files(file, n_replicates=40)
    for module, name, most in ((file_scores, "_BUFFER", 7), (blocks, "HELD", 1), (blocks, "ROWS", 8)):
        monkeypatch.setattr(module, name, most)
    monkeypatch.setattr(pooling, "AT_ONCE", 50)
    parts = score_files(file, n_replicates=40)
    assert len(parts.differences) == 3 * sum(metric.has_scores for metric in parts.metrics)
    for one, other in ((whole.scores, parts.scores), (whole.differences, parts.differences)):
        for row, same in zip(one, other, strict=True):
            for name in ("value", "difference", "low", "high", "p"):
                if hasattr(row, name):
                    assert getattr(same, name) == pytest.approx(getattr(row, name), nan_ok=True), row
    frames = [pl.concat(result.rating_frames()) for result in (whole, parts)]
    keys = ["system", "criterion", "item"]
    assert frames[0].drop("value").equals(frames[1].drop("value"))
    numbers = [frame.sort(keys)["value"].cast(pl.Float64).to_numpy() for frame in frames]
    np.testing.assert_allclose(*numbers)


def test_no_more_is_held_than_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the length of a file: rows of the table, n-grams that are sorted, responses with tokens."""
    held: dict[str, int] = {}

    def watch(module: Any, name: str, size: Callable[..., int]) -> None:
        real = getattr(module, name)

        def watched(*given: Any, **named: Any) -> Any:
            result = real(*given, **named)
            held[name] = max(held.get(name, 0), size(result, *given))
            return result

        monkeypatch.setattr(module, name, watched)

    monkeypatch.setattr(file_scores, "_BUFFER", 10)
    monkeypatch.setattr(pooling, "AT_ONCE", 100)
    monkeypatch.setattr(bootstrap, "MANY", 64)
    monkeypatch.setattr(bootstrap, "_PART", 16)
    watch(bleu, "_add_matches_with_others", lambda _, matches, grams, owners: len(grams))
    watch(blocks.RowTable, "__getitem__", lambda rows, *_: len(rows))
    watch(Examples, "matches", lambda matches, *_: len(matches))
    (tmp_path / "r.txt").write_text("\n".join(sentences(3, 1000)) + "\n")
    (tmp_path / "t.txt").write_text("\n".join(sentences(4, 1000)) + "\n")
    monkeypatch.setattr(blocks, "ROWS", 20)
    score_files(tmp_path / "r.txt", references=[tmp_path / "t.txt"], n_replicates=5)
    assert held["matches"] <= 10
    assert held["__getitem__"] <= 64
    assert held["_add_matches_with_others"] <= 1000  # 100 or so, and more where one word is frequent


def test_lines_of_text_and_their_references(tmp_path: Path) -> None:
    for name, texts in {**SAID, "true": REFERENCES, "other": REFERENCES[::-1]}.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(texts) + "\n")
    files = [tmp_path / "good.txt", tmp_path / "fair.txt"]
    both = [tmp_path / "true.txt", tmp_path / "other.txt"]
    result = score_files(files, ["bleu"], references=both, n_replicates=20)
    expected = sacrebleu.corpus_bleu(SAID["good"], [REFERENCES, REFERENCES[::-1]]).score
    assert result.scores[0].value == pytest.approx(expected, abs=1e-9)
    assert [row.system for row in result.scores] == ["good", "fair"]
    (tmp_path / "true.txt").write_text("one line\n")
    with pytest.raises(DataError, match="line by line") as caught:
        score_files(files, references=both)
    said = "\n".join(caught.value.problems)
    assert "good.txt: 60 lines" in said
    assert "true.txt: 1 line" in said
    (tmp_path / "fair.txt").write_text("one line\n")
    with pytest.raises(DataError, match="line by line") as caught:  # without references, too
        score_files(files, ["words"])
    assert caught.value.problems == (f"{files[0]}: 60 lines", f"{files[1]}: 1 line")


def test_what_is_wrong_is_said(responses: Path, tmp_path: Path) -> None:
    row = {"id": "1", "system": "a", "response": "x"}
    with pytest.raises(UserError, match="already in line 1"):
        score_files(write(tmp_path / "twice.jsonl", [row, row]))
    with pytest.raises(UserError, match="something is missing") as caught:
        score_files(write(tmp_path / "bare.jsonl", [row]), ["bleu", "copy_rate"])
    assert caught.value.problems == ("bleu needs references", "copy_rate needs knowledge")
    assert "in a column: knowledge, reference" in caught.value.hint
    assert "--reference FILE" in caught.value.hint
    with pytest.raises(UserError, match="did you mean 'bleu'"):
        score_files(responses, ["blue"])
    with pytest.raises(UserError, match="both hold responses of 'a'") as caught:
        score_files([tmp_path / "bare.jsonl", write(tmp_path / "more.jsonl", [{**row, "id": "2"}])])
    assert "join both into one file" in caught.value.hint
    with pytest.raises(UserError, match="named twice: .*responses.jsonl"):
        score_files([responses, responses])
    with pytest.raises(UserError, match="is no plain text"):
        score_files(responses, references=[responses])
    with pytest.raises(UserError, match="there is no response to score"):
        score_files(write(tmp_path / "none.jsonl", [{**row, "response": None}]))


def test_clusters_of_few_responses_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "said.jsonl"
    rows = [{"id": str(n), "system": "a", "response": f"it is {n}", "reference": f"{n}"} for n in range(5)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = score_files([path], ["mauve"], n_replicates=0)
    assert result.notes == ("mauve of fewer than 1,000 responses (a) says little",)


def test_a_function_of_ones_own_is_a_metric_of_a_file(
    responses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "metrics_of_a_file.py").write_text("def spaces(response):\n    return response.count(' ')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    result = score_files(responses, ["metrics_of_a_file:spaces"], n_replicates=20)
    assert {row.value for row in result.scores} == {7.0}


def test_ids_are_a_list_of_texts() -> None:
    texts = ["c1", "", "ฉัน", "\ud800", "c1"]
    ids, same = blocks.Ids(), blocks.Ids()
    for text in texts:
        ids.append(text)
        same.append(text)
    assert list(ids) == texts
    assert ids == same
    assert ids[-1] == "c1"
    assert ids[-5] == "c1"
    assert ids[1:3] == ["", "ฉัน"]
    same.append("c1")
    assert ids != same
    assert ids != range(5)
