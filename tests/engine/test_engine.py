"""`Engine`: what `--engine` takes, and what is said about what it does not take."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.engine import Engine, parse_engine
from palaver.engine import engine as engines
from palaver.errors import MissingExtra, UserError

WITH_RAY = engines.find_spec("ray") is not None


def test_names() -> None:
    assert parse_engine("local") == Engine("local")
    assert parse_engine("processes") == Engine("processes")
    assert parse_engine("processes:4") == Engine("processes", 4)
    assert Engine.of("local").size == 1
    assert Engine.of("processes:4").size == 4
    assert Engine.of(Engine("processes", 4)).in_threads() == Engine("threads", 4)
    assert Engine.of("processes").for_work(is_small=True) == Engine()


@pytest.mark.skipif(not WITH_RAY, reason="Ray is not installed")
def test_names_of_clusters() -> None:
    assert parse_engine("ray") == Engine("ray")
    assert parse_engine("ray:auto") == Engine("ray", address="auto")
    assert parse_engine("ray:10.0.0.5:6379") == Engine("ray", address="10.0.0.5:6379")
    assert parse_engine("ray?workers=8") == Engine("ray", 8)
    shared = parse_engine("ray:auto?workers=8&cpus=2&gpus=0.25")
    assert shared == Engine("ray", 8, "auto", cpus=2, gpus=0.25)


@given(
    kind=st.sampled_from(["local", "processes", "ray"]),
    workers=st.integers(0, 64),
    address=st.sampled_from(["", "auto", "head:6379"]),
    cpus=st.sampled_from([0.5, 1.0, 2.0]),
    gpus=st.sampled_from([None, 0.0, 0.25, 1.0]),
)
def test_an_engine_is_printed_as_it_is_typed(
    kind: engines.Kind, workers: int, address: str, cpus: float, gpus: float | None
) -> None:
    if kind == "ray" and not WITH_RAY:
        return
    engine = Engine("processes", workers) if kind == "processes" else Engine()
    if kind == "ray":
        engine = Engine("ray", workers, address, cpus, gpus)
    assert parse_engine(str(engine)) == engine


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("process", "there is no engine 'process' (did you mean 'processes'?)"),
        ("rays:auto", "did you mean 'ray'"),
        ("", "there is no engine ''"),
        ("local:2", "local takes nothing after it"),
        ("processes:0", "1 to 1024, found '0'"),
        ("processes:two", "found 'two'"),
        ("processes:", "found ''"),
    ],
)
def test_wrong_names(said: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_engine(said)
    assert words in caught.value.message


@pytest.mark.skipif(not WITH_RAY, reason="Ray is not installed")
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("ray:head", "expected HOST:PORT or auto, found 'head'"),
        ("ray:head:port", "expected HOST:PORT or auto"),
        ("ray:ray://head:10001", "expected HOST:PORT of the cluster's head"),
        ("ray?worker=2", "there is no 'worker' (did you mean 'workers'?)"),
        ("ray?workers=0", "workers: expected a whole number"),
        ("ray?gpus=1.5", "gpus: expected a share"),
        ("ray?cpus=-1", "cpus: expected a share"),
        ("ray?gpus=nan", "gpus: expected a share"),
    ],
)
def test_wrong_clusters(said: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_engine(said)
    assert words in caught.value.message


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra) as caught:
        parse_engine("ray:auto")
    assert "pip install" in caught.value.hint
    assert "cluster" in caught.value.hint


def test_ray_is_not_imported_unless_it_is_asked_for() -> None:
    program = """
import sys
from palaver.cli import options
from palaver.engine import map_rows, map_shards
from palaver.generation.bulk import generate_file
from palaver.judges.panel import judge
from palaver.evaluation.run import run_experiment
list(map_shards(str, range(3), engine="local"))
list(map_rows(list, [[1]], engine="local"))
options.parse_engine("processes:2")
sys.exit("ray" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.skipif(not WITH_RAY, reason="Ray is not installed")
def test_an_address_where_nothing_is_is_told_at_once() -> None:
    from palaver.engine.ray_workers import connect

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(UserError, match=rf"no Ray cluster at 127.0.0.1:{port}: .*refused") as caught:
        connect(f"127.0.0.1:{port}")
    assert "ray start --head" in caught.value.hint


@pytest.mark.skipif(not WITH_RAY, reason="Ray is not installed")
def test_an_address_where_something_else_is() -> None:
    from palaver.engine.ray_workers import connect

    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(UserError, match="something else listens there"):
            connect(f"127.0.0.1:{server.getsockname()[1]}")
        thread.join()


@pytest.mark.skipif(not WITH_RAY, reason="Ray is not installed")
def test_a_cluster_that_asks_for_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray
    from ray._private.authentication import authentication_token_setup as tokens

    from palaver.engine import ray_workers

    token = {"given": False}

    def give(**_: object) -> None:
        token["given"] = True

    asked: list[str] = []

    def connect(address: str) -> None:
        asked.append(address)
        if not token["given"]:
            raise ray.exceptions.AuthenticationError("InvalidAuthToken")

    monkeypatch.setattr(ray._raylet, "GcsClient", connect)
    monkeypatch.setattr(tokens, "maybe_enable_token_auth_if_token_available", give)
    with pytest.raises(UserError, match="at 198.51.100.7:6379 asks for a token") as caught:
        ray_workers._check_token(ray, "198.51.100.7:6379")
    assert "ray get-auth-token" in caught.value.hint
    assert not token["given"], "it is not given to another machine"
    ray_workers._check_token(ray, "localhost:6379")
    assert token["given"]
    assert len(asked) == 3
