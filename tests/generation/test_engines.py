"""Replies on other engines: the same bytes, one error row for a bad row, nothing lost on the way."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import UserError
from palaver.generation.bulk import generate_file
from palaver.generation.contexts import Contexts
from palaver.generation.spool import Spool

sys.path.insert(0, str(Path(__file__).parent.parent / "engine"))
from engine_work import Shouter  # worker processes find it on the same path


def write_lines(folder: Path, *texts: str) -> Contexts:
    path = folder / "lines.txt"
    path.write_text("".join(f"{text}\n" for text in texts))
    return Contexts(path)


def test_all_engines_and_batches_give_the_same_bytes(tmp_path: Path) -> None:
    texts = [f"line {n}" for n in range(40)]
    texts[11] = "bad"
    contexts = write_lines(tmp_path, *texts)
    files = []
    for number, (engine, size) in enumerate(
        [("local", 0), ("local", 1), ("local", 40), ("processes:2", 0), ("processes:3", 3)]
    ):
        out = tmp_path / f"{number}.jsonl"
        done = generate_file([Shouter()], contexts, out, engine=engine, batch_size=size)
        assert done.failed == {"shouter": 1}
        assert not Spool(out, is_new=False).path.exists()
        files.append(out.read_bytes())
    assert len(set(files)) == 1
    rows = [json.loads(line) for line in files[0].splitlines()]
    assert len(rows) == 40
    assert rows[11]["response"] is None
    assert rows[11]["skipped"] == "error: ValueError: cannot say bad"
    assert [row["response"] for row in rows if row is not rows[11]] == [
        text.upper() for text in texts if text != "bad"
    ]


def test_a_row_that_ends_its_worker_has_a_row_that_says_so(tmp_path: Path) -> None:
    contexts = write_lines(tmp_path, "a", "b", "fatal", "d", "e", "f")
    out = tmp_path / "out.jsonl"
    done = generate_file([Shouter()], contexts, out, engine="processes:2", batch_size=3)
    assert done.failed == {"shouter": 1}
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["response"] for row in rows] == ["A", "B", None, "D", "E", "F"]
    assert "the worker that had it ended" in rows[2]["skipped"]


def test_a_system_that_fails_on_all_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    for n in (1, 3, 30):
        contexts = write_lines(tmp_path, *["bad"] * n)
        with pytest.raises(UserError, match="cannot say bad"):
            generate_file([Shouter()], contexts, out, batch_size=2)
        assert out.read_bytes() == b""
        out.unlink()


ROWS = st.binary(max_size=40)


@given(blocks=st.lists(ROWS, max_size=6), data=st.data())
@settings(max_examples=50)
def test_a_spool_that_was_cut_anywhere_gives_whole_chunks(
    tmp_path_factory: pytest.TempPathFactory, blocks: list[bytes], data: st.DataObject
) -> None:
    out = tmp_path_factory.mktemp("spool") / "out.jsonl"
    spool = Spool(out, is_new=True)
    for number, rows in enumerate(blocks):
        spool.put(str(number), rows, in_memory=False)
    if not blocks:
        assert not spool.path.exists()
        return
    whole = spool.path.read_bytes()
    spool.path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    again = Spool(out, is_new=False)
    kept = [str(number) in again for number in range(len(blocks))]
    assert kept == sorted(kept, reverse=True), "the first ones, up to the cut"
    for number, is_kept in enumerate(kept):
        if is_kept:
            assert again.take(str(number)) == blocks[number]
    again.put("new", b"rows", in_memory=False)
    assert Spool(out, is_new=False).take("new") == b"rows"
    again.remove()
    assert not again.path.exists()
