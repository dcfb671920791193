"""Where models run: what is there, and what is said about what is not."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from palaver.errors import UserError  # noqa: E402
from palaver.models.devices import choose_device, choose_dtype  # noqa: E402


def test_auto_is_a_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device().type == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("auto").type == "cuda"


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("cpuu", "no device 'cpuu' .did you mean 'cpu'"),
        ("meta", "no device 'meta'"),
        ("", "no device ''"),
        ("cuda:7", "the GPU 'cuda:7' was asked for, but there is 1"),
    ],
)
def test_what_is_not_there(wanted: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(UserError, match=message):
        choose_device(wanted)


def test_precision() -> None:
    assert choose_dtype("auto", torch.device("cpu")) == torch.float32
    assert choose_dtype("auto", torch.device("cuda")) == torch.bfloat16
    assert choose_dtype("int16", torch.device("cpu")) == torch.float32
    assert choose_dtype("float64", torch.device("cuda")) == torch.float64
