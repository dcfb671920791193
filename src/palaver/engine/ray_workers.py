"""Workers on a Ray cluster: actors that hold the function and with it the model.

Ray is imported here alone, and only where it was asked for.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from palaver.engine.engine import Engine
from palaver.engine.workers import Worker, WorkerLost, pack
from palaver.errors import UserError, require

_PATIENCE = 5.0
"""Seconds for the head of a cluster to answer."""
_OBJECTS = 400_000_000
"""Bytes of shared memory for shards and results, on a Ray that we start; what is more goes to disk."""
_ENVIRONMENT = ("HF_", "PALAVER_")
"""Variables that workers take over, by the beginning of their names."""
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""How a client of gRPC, which Ray speaks, begins: with HTTP/2 and empty settings."""

_connected: str | None = None
"""The address of the cluster that we joined; None while there is none."""


def ray_workers(
    function: Callable[[Any], Any], engine: Engine, *, wants_gpu: bool, most: int
) -> tuple[Callable[[], Worker], int]:
    """What starts an actor, and how many there should be."""
    ray = connect(engine.address)
    resources = ray.cluster_resources()
    gpus = engine.gpus
    if gpus is None:
        gpus = 1.0 if wants_gpu and resources.get("GPU") else 0.0
    room = resources.get("CPU", 1.0) / engine.cpus if engine.cpus else most
    if gpus:
        room = min(room, resources.get("GPU", 0.0) / gpus)
    if room < 1 and not engine.workers:
        raise UserError(
            f"no worker fits into the cluster: each takes {engine.cpus:g} CPUs and {gpus:g} GPUs",
            f"it has {resources.get('CPU', 0):g} CPUs and {resources.get('GPU', 0):g} GPUs in all",
        )
    packed = pack(function)
    kept = ray.put(_Order(packed, os.getcwd(), list(sys.path), _environment()))  # once a machine
    actor = ray.remote(num_cpus=engine.cpus, num_gpus=gpus, max_restarts=0, max_task_retries=0)(_Actor)
    return lambda: RayWorker(ray, actor.remote(kept)), max(1, min(engine.workers or int(room), most))


def connect(address: str = "") -> Any:
    """Join the cluster at `address` (or RAY_ADDRESS), or start one on this machine; the module `ray`."""
    global _connected
    ray = require("ray", "cluster")
    if ray.is_initialized() and _connected in (None, address):
        return ray  # the user's own, or the one that we joined before
    disconnect()
    place = address or os.environ.get("RAY_ADDRESS", "")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else it warns of its next default
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if place in ("", "local"):
            started = {"include_dashboard": False, "object_store_memory": _OBJECTS}
            ray.init(address="local", **started, **quiet)
        else:
            if place != "auto":
                _check(place)
                _check_token(ray, place)
            ray.init(address=place, **quiet)
    except UserError:
        raise
    except Exception as error:  # Ray raises what it likes, also plain `Exception`
        first_line = str(error).strip().partition("\n")[0]
        where = place if place not in ("", "auto", "local") else "this machine"
        raise UserError(
            f"there is no Ray cluster at {where}: {first_line}",
            "start one with `ray start --head`, or give its address: --engine ray:HOST:6379",
        ) from error
    _be_quiet()
    _connected = address
    return ray


def _be_quiet() -> None:
    """Ray prints on our standard output, among the results, that a worker ended; the pool tells that."""
    import ray._private.worker as printing

    if hasattr(printing, "print_to_stdstream"):
        printing.print_to_stdstream = lambda *_, **__: None


def disconnect() -> None:
    """Leave the cluster, or stop the one that was started for us."""
    global _connected
    if _connected is not None:
        require("ray", "cluster").shutdown()
        _connected = None


def _check(address: str) -> None:
    """Ray itself would look for the head for more than a minute, and then end the process."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=_PATIENCE) as connection:
        connection.sendall(_HELLO)
        answer = b""
        with contextlib.suppress(TimeoutError):
            while len(answer) < 4 and (more := connection.recv(9)):
                answer += more
    if answer[3:4] != b"\4":  # the kind of frame: settings
        raise ConnectionError("something else listens there")


def _check_token(ray: Any, address: str) -> None:
    """Give a cluster of this machine the machine's token if it asks for one, and say so if it still asks.

    Ray does the first for a cluster that it finds by itself (`auto`) and not for one that is named, since a
    token must not go to strangers.
    """
    if not _asks_for_token(ray, address):
        return
    if _is_here(address):
        from ray._private.authentication import authentication_token_setup as tokens

        logging.getLogger("ray").setLevel(logging.ERROR)  # it tells at length that it does so
        tokens.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
        if not _asks_for_token(ray, address):
            return
    raise UserError(
        f"the Ray cluster at {address} asks for a token, and this machine gave none or another one",
        "on its head `ray get-auth-token` prints it; here: export RAY_AUTH_MODE=token RAY_AUTH_TOKEN=TOKEN",
    )


def _asks_for_token(ray: Any, address: str) -> bool:
    refusal = getattr(ray.exceptions, "AuthenticationError", None)
    if refusal is None:
        return False  # an older Ray, which knows no tokens
    try:
        with _silence():
            ray._raylet.GcsClient(address=address)
    except refusal:
        return True
    except Exception:  # what else is wrong, `ray.init` tells
        return False
    return False


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Ray's own library writes to the standard error, past Python."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _is_here(address: str) -> bool:
    """Whether the address is one of this machine."""
    host, _, port = address.rpartition(":")
    for family, kind, _, _, place in socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM):
        with socket.socket(family, kind) as free, contextlib.suppress(OSError):
            free.bind((place[0], 0))  # only an own address can be bound
            return True
    return False


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(_ENVIRONMENT)}


@dataclass(frozen=True)
class _Order:
    """What an actor is started with."""

    packed: bytes
    folder: str
    """Where the command was started; the actor works there, where its machine has that folder, too."""
    path: list[str]
    """Where Python looks for modules."""
    environment: dict[str, str]


class _Actor:
    """Holds the function."""

    def __init__(self, order: _Order) -> None:
        os.environ.update(order.environment)
        with contextlib.suppress(OSError):
            os.chdir(order.folder)
        sys.path += [place for place in order.path if place not in sys.path]
        self._packed = order.packed
        self._function: Callable[[Any], Any] | None = None

    def is_ready(self) -> bool:
        return True

    def work(self, shard: Any) -> Any:
        if self._function is None:  # here, and not when it starts: a failure of the work is no lost worker
            self._function = pickle.loads(self._packed)
        return self._function(shard)


class RayWorker:
    """An actor."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray = ray
        self._actor = actor
        self._start: Future[Any] | None = actor.is_ready.remote().future()

    def starting(self) -> Future[Any] | None:
        if self._start is not None and self._start.done() and self._start.exception() is None:
            self._start = None
        return self._start

    def submit(self, shard: Any) -> Future[Any]:
        future: Future[Any] = self._actor.work.remote(shard).future()
        return future

    def explain(self, error: BaseException) -> BaseException:
        exceptions = self._ray.exceptions
        if isinstance(error, exceptions.RayTaskError):
            return error.cause if isinstance(error.cause, Exception) else error
        if isinstance(error, exceptions.RayError):
            return WorkerLost(str(error).strip().partition("\n")[0])
        return error

    def stop(self) -> None:
        if self._ray.is_initialized():
            self._ray.kill(self._actor)
