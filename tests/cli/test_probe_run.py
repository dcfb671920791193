"""`palaver probe ENCODER …`: the tables, the page, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from palaver.cli.main import app
from palaver.errors import UsageError, UserError
from palaver.probes.probe import SAMPLE

MODULE = """
import zlib
def bag(texts):
    rows = [[0.0] * 64 for _ in texts]
    for row, text in zip(rows, texts):
        for word in text.lower().rstrip(".").split():
            row[zlib.crc32(word.encode()) % 64] += 1
    return rows
def first(texts):
    return [[float(ord(t[0])), 1.0] for t in texts]
def wrong(texts):
    return [[float("nan")]] * len(texts)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "probe_run_encoders.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PALAVER_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "100")


def run(*words: str) -> str:
    result = CliRunner().invoke(app, ["probe", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_the_verb_may_be_left_out(tmp_path: Path) -> None:
    one, two = "probe_run_encoders:bag", "probe_run_encoders:first"
    said = run(one, two, "--out", "out", "--failures", "1")
    assert "Argument" in said
    assert "a small sample written for Palaver" in said
    assert run("run", one, two, "--failures", "1").splitlines()[:12] == said.splitlines()[:12]
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    printed = json.loads(run("run", one, two, "--json"))
    assert [s["share"] for s in printed["scores"]] == [s["share"] for s in found["scores"]]
    rows = {(s["encoder"], s["set"]): s["share"]["accuracy"] for s in found["scores"]}
    assert rows[one, "fixed-point-reorder"] == rows[one, "argument-sensitivity"] == 0
    page = (tmp_path / "out" / "report.html").read_text()
    for part in (
        "Leaderboard",
        "Clause Relatedness",
        "probe_run_encoders:bag",
        "<svg",
        "McNemar",
        "worst failures",
    ):
        assert part in page
    assert "http-equiv" in page
    assert "<script>" in page


def test_vectors_are_kept(tmp_path: Path) -> None:
    run("probe_run_encoders:bag")
    assert len(list((tmp_path / "cache" / "palaver" / "vectors").glob("*.vectors"))) == 1
    assert "for 0 new sentences" in run("probe_run_encoders:bag")
    assert "for 0 new sentences" not in run("probe_run_encoders:bag", "--no-cache")


def test_bad_input_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not finite"):
        run("probe_run_encoders:wrong")
    with pytest.raises(UserError, match="did you mean 'glove'"):
        run("glov")
    with pytest.raises(UserError, match="no file"):
        run("probe_run_encoders:bag", "--triplets", "none.jsonl")
    with pytest.raises(UserError, match="none of the corpora"):
        run("probe_run_encoders:bag", "--data", str(tmp_path))


def test_misspelled_verbs_are_no_encoders() -> None:
    with pytest.raises(UsageError, match="did you mean 'triplets'"):
        run("tripets")


def test_own_triplets(tmp_path: Path) -> None:
    lines = [line for line in SAMPLE.read_text().splitlines() if "fixed-point" in line]
    (tmp_path / "mine.jsonl").write_text("\n".join(lines))
    said = run("probe_run_encoders:bag", "--triplets", "mine.jsonl")
    assert "Fixed Point Reorder" in said
    assert "Negation Detection" not in said
