"""Where a model runs, and in which precision."""

from __future__ import annotations

import torch

from palaver.errors import UserError, nearest

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}


def choose_device(wanted: str = "auto") -> torch.device:
    """`auto` is a GPU where there is one. A GPU that was asked for and is not there is an error."""
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    known = ["auto", "cpu", "cuda", "mps"]
    try:
        device = torch.device(wanted)
    except RuntimeError:
        device = None
    if device is None or device.type not in known:  # torch knows more, such as meta, which compute nothing
        raise UserError(f"there is no device {wanted!r}{nearest(wanted, known)}", "auto, cpu, cuda, cuda:1")
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= count:
            there = {0: "there is none", 1: "there is 1"}.get(count, f"there are {count}")
            raise UserError(
                f"the GPU {wanted!r} was asked for, but {there}", "leave it out, or use --device cpu"
            )
    elif device.type == "mps" and not torch.backends.mps.is_available():
        raise UserError("the device 'mps' was asked for, but this machine has none", "use --device cpu")
    return device


def has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16 itself. Others only imitate it, slower than float32."""
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16"))


def choose_dtype(wanted: str, device: torch.device) -> torch.dtype:
    """`auto` is bfloat16 on a GPU and float32 elsewhere, and so is `int16` (`palaver.models.int16`)."""
    if wanted in ("auto", "int16"):
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return DTYPES[wanted]
