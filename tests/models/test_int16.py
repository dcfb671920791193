"""Weights of 16 bits: the same products whichever way they are made, and next to nothing lost."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from palaver.models.int16 import Int16Linear, round_rows, round_weights


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 9), st.integers(1, 70), st.booleans(), st.integers(0, 10_000))
def test_one_row_and_many_give_the_same(n: int, m: int, bias: bool, seed: int) -> None:
    torch.manual_seed(seed)
    linear = nn.Linear(m, n, bias=bias)
    rounded = Int16Linear(linear)
    x = torch.randn(3, m)
    with torch.inference_mode():
        together = rounded(x)
        alone = torch.stack([rounded(row) for row in x])
        assert torch.allclose(alone, together, atol=1e-5)
        assert torch.allclose(together, linear(x), atol=1e-3)
    assert rounded(x[:1].view(1, 1, m)).shape == (1, 1, n)


def test_rounding_is_exact_to_half_a_level() -> None:
    weight = torch.tensor([[1.0, -0.5, 0.25], [0.0, 0.0, 0.0], [3e-8, 1e-9, -3e-8]])
    levels, scale = round_rows(weight)
    assert levels.dtype == torch.int16
    assert levels.abs().max() == 32_767
    off = (levels * scale.unsqueeze(1) - weight).abs()
    assert bool((off <= scale.unsqueeze(1) / 2 * 1.001).all())


def test_layers_with_an_adapter_are_rounded_with_it() -> None:
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Tanh(), nn.Linear(8, 4))
    peft.inject_adapter_in_model(peft.LoraConfig(r=2, target_modules=["0"], init_lora_weights=False), model)
    x = torch.randn(1, 8)
    with torch.inference_mode():
        expected = model(x)
        model[0].merge()
        round_weights(model)
        assert [type(layer) for layer in model] == [Int16Linear, nn.Tanh, Int16Linear]
        assert np.allclose(model(x), expected, atol=1e-3)
