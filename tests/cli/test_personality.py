from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from palaver.corpora.personalities import TRAITS

TEXT = "I am so happy today! We went to the beach with my friends. What do you think?\n"


def test_score_a_text(palaver: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    ran = palaver("personality", "score", "a.txt")
    assert ran.code == 0
    assert all(trait in ran.out for trait in TRAITS)
    assert ran.out.count("●") == 6
    assert "only 17 words" in ran.out
    assert "not a psychological test" in ran.out


def test_score_standard_input_as_json(palaver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    ran = palaver("personality", "score", "-", "--json")
    row = json.loads(ran.out)["scores"][0]
    assert row["name"] == "standard input"
    assert row["words"] == 17
    assert all(1 <= row[trait] <= 7 for trait in TRAITS)


def test_score_each_line(palaver: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("I love you!\n\n ... \nI hate you [bold]!\n")
    ran = palaver("personality", "score", "a.txt", "--per", "line")
    assert "1: I love you!" in ran.out
    assert "4: I hate you [bold]!" in ran.out
    assert "left out 2 lines without words" in ran.out


def test_score_each_speaker(palaver: Any, tmp_path: Path) -> None:
    turns = [
        {"speaker": s, "text": t}
        for s, t in [("Ann", TEXT), ("Bob", "No. Never."), ("Ann", "Well, I hate it.")]
    ]
    (tmp_path / "d.jsonl").write_text(json.dumps({"id": "d", "turns": turns}) + "\n")
    ran = palaver("personality", "score", "d.jsonl", "--per", "speaker", "--min-words", "10", "--json")
    content = json.loads(ran.out)
    assert [(row["name"], row["words"]) for row in content["scores"]] == [("Ann", 21)]
    assert content["notes"] == ["left out 1 speaker with fewer than 10 words (--min-words)"]
    ran = palaver("personality", "score", "d.jsonl", "--per", "speaker")
    assert ran.code == 1
    assert "nobody in d.jsonl says 100 words (Ann says most, 21 words)" in ran.err
    assert palaver("personality", "score", "-", "--per", "speaker").code == 2


@pytest.mark.parametrize("content", ["", "  \n", "?!\n"])
def test_nothing_to_score(palaver: Any, tmp_path: Path, content: str) -> None:
    (tmp_path / "a.txt").write_text(content)
    for per in ("text", "line"):
        ran = palaver("personality", "score", "a.txt", "--per", per)
        assert ran.code == 1
        assert "a.txt" in ran.err


def test_a_recogniser_of_ones_own(palaver: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "plugged.py").write_text(
        "def good(texts):\n    return [[3] * 5 for _ in texts]\n\n"
        "def bad(texts):\n    return [{'openness': 3}] * len(texts)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    ran = palaver("personality", "score", "a.txt", "--recogniser", "plugged:good")
    assert ran.out.count("3.00") == 5
    ran = palaver("personality", "score", "a.txt", "--recogniser", "plugged:bad")
    assert ran.code == 1
    assert "gives no conscientiousness and no extraversion" in ran.err


def test_lexicons(palaver: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "good.dic").write_text("%\n1\tI\n2\tPosemo\n%\ni\t1\nhappy\t2\nkind of\t2\n")
    ran = palaver("personality", "score", "a.txt", "--lexicon", "good.dic")
    assert ran.code == 0
    assert "mairesse-2007" in ran.out
    assert "1 entries of several words, left out" in ran.out
    (tmp_path / "bad.dic").write_text("%\n1\tI\n%\ni\t1\nhappy\t2\n")
    ran = palaver("personality", "score", "a.txt", "--lexicon", "bad.dic")
    assert ran.code == 1
    assert "line 5: 'happy' has categories 2, which the head does not name" in ran.err


def test_fit_and_use(palaver: Any, tmp_path: Path) -> None:
    lines = ["text,O,C,E,A,N"]
    for i in range(60):
        words = " ".join(["happy"] * (i % 7) + ["school"] * (i % 5) + ["banana"] * 20)
        lines.append(f"{words}.,{1 + i % 7},{1 + i % 5},{2 + i % 3},{1 + i % 6},{7 - i % 7}")
    (tmp_path / "essays.csv").write_text("\n".join(lines) + "\n")
    ran = palaver("personality", "fit", "essays.csv", "--out", "mine.json", "--folds", "5")
    assert ran.code == 0
    assert "60 texts, 5 folds" in ran.out
    assert json.loads((tmp_path / "mine.json").read_text())["name"] == "mine"
    assert palaver("personality", "fit", "essays.csv", "--out", "mine.json").code == 1
    ran = palaver(
        "personality", "fit", "essays.csv", "--out", "mine.json", "--folds", "5", "--force", "--json"
    )
    assert json.loads(ran.out)["correlations"].keys() == {*TRAITS}
    (tmp_path / "a.txt").write_text("happy " * 6 + "banana " * 20)
    ran = palaver("personality", "score", "a.txt", "--recogniser", "mine.json", "--json")
    row = json.loads(ran.out)["scores"][0]
    assert row["openness"] > 4.5 > 3 > row["neuroticism"]


def test_fit_needs_traits(palaver: Any, tmp_path: Path) -> None:
    (tmp_path / "essays.csv").write_text("text,O\nhello,3\n")
    ran = palaver("personality", "fit", "essays.csv", "--out", "x.json")
    assert ran.code == 1
    assert "no column conscientiousness" in ran.err
    assert not (tmp_path / "x.json").exists()


def test_dialogues_are_scored_by_what_is_said(palaver: Any, tmp_path: Path) -> None:
    turns = [{"speaker": "Ann", "text": TEXT}, {"speaker": "Bob", "text": ""}]
    (tmp_path / "d.jsonl").write_text(json.dumps({"id": "d", "turns": turns}) + "\n")
    (tmp_path / "a.txt").write_text(TEXT)
    rows = [
        json.loads(palaver("personality", "score", file, "--json").out)["scores"][0]
        for file in ("d.jsonl", "a.txt")
    ]
    assert [{**row, "name": ""} for row in rows] == [{**rows[1], "name": ""}] * 2
    ran = palaver("personality", "score", "d.jsonl", "--per", "line", "--json")
    content = json.loads(ran.out)
    assert [row["name"] for row in content["scores"]] == [f"d, turn 1: {TEXT.strip()}"]
    assert content["notes"] == ["left out 1 line without words"]


def test_a_picture_has_no_personality(palaver: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
    (tmp_path / "photo.png").write_bytes(picture)
    assert "photo.png is a picture (PNG)" in palaver("personality", "score", "photo.png").err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(picture)))
    ran = palaver("personality", "score", "-")
    assert (ran.code, "standard input is a picture" in ran.err) == (1, True)
