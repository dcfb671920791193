from __future__ import annotations

import pytest
import torch
from torch import nn

from palaver.models.half_precision import HalfLinear, halve_linear_maps


@pytest.mark.parametrize("bias", [True, False])
def test_a_halved_map_is_nearly_the_map_and_keeps_the_precision_of_what_comes_in(bias: bool) -> None:
    torch.manual_seed(0)
    linear = nn.Linear(64, 32, bias=bias)
    x = torch.randn(5, 64)
    with torch.inference_mode():
        whole, half = linear(x), HalfLinear(linear)(x)
    assert half.dtype == torch.float32
    assert 0 < (whole - half).abs().max() < 0.02


def test_all_linear_maps_of_a_model_are_halved_and_nothing_else() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 2)))
    halve_linear_maps(model)
    kinds = [type(module) for module in model.modules()]
    assert kinds.count(HalfLinear) == 2
    assert nn.Linear not in kinds
    assert model[1][0].weight.dtype == torch.float32
