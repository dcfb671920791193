"""The options of `chat` and `generate` that say how replies are made."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class Method(StrEnum):
    """The methods of `palaver.generation.decode.Decoding` (a test keeps the two equal)."""

    greedy = "greedy"
    beam = "beam"
    sample = "sample"
    stochastic_greedy = "stochastic-greedy"


MethodOption = Annotated[Method | None, typer.Option("--method", help="How the next token is chosen.")]
Temperature = Annotated[float | None, typer.Option(help="Sampling: below 1 safer, above 1 bolder.")]
TopK = Annotated[int | None, typer.Option(min=0, help="Sampling: among the K most probable tokens.")]
TopP = Annotated[float | None, typer.Option(help="Sampling: among the fewest that hold this share.")]
K = Annotated[int | None, typer.Option("--k", min=1, help="K of stochastic greedy sampling.")]
Beam = Annotated[int | None, typer.Option(min=1, help="Beam search with so many hypotheses.")]
LengthPenalty = Annotated[float | None, typer.Option(help="Beam search: above 1 favours long replies.")]
NoRepeat = Annotated[
    int | None, typer.Option("--no-repeat-ngram", min=0, help="No N words in a row twice in a reply.")
]
MaxLength = Annotated[int | None, typer.Option(min=1, help="Most tokens of a reply.")]
Systems = Annotated[
    Path | None,
    typer.Option("--systems", help="Where systems are named. [default: systems.toml here, if there is one]"),
]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda, cuda:1 …")]


def chosen(
    method: Method | None,
    temperature: float | None,
    top_k: int | None,
    top_p: float | None,
    k: int | None,
    beam: int | None,
    length_penalty: float | None,
    no_repeat_ngram: int | None,
    max_length: int | None,
    seed: int | None = None,
) -> dict[str, Any]:
    """What was typed, checked, with the method it implies: `--beam 5` is `--method beam` as well."""
    from palaver.generation.systems_file import decoding_options

    typed = {
        "method": method.value if method else None,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "k": k,
        "beam_size": beam,
        "length_penalty": length_penalty,
        "no_repeat_ngram": no_repeat_ngram,
        "max_length": max_length,
        "seed": seed,
    }
    return decoding_options({option: value for option, value in typed.items() if value is not None}).given()
