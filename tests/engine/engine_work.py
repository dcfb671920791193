"""What workers are sent in the tests; those on Ray find this folder on their path."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from palaver.schema import Reply, Request, Response


def wait_until(is_so: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """A zombie is not: its parent, whoever took it over, has only not asked for it yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def squares(rows: Sequence[int]) -> list[int]:
    """-1 fails; -2 ends its process."""
    if -1 in rows:
        raise ValueError("poisoned")
    if -2 in rows:
        os._exit(9)
    return [row * row for row in rows]


class Diary:
    """Notes every batch it begins and ends in a folder, and waits a little, so that it can be killed."""

    def __init__(self, folder: str, seconds: float) -> None:
        self.folder = Path(folder)
        self.seconds = seconds

    def __call__(self, rows: Sequence[int]) -> list[int]:
        name = f"{rows[0]}-{os.getpid()}-{time.monotonic_ns()}"
        (self.folder / f"{name}.begun").touch()
        time.sleep(self.seconds)
        made = squares(rows)
        (self.folder / f"{name}.ended").touch()
        return made

    def begun(self) -> list[int]:
        return sorted(int(path.name.partition("-")[0]) for path in self.folder.glob("*.begun"))

    def workers(self) -> set[int]:
        return {int(path.name.split("-")[1]) for path in self.folder.glob("*.begun")}


class Patient:
    """Does the batch of 1 at once, and takes long over all others."""

    def __init__(self, slow: Diary, quick: Diary) -> None:
        self.slow, self.quick = slow, quick

    def __call__(self, rows: Sequence[int]) -> list[int]:
        return self.quick(rows) if rows == [1] else self.slow(rows)


class Model:
    """Slow to make, and not to be sent."""

    def __init__(self) -> None:
        self.pid = os.getpid()

    def __getstate__(self) -> object:
        raise TypeError("a model is opened, never sent")


class WhoOpened:
    """Which process opened the model it works with."""

    def __init__(self, recipe: object) -> None:
        self.recipe = recipe

    def __call__(self, shard: int) -> tuple[int, int]:
        return self.recipe.model.pid, id(self.recipe.model)  # type: ignore[attr-defined]


class Shouter:
    """A system. It fails on "bad", and "fatal" ends its process."""

    name = "shouter"
    chunk = 8

    def reply(self, requests: Sequence[Request]) -> list[Reply]:
        texts = [request.dialogue.turns[-1].text for request in requests]
        if "bad" in texts:
            raise ValueError("cannot say bad")
        if "fatal" in texts:
            os._exit(9)
        return [Reply(text.upper(), -1.5) for text in texts]


def length(response: Response) -> float:
    """A judge that fails on short replies."""
    text = response.response or ""
    if len(text) < 4:
        raise ValueError("too short")
    return float(len(text))
