"""Python's collector of circular garbage, switched off while many objects are made that are not circular."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Switch the collector off; else it looks through all that is loaded whenever much has been made."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
