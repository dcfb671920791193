"""Replies for whole files: in order, streamed, and the same file however often the run was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import DataError, UserError
from palaver.generation.bulk import generate, generate_file
from palaver.generation.contexts import Condition, Contexts
from palaver.readers import read_responses, write_dialogues
from palaver.schema import Dialogue, Reply, Request

Talk = Callable[..., Dialogue]
Make = Callable[..., Any]
TWO = {"echo": [Condition("Joey"), Condition("Ross")]}


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"line {i}\n" for i in range(10)))
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_generate_streams_in_order(echo: Make, talk: Talk) -> None:
    system = echo()
    taken = []

    def contexts() -> Any:
        for i in range(1_000_000):
            taken.append(i)
            yield f"t{i}" if i % 2 else talk(f"t{i}")

    told: list[int] = []

    def count(what: str, done: int, total: int) -> None:
        told.append(done)

    responses = generate(system, contexts(), batch_size=4, progress=count)
    begin = list(islice(responses, 6))
    assert [(r.response or "").split()[2] for r in begin] == [f"t{i}" for i in range(6)]
    assert len(taken) == 8
    assert told == [4, 8]
    assert list(islice(responses, 6)) == begin  # kept, not made again
    assert repr(responses) == f"ResponseStream(6 responses of {system.name} so far)"
    assert list(generate(system, [])) == []


def test_a_function_replies() -> None:
    def shout(text: str) -> str:
        return text.upper()

    responses = generate(shout, ["hello", "bye"])
    assert [(r.system, r.response) for r in responses] == [("shout", "HELLO"), ("shout", "BYE")]
    assert repr(responses) == "ResponseStream(2 responses of shout)"
    assert responses.to_polars()["context"].to_list() == ["user: hello", "user: bye"]
    with pytest.raises(UserError, match="contexts: expected a list, found the text 'hello'"):
        generate(shout, "hello")
    with pytest.raises(UserError, match="is no function and has no method reply"):
        generate(3, ["hello"])  # type: ignore[arg-type]


def test_a_system_that_miscounts(talk: Talk) -> None:
    class Odd:
        name = "odd"

        def reply(self, requests: Any) -> list[Reply]:
            return [Reply("one")]

    with pytest.raises(DataError, match="1 replies to 2 requests"):
        list(generate(Odd(), ["a", "b"]))


def test_rows(tmp_path: Path, echo: Make, talk: Talk) -> None:
    path = tmp_path / "d.jsonl"
    write_dialogues([talk("hello", "hi", "bye", id="x")], path)
    out = tmp_path / "deep" / "out.jsonl"
    done = generate_file([echo()], Contexts(path, every_turn=True), out, conditions=TWO)
    found = rows(out)
    said = [{"speaker": "a", "text": "hello"}, {"speaker": "b", "text": "hi"}]
    assert [(r["id"], r["speaker"], r["context"], r["reference"]) for r in found] == [
        ("x#1", "Joey", said[:1], "hi"),
        ("x#1", "Ross", said[:1], "hi"),
        ("x#2", "Joey", said, "bye"),
        ("x#2", "Ross", said, "bye"),
    ]
    responses = list(read_responses(out))
    assert [r.model_dump(mode="json", exclude={"labels", "knowledge"}) for r in responses] == found
    short = tmp_path / "short.jsonl"
    generate_file([echo()], Contexts(path, every_turn=True), short, conditions=TWO, context="last")
    assert [r["context"] for r in rows(short)] == ["hello", "hello", "hi", "hi"]
    assert [r.context[-1].text for r in read_responses(short)] == ["hello", "hello", "hi", "hi"]
    with pytest.raises(UserError, match="other settings"):
        generate_file([echo()], Contexts(path, every_turn=True), short, conditions=TWO)
    assert found[0]["response"].startswith("Joey heard hello")
    assert found[0]["logprob"] == -1.5
    assert list(found[0]) == [
        "id",
        "system",
        "speaker",
        "ocean",
        "context",
        "reference",
        "response",
        "logprob",
    ]
    assert (done.n_rows, done.n_new, done.n_contexts) == (4, 4, 2)


def test_several_systems_and_personalities(tmp_path: Path, lines: Path, echo: Make) -> None:
    out = tmp_path / "out.jsonl"
    conditions = {"b": [Condition("calm", (1.0,) * 5)]}
    told: list[tuple[str, int, int]] = []
    generate_file(
        [echo("a"), echo("b")],
        Contexts(lines, limit=3),
        out,
        conditions=conditions,
        progress=lambda what, done, total: told.append((what, done, total)),
    )
    found = rows(out)
    assert [r["system"] for r in found] == ["a"] * 3 + ["b"] * 3
    assert found[3]["speaker"] == "calm"
    assert found[3]["ocean"] == [1.0] * 5
    assert found[3]["response"].startswith("(1.0, 1.0")
    assert told[-1] == ("replies of b", 6, 6)


def test_chunks_are_contexts_times_conditions(tmp_path: Path, lines: Path, echo: Make) -> None:
    system = echo()
    generate_file([system], Contexts(lines), tmp_path / "out.jsonl", conditions=TWO, batch_size=7)
    assert system.handed == [6, 6, 6, 2]  # three contexts, two speakers


class Dies:
    """Stops after some chunks, as a killed process does."""

    def __init__(self, inner: Any, after: int) -> None:
        self.inner, self.left, self.name = inner, after, inner.name

    def reply(self, requests: Sequence[Request]) -> list[Reply]:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return self.inner.reply(requests)


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_stopped_and_cut_anywhere_it_ends_the_same(
    tmp_path_factory: Any, echo: Make, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    lines = folder / "lines.txt"
    lines.write_text("".join(f"line {i}\n" for i in range(data.draw(st.integers(1, 9)))))
    conditions = {"echo": [Condition(n) for n in ("Joey", "Ross")][: data.draw(st.integers(1, 2))]}

    def run(out: Path, system: Any) -> Any:
        size = data.draw(st.integers(1, 5))
        return generate_file(
            [system, echo("other")], Contexts(lines), out, conditions=conditions, batch_size=size
        )

    whole, out = folder / "whole.jsonl", folder / "out.jsonl"
    expected = run(whole, echo()).n_rows
    for _ in range(data.draw(st.integers(1, 3))):
        try:
            run(out, Dies(echo(), data.draw(st.integers(0, 3))))
        except KeyboardInterrupt:
            content = out.read_bytes()
            out.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    done = run(out, echo())
    assert out.read_bytes() == whole.read_bytes()
    assert done.n_rows == expected


def test_a_finished_file_is_left_alone(tmp_path: Path, lines: Path, echo: Make) -> None:
    out = tmp_path / "out.jsonl"
    generate_file([echo()], Contexts(lines), out)
    before = out.read_bytes()
    again = echo()
    done = generate_file([again], Contexts(lines), out)
    assert (done.n_new, done.n_rows, again.handed) == (0, 10, [])
    assert out.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"conditions": TWO}, "conditions.echo"),
        ({"limit": 3}, "contexts.limit: was nothing, is 3"),
        ({"name": "other"}, 'systems.other.name: was nothing, is "other"'),
        ({"seed": 1}, "systems.echo.seed: was 0, is 1"),
        ({"text": "others\n"}, "contexts: its content has changed"),
        ({"knowledge_signature": "x"}, "knowledge: was not read before"),
    ],
)
def test_other_settings_do_not_go_on(
    change: dict[str, Any], said: str, tmp_path: Path, lines: Path, echo: Make
) -> None:
    def run(fresh: bool = False, **c: Any) -> Any:
        lines.write_text(c.get("text", "line 1\nline 2\n"))
        system = echo(c.get("name", "echo"))
        system.settings = {"name": system.name, "seed": c.get("seed", 0)}
        return generate_file(
            [system],
            Contexts(lines, limit=c.get("limit")),
            tmp_path / "out.jsonl",
            conditions=c.get("conditions"),
            knowledge_signature=c.get("knowledge_signature"),
            fresh=fresh,
        )

    run()
    before = (tmp_path / "out.jsonl").read_bytes()
    with pytest.raises(UserError, match="begun with other settings") as caught:
        run(**change)
    assert any(said in problem for problem in caught.value.problems)
    assert (tmp_path / "out.jsonl").read_bytes() == before
    assert run(fresh=True, **change).n_new > 0


def test_files_that_are_not_ours(tmp_path: Path, lines: Path, echo: Make) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("precious\n")
    with pytest.raises(UserError, match="is there already"):
        generate_file([echo()], Contexts(lines), out)
    assert out.read_text() == "precious\n"
    generate_file([echo()], Contexts(lines), out, fresh=True)
    text = out.read_text()
    out.write_text(text.replace('"id": "10"', '"id": "11"'))
    with pytest.raises(DataError, match="does not hold the rows of this run: expected '10'"):
        generate_file([echo()], Contexts(lines), out)
    out.write_text(text + "more\n")
    with pytest.raises(DataError, match="more rows"):
        generate_file([echo()], Contexts(lines), out)
    assert out.read_text() == text + "more\n"
    for name in ("out.csv", "out.jsonl.gz"):
        with pytest.raises(UserError, match="end the name"):
            generate_file([echo()], Contexts(lines), tmp_path / name)
    with pytest.raises(UserError, match="different names"):
        generate_file([echo(), echo()], Contexts(lines), tmp_path / "x.jsonl")
    with pytest.raises(UserError, match="it is no file"):
        (tmp_path / "dir.jsonl").mkdir()
        generate_file([echo()], Contexts(lines), tmp_path / "dir.jsonl")


def test_a_damaged_record(tmp_path: Path, lines: Path, echo: Make) -> None:
    out = tmp_path / "out.jsonl"
    generate_file([echo()], Contexts(lines), out)
    (tmp_path / "out.jsonl.json").write_text("{")
    with pytest.raises(DataError, match="is damaged"):
        generate_file([echo()], Contexts(lines), out)


def test_a_file_that_holds_zeros_after_a_crash(tmp_path: Path, lines: Path, echo: Make) -> None:
    out = tmp_path / "out.jsonl"
    generate_file([echo()], Contexts(lines), out, batch_size=2)
    whole = out.read_bytes()
    out.write_bytes(whole[:300] + b"\0" * 200)
    generate_file([echo()], Contexts(lines), out, batch_size=2)
    assert out.read_bytes() == whole


def test_an_error_on_the_way_says_that_rows_are_kept(tmp_path: Path, lines: Path, echo: Make) -> None:
    class Fails(Dies):
        def reply(self, requests: Sequence[Request]) -> list[Reply]:
            try:
                return super().reply(requests)
            except KeyboardInterrupt:
                raise UserError("no reply", "is it there?") from None

    out = tmp_path / "out.jsonl"
    with pytest.raises(UserError, match="no reply") as caught:
        generate_file([Fails(echo(), 2)], Contexts(lines), out, batch_size=3)
    assert "is it there?; the rows so far are kept in" in caught.value.hint
    assert len(rows(out)) == 6


def test_skipped_replies_have_rows_and_are_counted(tmp_path: Path, talk: Talk) -> None:
    from palaver.generation.replay import ReplaySystem

    path = tmp_path / "d.jsonl"
    write_dialogues([talk("a", "b", id="x"), talk("c", "d", id="y")], path)
    log = ReplaySystem("log", [talk("a", "B", id="x")], missing="skip")
    done = generate_file([log], Contexts(path, every_turn=True), tmp_path / "out.jsonl")
    found = rows(tmp_path / "out.jsonl")
    assert [r["response"] for r in found] == ["B", None]
    assert "no dialogue 'y'" in found[1]["skipped"]
    assert done.skipped == {"log": 1}


def test_knowledge_goes_with_each_context(tmp_path: Path, lines: Path, echo: Make) -> None:
    generate_file(
        [echo()],
        Contexts(lines, limit=2),
        tmp_path / "out.jsonl",
        conditions=TWO,
        knowledge=lambda contexts: [
            f"about {c.dialogue.turns[-1].text}" if i else None for i, c in enumerate(contexts)
        ],
    )
    found = rows(tmp_path / "out.jsonl")
    assert [r.get("knowledge") for r in found] == [None, None, "about line 1", "about line 1"]


def test_no_infinite_numbers_in_json(tmp_path: Path, lines: Path) -> None:
    class Sure:
        name = "sure"

        def reply(self, requests: Any) -> list[Reply]:
            return [Reply("x", float("-inf")) for _ in requests]

    generate_file([Sure()], Contexts(lines, limit=1), tmp_path / "out.jsonl")
    assert rows(tmp_path / "out.jsonl")[0]["logprob"] is None


@pytest.mark.skipif(os.name == "nt", reason="needs locks of Unix")
def test_two_runs_at_once(tmp_path: Path, lines: Path, echo: Make) -> None:
    out = tmp_path / "out.jsonl"

    class Nested:
        name = "echo"
        tried = ""

        def reply(self, requests: Any) -> list[Reply]:
            try:
                generate_file([echo()], Contexts(lines), out)
            except UserError as error:
                self.tried = error.message
            return echo().reply(requests)

    nested = Nested()
    generate_file([nested], Contexts(lines), out)
    assert "another run is writing" in nested.tried
    assert len(rows(out)) == 10


SCRIPT = """
import sys, time
from palaver.generation.checkpoint import CheckpointSystem
from palaver.generation.contexts import Contexts, conditions_of
from palaver.generation.decode import Decoding
from palaver.generation.bulk import generate_file
import torch
torch.set_num_threads(1)
folder, lines, out, pause = sys.argv[1:]
system = CheckpointSystem(folder, name="s", decoding=Decoding(method="stochastic-greedy", k=5))
def tell(what, done, total):
    print(done, flush=True)
    time.sleep(float(pause))
who = {"s": conditions_of(system, "all")}
generate_file([system], Contexts(lines), out, conditions=who, batch_size=9, progress=tell)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_kill_9_and_run_again(
    tmp_path: Path, checkpoints: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"hello there {'moon ' * (i % 7)}\n" for i in range(30)))

    def arguments(out: str, pause: float) -> list[str]:
        return list(map(str, [checkpoints / "speaker", lines, tmp_path / out, pause]))

    def start(out: str, pause: float) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", SCRIPT, *arguments(out, pause)]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

    killed = start("out.jsonl", 0.05)
    assert killed.stdout is not None
    for _ in range(3):
        killed.stdout.readline()
    time.sleep(0.02)
    killed.kill()
    assert killed.wait() == -signal.SIGKILL
    killed.stdout.close()
    out = tmp_path / "out.jsonl"
    n_before = out.read_bytes().count(b"\n")
    assert 0 < n_before < 90
    out.write_bytes(out.read_bytes() + b'{"id": "half a li')
    again = start("out.jsonl", 0)
    assert again.communicate()[0]
    assert again.returncode == 0

    monkeypatch.setattr(sys, "argv", ["-c", *arguments("whole.jsonl", 0)])
    torch = pytest.importorskip("torch")
    n_threads = torch.get_num_threads()
    try:
        exec(SCRIPT, {})
    finally:
        torch.set_num_threads(n_threads)
    assert capsys.readouterr().out
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert len(rows(out)) == 90
