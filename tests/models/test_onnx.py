"""bge-small and ColBERT out of their package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from palaver.errors import DataError, UserError
from palaver.models.encoders import open_encoder
from palaver.models.encoders.encoder import Places
from palaver.models.encoders.onnx import OnnxEncoder
from palaver.models.packages import PACKAGES, installed_version

pytest.importorskip("onnxruntime", reason="the extra probes is not installed")
PACKAGE = PACKAGES["bge-small"]
TEXTS = ["A dog bites a man.", "Stocks fell sharply on Monday, and nobody knew why.", "A hound bites a man."]


@pytest.mark.skipif(installed_version(PACKAGE) != PACKAGE.version, reason="palaver get bge-small")
@pytest.mark.parametrize("name", ["bge-small", "answerai-colbert"])
def test_a_text_has_one_vector_in_any_company(name: str) -> None:
    encoder = open_encoder(name)
    together = encoder.encode(TEXTS)
    assert together.shape == (3, 384)
    np.testing.assert_array_equal(together[0], encoder.encode(TEXTS[:1])[0])
    unit = together / np.linalg.norm(together, axis=1, keepdims=True)
    assert unit[0] @ unit[2] > unit[0] @ unit[1]
    assert PACKAGE.provenance in encoder.provenance
    lower = encoder.encode([TEXTS[0].lower()])[0]
    np.testing.assert_array_equal(together[0], lower)  # these two do not see case
    assert np.isfinite(encoder.encode(["", "word " * 2000])).all()
    with pytest.raises(UserError, match="takes nothing"):
        open_encoder(f"{name}=file")


def test_a_damaged_model_is_told(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no model")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(DataError, match="cannot be loaded"):
        OnnxEncoder(tmp_path, "first", Places())
