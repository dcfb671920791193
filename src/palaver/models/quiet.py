"""Loading a model of `transformers` without its bars and warnings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from palaver.errors import require


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Neither progress bars nor warnings meanwhile."""
    logging = require("transformers", "models").utils.logging
    had_bar, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if had_bar:
            logging.enable_progress_bar()
