from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from palaver.probes.triplet_files import read_triplets

pytest.importorskip("spacy", reason="the extra `probes` is not installed")


def rows(out: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in out.splitlines()]


def test_transform_a_file(palaver: Any, tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text(
        "A man is slicing a potato\n\nThe cat sleeps.\nKatzen und Hunde sind nicht hier.\n"
    )
    ran = palaver("probe", "transform", "passive", "s.txt")
    assert ran.code == 0
    assert rows(ran.out) == [
        {
            "source": "A man is slicing a potato",
            "rule": "passive",
            "output": "A potato is being sliced by a man",
        },
        {"source": "", "rule": "passive", "reason": "empty"},
        {"source": "The cat sleeps.", "rule": "passive", "reason": "intransitive"},
        {"source": "Katzen und Hunde sind nicht hier.", "rule": "passive", "reason": "not-english"},
    ]
    assert "passive: 1 of 4 transformed" in ran.err
    assert "1  intransitive: the verb has no object" in ran.err


def test_transform_standard_input_by_every_rule(palaver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO("A man is jumping over a wall 😀\n".encode()))
    )
    ran = palaver("probe", "transform", "all")
    found = {row["rule"]: row.get("output") for row in rows(ran.out)}
    assert len(found) == 7
    assert found["synonym"] == "A man is leaping over a wall 😀"
    assert found["quantifier-negation"] == "There is no man jumping over a wall 😀"


def test_transform_nothing(palaver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    ran = palaver("probe", "transform", "clause")
    assert (ran.code, ran.out) == (0, "")
    assert "no lines to read" in ran.err


def test_unknown_rule_and_missing_file(palaver: Any) -> None:
    ran = palaver("probe", "transform", "negation", "x.txt")
    assert ran.code == 1
    assert "there is no rule 'negation'" in ran.err
    ran = palaver("probe", "transform", "passive", "missing.txt")
    assert ran.code == 1
    assert "missing.txt" in ran.err


def test_triplets_from_a_text(palaver: Any, tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("A man is jumping over a wall\nThe doctor helped the patient.\n")
    ran = palaver("probe", "triplets", "--text", "s.txt", "--out", "t.parquet", "--engine", "local")
    assert ran.code == 0, ran.err
    assert "2  Negation Detection of 2 candidates  (asked for 674)" in ran.err
    assert (
        "0  Fixed Point Reorder of 0 candidates  (it is made of paraphrases: --paraphrases FILE)" in ran.err
    )
    assert "reorder did not apply to 1 of 2 sentences: not-somebody 1" in ran.err

    import polars as pl

    frame = pl.read_parquet(tmp_path / "t.parquet")
    assert set(frame["set"]) == {"negation-detection", "negation-variants", "argument-sensitivity"}
    counted = frame.filter(pl.col("variant") == "")
    assert counted["source"].to_list().count("The doctor helped the patient.") == 2
    assert "4 triplets and 4 variants of them in t.parquet" in ran.err


def test_fixed_point_reorder_from_paraphrases(palaver: Any, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(
        "mine,yours\n"
        "A man is sitting on a bench near a tree.,The man sits on a bench near a tree\n"
        "A boy is sleeping on a couch.,On the old sofa lies somebody who is asleep\n"
    )
    words = ("probe", "triplets", "--out", "t.csv", "--engine", "local", "--paraphrases")
    ran = palaver(*words, "p.csv")
    assert ran.code == 0, ran.err
    assert "1  Fixed Point Reorder of 1 candidates" in ran.err
    assert "left out 1 pairs: paraphrases built too differently" in ran.err
    (triplet,) = [t for t in read_triplets(tmp_path / "t.csv") if "fixed" in t.set and not t.variant]
    assert (triplet.original, triplet.plus) == (
        "a man is sitting on a bench near a tree.",
        "the man sits on a bench near a tree.",
    )
    (tmp_path / "three.csv").write_text("id,one,two\n1,A man is in a car.,A man sits in a car.\n")
    ran = palaver(*words, "three.csv", "--force")
    assert ran.code == 1
    assert "which two of its 3 columns" in ran.err
    named = ("--column", "sentence1=one", "--column", "sentence2=two")
    assert palaver(*words, "three.csv", "--force", *named).code == 0
    (tmp_path / "bare.csv").write_text(
        "A man is in a car.,A man sits in a car.\nA dog runs.,A dog is running.\n"
    )
    assert "names of the columns" in palaver(*words, "bare.csv", "--force").err
    (tmp_path / "gap.csv").write_text("a,b\nA man is in a car.,\n")
    assert "row 2: no b" in palaver(*words, "gap.csv", "--force").err


def test_triplets_as_items_of_a_study(palaver: Any, tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("A man is jumping over a wall\nThe doctor helped the patient.\n")
    ran = palaver("probe", "triplets", "--text", "s.txt", "--out", "t.jsonl", "--study-items", "items.jsonl")
    assert ran.code == 0, ran.err
    assert palaver("study", "new", "--preset", "triplet-check", "--out", "study.toml").code == 0
    text = (tmp_path / "study.toml").read_text(encoding="utf-8")
    own = text[: text.index("[[questions]]")] + 'items_from = "items.jsonl"\n\n'
    own += text[text.index("[[questions]]") : text.index("[[items]]")]
    (tmp_path / "study.toml").write_text(own, encoding="utf-8")
    checked = palaver("study", "check", "study.toml")
    assert checked.code == 0, checked.err
    assert "4 items" in checked.out
    items = (tmp_path / "items.jsonl").read_text(encoding="utf-8")
    assert '"context": "A man is jumping over a wall"' in items


def test_triplets_without_any(palaver: Any, tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("Hello there, my dear old friend!\nHi.\n")
    ran = palaver("probe", "triplets", "--text", "s.txt", "--out", "t.jsonl", "--engine", "local")
    assert ran.code == 1
    assert "no triplets" in ran.err
    assert "not-negation did not apply to 1 of 1 sentences: no-verb 1" in ran.err
    assert "left out 1 sentences: not 4 to 30 words" in ran.err
    assert not (tmp_path / "t.jsonl").exists()


def test_triplets_need_sentences(palaver: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PALAVER_DATA", raising=False)
    ran = palaver("probe", "triplets", "--out", "t.jsonl")
    assert ran.code == 2
    assert "--data" in ran.err
    assert palaver("probe", "triplets", "--data", "nowhere", "--out", "t.jsonl").code == 1
    assert palaver("probe", "triplets", "--data", ".", "--out", "t.docx").code == 1
