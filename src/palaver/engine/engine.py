"""`Engine`: where maps run. Results do not depend on it.

local                                   in this process
processes, processes:4                  worker processes of this machine, one a core or as many as named
ray, ray:HOST:6379, ray:auto            workers of a Ray cluster; `ray` alone starts one on this machine,
                                        unless RAY_ADDRESS names one
ray:auto?workers=8&cpus=2&gpus=0.5      how many, and the share of processors and GPUs that each takes
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal
from urllib.parse import parse_qsl

from palaver.engine.cores import n_cores
from palaver.errors import MissingExtra, UserError, nearest, pip_line

Kind = Literal["local", "threads", "processes", "ray"]
NAMES = ("local", "processes", "ray")
SHAPES = "local|processes[:N]|ray[:ADDRESS]"
_SHARES = ("workers", "cpus", "gpus")


@dataclass(frozen=True)
class Engine:
    """Where a map runs, and on how many workers."""

    kind: Kind = "local"
    workers: int = 0
    """0: one a core; on Ray as many as the cluster has room for."""
    address: str = ""
    """Of a Ray cluster: HOST:PORT of its head, or auto; empty for one on this machine."""
    cpus: float = 1.0
    """On Ray, the processors of one worker."""
    gpus: float | None = None
    """On Ray, the share of a GPU of one worker; None: a whole one where the work can use one."""

    @classmethod
    def of(cls, said: Engine | str) -> Engine:
        """The engine itself, or the one that the text names."""
        return parse_engine(said) if isinstance(said, str) else said

    @property
    def size(self) -> int:
        """Workers on this machine."""
        if self.kind == "local":
            return 1
        return self.workers or n_cores()

    def in_threads(self) -> Engine:
        """As many threads, for work that shares memory; of an engine on Ray, one a core of this machine."""
        workers = 0 if self.kind == "ray" else self.size
        return Engine("threads", workers)

    def for_work(self, *, is_small: bool) -> Engine:
        """This engine, or this process where there is too little to do for others to be started."""
        return Engine() if is_small else self

    def __str__(self) -> str:
        if self.kind == "ray":
            shares = {"workers": self.workers or None, "gpus": self.gpus}
            if self.cpus != 1:
                shares["cpus"] = self.cpus
            asked = "&".join(f"{name}={value:g}" for name, value in shares.items() if value is not None)
            return f"ray{self.address and ':'}{self.address}{asked and '?'}{asked}"
        return f"{self.kind}:{self.workers}" if self.workers else self.kind


def parse_engine(text: str) -> Engine:
    """The engine that `text` names; what is wrong with it is said here, before any work."""
    name, colon, rest = text.partition(":")
    shares: dict[str, float] = {}
    if name.partition("?")[0] == "ray":
        place, _, asked = text.partition("?")
        name, colon, rest = place.partition(":")
        shares = _shares(asked)
    if name not in NAMES:
        raise UserError(
            f"there is no engine {name!r}{nearest(name, NAMES)}",
            f"expected {SHAPES}, such as local, processes:4 or ray:auto",
        )
    if name == "ray":
        return _ray(rest, shares)
    if name == "local" and colon:
        raise UserError(f"local takes nothing after it, found {text!r}", "for several: processes:4")
    if name == "local":
        return Engine()
    if colon and not (rest.isascii() and rest.isdigit() and 1 <= int(rest) <= 1024):
        raise UserError(f"processes: expected how many, 1 to 1024, found {rest!r}", "such as processes:4")
    return Engine("processes", int(rest or 0))


def _ray(address: str, shares: dict[str, float]) -> Engine:
    if find_spec("ray") is None:
        raise MissingExtra("the engine 'ray' needs Ray, which is not installed", f"{pip_line('cluster')}")
    if "://" in address:
        raise UserError(
            f"ray: expected HOST:PORT of the cluster's head, found {address!r}",
            "run the command on a machine of the cluster with --engine ray:auto, or with `ray job submit`",
        )
    host, _, port = address.rpartition(":")
    if address not in ("", "auto") and not (host and port.isascii() and port.isdigit() and int(port) < 65536):
        raise UserError(
            f"ray: expected HOST:PORT or auto, found {address!r}", "such as ray:10.0.0.5:6379 or ray:auto"
        )
    workers = int(shares.get("workers", 0))
    return Engine("ray", workers, address, shares.get("cpus", 1.0), shares.get("gpus"))


def _shares(text: str) -> dict[str, float]:
    """`workers=8&gpus=0.5`."""
    shares: dict[str, float] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        if name not in _SHARES:
            raise UserError(
                f"ray: there is no {name!r}{nearest(name, _SHARES)}", f"there are {', '.join(_SHARES)}"
            )
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        whole = name == "workers" or number > 1
        if not 0 <= number <= 4096 or (whole and number % 1) or (name == "workers" and number < 1):
            kind = "a whole number from 1 on" if name == "workers" else "a share such as 0.5, or whole ones"
            raise UserError(f"ray: {name}: expected {kind}, found {value!r}")
        shares[name] = number
    return shares
