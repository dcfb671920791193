"""Replies on other engines: the same bytes, one error row for a bad row, nothing lost on the way."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import UserError
from palaver.generation import bulk
from palaver.generation.bulk import generate_file
from palaver.generation.contexts import Contexts
from palaver.generation.spool import Spool
from palaver.schema import Reply, Request

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
        assert not out.with_name(f"{out.name}.ahead").exists()
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


def test_what_was_done_ahead_of_the_first_row_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def backwards(function: Any, batches: Iterable[Any], **_: Any) -> Iterator[Any]:
        """The last chunk is done first; then the run is killed."""
        for number, batch in reversed(list(enumerate(batches))):
            if number == 0:
                raise KeyboardInterrupt
            yield number, [(batch, function(batch))]

    asked: list[str] = []

    class Noting(Shouter):
        def reply(self, requests: Sequence[Request]) -> list[Reply]:
            asked.extend(request.dialogue.turns[-1].text for request in requests)
            return super().reply(requests)

    contexts = write_lines(tmp_path, "a", "b", "c", "d", "e", "f")
    out = tmp_path / "out.jsonl"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(bulk, "map_rows", backwards)
        generate_file([Noting()], contexts, out, batch_size=2)
    assert (asked, out.read_bytes()) == (["e", "f", "c", "d"], b"")
    generate_file([Noting()], contexts, out, batch_size=2)
    assert asked == ["e", "f", "c", "d", "a", "b"], "none is asked again"
    assert [json.loads(line)["response"] for line in out.read_text().splitlines()] == list("ABCDEF")


ROWS = st.binary(max_size=40)


@given(blocks=st.lists(ROWS, max_size=6), data=st.data())
@settings(max_examples=50)
def test_a_spool_that_was_cut_anywhere_gives_whole_chunks(
    tmp_path_factory: pytest.TempPathFactory, blocks: list[bytes], data: st.DataObject
) -> None:
    out = tmp_path_factory.mktemp("spool") / "out.jsonl"
    spool = Spool(out, "run", fresh=True)
    for number, rows in enumerate(blocks):
        spool.put(str(number), rows, in_memory=False)
    if not blocks:
        assert not spool.path.exists()
        return
    whole = spool.path.read_bytes()
    spool.path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    again = Spool(out, "run")
    kept = [str(number) in again for number in range(len(blocks))]
    assert kept == sorted(kept, reverse=True), "the first ones, up to the cut"
    for number, is_kept in enumerate(kept):
        if is_kept:
            assert again.take(str(number)) == blocks[number]
    again.put("new", b"rows", in_memory=False)
    assert Spool(out, "run").take("new") == b"rows"
    assert "new" not in Spool(out, "another run")
    again.remove()
    assert not again.path.exists()
