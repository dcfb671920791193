"""The decoder loop of `Seq2Seq`: an LSTM stack whose first layer is fed the last step's attention context.

h_t = g(h_{t-1}, y*_t, c_{t-1}, v) (Xing & Fernández 2018, eq. 3 and 4). Feeding c_{t-1} in makes every step
wait for the one before, so the multi-step LSTM kernels of the libraries cannot be used. What makes the loop
fast here, in the order of what it gains:

- gradients of the weights are one matrix product over all steps, after the backward loop, instead of one
  product and one addition to a matrix of 8 million numbers per layer and step;
- what does not wait (embedding, speaker, bias, output layer) is done for all steps before or after the loop;
- input and recurrent weights are one matrix, so a layer's step is one product and one fused pointwise kernel;
- on a GPU the two loops are recorded as CUDA graphs per batch shape and replayed, without Python between.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_MOST_GRAPHS = 32


def _cell(
    gates: Tensor,
    extra: Tensor,
    cell: Tensor,
    gate_out: Tensor,
    cell_out: Tensor,
    hidden_out: Tensor,
    up: Tensor,
    mask: Tensor | None,
) -> None:
    """One LSTM cell from its pre-activations; keeps what the backward loop needs. Gates: i, f, g, o.

    Its output goes to its own next step and, through dropout, to `up`: the next layer or the attention.
    """
    i, f, g, o = (gates.to(cell.dtype) + extra.to(cell.dtype)).chunk(4, 1)  # (B, H) each
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    gate_out.copy_(torch.cat((i, f, g, o), 1))
    new = f * cell + i * g
    cell_out.copy_(new)
    hidden = o * new.tanh()
    hidden_out.copy_(hidden)
    up.copy_(hidden if mask is None else hidden * mask)


def _weigh(scores: Tensor, bias: Tensor, weighting: Tensor) -> None:
    """Attention weights (B, S) of one step."""
    weighting.copy_(torch.softmax(scores.to(bias.dtype) + bias, 1))


def _feed(context: Tensor, mask: Tensor | None, out: Tensor) -> None:
    """The context goes into the next step, through dropout."""
    out.copy_(context if mask is None else context * mask)


def _feed_backward(fed: Tensor, mask: Tensor | None, dcontext: Tensor) -> None:
    dcontext.add_(fed if mask is None else fed * mask)


def _weigh_backward(weighting: Tensor, dweighting: Tensor, exact: Tensor, dscores: Tensor) -> None:
    weighting, dweighting = weighting.to(exact.dtype), dweighting.to(exact.dtype)
    mean = (weighting * dweighting).sum(1, keepdim=True)
    dscores.copy_(weighting * (dweighting - mean))


def _cell_backward(
    gates: Tensor,
    before: Tensor,
    after: Tensor,
    from_above: Tensor,
    mask: Tensor | None,
    from_outside: Tensor | None,
    from_later: Tensor,
    dcell: Tensor,
    dgates: Tensor,
) -> None:
    """Gradients of one cell's pre-activations into `dgates`; `dcell` becomes that of the step before."""
    i, f, g, o = gates.to(dcell.dtype).chunk(4, 1)
    dhidden = from_above.to(dcell.dtype)
    if mask is not None:
        dhidden = dhidden * mask
    if from_outside is not None:
        dhidden = dhidden + from_outside
    dhidden = dhidden + from_later
    tanh = after.tanh()
    dc = dcell + dhidden * o * (1 - tanh * tanh)
    parts = (
        dc * g * i * (1 - i),
        dc * before * f * (1 - f),
        dc * i * (1 - g * g),
        dhidden * tanh * o * (1 - o),
    )
    dgates.copy_(torch.cat(parts, 1))
    dcell.copy_(dc * f)


_compiled: dict[Callable[..., Any], Callable[..., Any]] = {}


def _on(device: torch.device, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel as it runs on `device`: fused into one where the GPU's compiler is there."""
    if device.type != "cuda":
        return kernel
    if kernel not in _compiled:
        _compiled[kernel] = torch.compile(kernel, dynamic=False)
    return _compiled[kernel]


# With and without dropout, with bias or projection, for each batch shape: more variants of a kernel than
# torch expects, which would run the later ones unfused.
_many_variants = torch._dynamo.config.patch(recompile_limit=64)


class _Loop:
    """All tensors of one run over a batch, and the two loops that fill them in place."""

    def __init__(
        self, projected: Tensor, values: Tensor, n_layers: int, dropout: bool, *, backward: bool
    ) -> None:
        n_steps, n, width = projected.shape
        size = width // 4
        dtype, exact = projected.dtype, torch.promote_types(projected.dtype, torch.float32)

        def empty(*shape: int, kind: torch.dtype = dtype) -> Tensor:
            return torch.empty(shape, dtype=kind, device=projected.device)

        self.shape = (n_steps, n, size, n_layers)
        self.projected = torch.empty_like(projected)
        self.keys, self.values = torch.empty_like(values), torch.empty_like(values)  # (B, S, H)
        self.bias = empty(*values.shape[:2], kind=exact)  # (B, S): 0, or -inf where there is padding
        self.weights = [empty(4 * size, 2 * size) for _ in range(n_layers)]
        self.biases = [empty(4 * size) for _ in range(n_layers - 1)]  # of layer 0 it is part of `projected`
        self.masks = empty(n_layers, n_steps, n, size) if dropout else None  # of layer 0: on the fed context
        self.inputs = [empty(n_steps + 1, n, 2 * size) for _ in range(n_layers)]  # [from below, recurrent]
        self.cells = [empty(n_steps + 1, n, size, kind=exact) for _ in range(n_layers)]
        self.gates = [empty(n_steps, n, 4 * size) for _ in range(n_layers)]
        self.hidden = empty(n_steps, n, size)
        self.contexts = empty(n_steps, n, size)
        self.weighting = empty(n_steps, n, values.shape[1])
        self.gate_buffer = empty(n, 4 * size)
        if backward:
            self.dhidden, self.dcontexts = empty(n_steps, n, size), empty(n_steps, n, size)
            self.dgates = [empty(n_steps, n, 4 * size) for _ in range(n_layers)]
            self.dscores = torch.empty_like(self.weighting)
            self.dinputs = [empty(n, 2 * size) for _ in range(n_layers)]
            self.dcells = [empty(n, size, kind=exact) for _ in range(n_layers)]

    def fill(
        self,
        projected: Tensor,
        hidden: Tensor,
        cells: Tensor,
        keys: Tensor,
        values: Tensor,
        bias: Tensor,
        masks: Tensor | None,
        weights: Sequence[Tensor],
        biases: Sequence[Tensor],
    ) -> None:
        """Take the batch in."""
        size = self.shape[2]
        self.projected.copy_(projected)
        self.keys.copy_(keys)
        self.values.copy_(values)
        self.bias.copy_(bias)
        if self.masks is not None and masks is not None:
            self.masks.copy_(masks)
        for mine, given in zip((*self.weights, *self.biases), (*weights, *biases), strict=True):
            mine.copy_(given)
        for layer in range(self.shape[3]):
            self.inputs[layer][0, :, size:] = hidden[layer]
            self.cells[layer][0] = cells[layer]
        self.inputs[0][0, :, :size] = 0  # no context before the first step

    def forward(self) -> None:
        n_steps, _, size, n_layers = self.shape
        device = self.projected.device
        cell, weigh, feed = _on(device, _cell), _on(device, _weigh), _on(device, _feed)
        for t in range(n_steps):
            for layer in range(n_layers):
                torch.mm(self.inputs[layer][t], self.weights[layer].t(), out=self.gate_buffer)  # (B, 4H)
                top = layer == n_layers - 1
                cell(
                    self.gate_buffer,
                    self.projected[t] if layer == 0 else self.biases[layer - 1],
                    self.cells[layer][t],
                    self.gates[layer][t],
                    self.cells[layer][t + 1],
                    self.inputs[layer][t + 1, :, size:],
                    self.hidden[t] if top else self.inputs[layer + 1][t, :, :size],
                    None if top else self._mask(layer + 1, t),
                )
            scores = torch.bmm(self.keys, self.hidden[t].unsqueeze(2)).squeeze(2)  # (B, S)
            weigh(scores, self.bias, self.weighting[t])
            torch.bmm(self.weighting[t].unsqueeze(1), self.values, out=self.contexts[t].unsqueeze(1))
            if t + 1 < n_steps:
                feed(self.contexts[t], self._mask(0, t + 1), self.inputs[0][t + 1, :, :size])

    def _mask(self, layer: int, t: int) -> Tensor | None:
        return None if self.masks is None else self.masks[layer, t]

    def backward(self) -> None:
        """From `dhidden` and `dcontexts` (which gains what flows back through the feeding) to the rest."""
        n_steps, _, size, n_layers = self.shape
        device = self.projected.device
        cell, feed = _on(device, _cell_backward), _on(device, _feed_backward)
        weigh = _on(device, _weigh_backward)
        for layer in range(n_layers):
            self.dinputs[layer].zero_()
            self.dcells[layer].zero_()
        for t in reversed(range(n_steps)):
            if t + 1 < n_steps:
                feed(self.dinputs[0][:, :size], self._mask(0, t + 1), self.dcontexts[t])
            dweighting = torch.bmm(self.values, self.dcontexts[t].unsqueeze(2)).squeeze(2)  # (B, S)
            weigh(self.weighting[t], dweighting, self.bias, self.dscores[t])
            from_above = torch.bmm(self.dscores[t].unsqueeze(1), self.keys).squeeze(1)  # (B, H)
            for layer in reversed(range(n_layers)):
                top = layer == n_layers - 1
                cell(
                    self.gates[layer][t],
                    self.cells[layer][t],
                    self.cells[layer][t + 1],
                    from_above,
                    None if top else self._mask(layer + 1, t),
                    self.dhidden[t] if top else None,
                    self.dinputs[layer][:, size:],
                    self.dcells[layer],
                    self.dgates[layer][t],
                )
                torch.mm(self.dgates[layer][t], self.weights[layer], out=self.dinputs[layer])  # (B, 2H)
                from_above = self.dinputs[layer][:, :size]


class _Recorded:
    """A loop whose two directions are CUDA graphs on fixed tensors. `turn` tells one batch from the next."""

    pool: Any = None

    def __init__(self, loop: _Loop, *, backward: bool) -> None:
        self.loop = loop
        self.turn = 0
        _Recorded.pool = _Recorded.pool or torch.cuda.graph_pool_handle()
        directions = [loop.forward, loop.backward] if backward else [loop.forward]
        self.graphs = [self._record(run) for run in directions]

    @staticmethod
    def _record(run: Callable[[], None]) -> torch.cuda.CUDAGraph:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            run()  # compiles the kernels and lets the libraries choose theirs
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=_Recorded.pool):
            run()
        return graph


_seen: OrderedDict[tuple[Any, ...], int] = OrderedDict()
_recorded: OrderedDict[tuple[Any, ...], _Recorded] = OrderedDict()


def _recorded_for(key: tuple[Any, ...], make: Callable[[], _Loop], *, backward: bool) -> _Recorded | None:
    """The recording for batches of this shape, made when the shape comes back a second time."""
    if key not in _recorded:
        _seen[key] = _seen.get(key, 0) + 1
        if _seen[key] < 2:
            return None
        with _many_variants:
            _recorded[key] = _Recorded(make(), backward=backward)
        if len(_recorded) > _MOST_GRAPHS:
            _recorded.popitem(last=False)
    _recorded.move_to_end(key)
    return _recorded[key]


class InputFeeding(torch.autograd.Function):
    """The loop as one differentiable operation: hidden states and contexts (T, B, H) of all steps."""

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,  # (T, B, 4H)
        hidden: Tensor,  # (L, B, H)
        cells: Tensor,  # (L, B, H)
        keys: Tensor,  # (B, S, H)
        values: Tensor,  # (B, S, H)
        bias: Tensor,  # (B, S)
        masks: Tensor | None,  # (L, T, B, H)
        needs_backward: bool,
        *weights_and_biases: Tensor,
    ) -> tuple[Tensor, Tensor]:
        n_layers = len(hidden)
        weights, biases = weights_and_biases[:n_layers], weights_and_biases[n_layers:]
        given = (projected, hidden, cells, keys, values, bias, masks, weights, biases)

        def make() -> _Loop:
            loop = _Loop(projected, values, n_layers, masks is not None, backward=needs_backward)
            loop.fill(*given)
            return loop

        ctx.recorded = None
        if projected.is_cuda:
            key = (projected.shape, values.shape, n_layers, projected.dtype, masks is None, needs_backward)
            ctx.recorded = _recorded_for((*key, projected.device), make, backward=needs_backward)
        if ctx.recorded is None:
            ctx.loop = make()
            with _many_variants:
                ctx.loop.forward()
            return ctx.loop.hidden.clone(), ctx.loop.contexts.clone()
        ctx.loop = ctx.recorded.loop
        ctx.recorded.turn += 1
        ctx.turn = ctx.recorded.turn
        ctx.loop.fill(*given)
        ctx.recorded.graphs[0].replay()
        return ctx.loop.hidden.clone(), ctx.loop.contexts.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        loop: _Loop = ctx.loop
        n_steps, n, size, _ = loop.shape
        if ctx.recorded is not None and ctx.recorded.turn != ctx.turn:
            raise RuntimeError("another batch of this shape went forward first; go backward after each one")
        loop.dhidden.copy_(gradients[0])
        loop.dcontexts.copy_(gradients[1])
        if ctx.recorded is None:
            with _many_variants:
                loop.backward()
        else:
            ctx.recorded.graphs[1].replay()
        flat = [dgates.view(n_steps * n, 4 * size) for dgates in loop.dgates]
        dweights = [
            torch.mm(dgates.t(), inputs[:n_steps].reshape(n_steps * n, 2 * size))
            for dgates, inputs in zip(flat, loop.inputs, strict=True)
        ]
        dbiases = [dgates.sum(0) for dgates in flat[1:]]
        dhidden = torch.stack([d[:, size:] for d in loop.dinputs])  # (L, B, H)
        dcells = torch.stack(loop.dcells)
        dkeys = torch.bmm(loop.dscores.permute(1, 2, 0), loop.hidden.transpose(0, 1))  # (B, S, H)
        dvalues = torch.bmm(loop.weighting.permute(1, 2, 0), loop.dcontexts.transpose(0, 1))
        dprojected = loop.dgates[0].clone()
        return dprojected, dhidden, dcells, dkeys, dvalues, None, None, None, *dweights, *dbiases
