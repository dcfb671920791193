"""The parser is loaded once, and only where the extra is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "experiments" / "probes"))

pytest.importorskip("spacy", reason="the extra `probes` is not installed")
pytest.importorskip("lemminflect", reason="the extra `probes` is not installed")
