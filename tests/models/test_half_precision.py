from __future__ import annotations

import pytest
import torch
from torch import nn

from palaver.models.encoders.encoder import batches_of_one_length
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


def test_batches_of_one_length_hold_every_text_once_within_the_budget() -> None:
    lengths = [3, 5, 3, 3, 9, 5, 3]
    batches = list(batches_of_one_length(lengths, 6))
    assert sorted(place for batch in batches for place in batch) == list(range(7))
    assert all(len({lengths[place] for place in batch}) == 1 for batch in batches)
    assert all(len(batch) == 1 or sum(lengths[place] for place in batch) <= 6 for batch in batches)
