"""The parser is loaded once, and only where the extra is installed."""

from __future__ import annotations

import pytest

pytest.importorskip("spacy", reason="the extra `probes` is not installed")
pytest.importorskip("lemminflect", reason="the extra `probes` is not installed")
