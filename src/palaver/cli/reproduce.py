"""`palaver reproduce`: a paper's published tables beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Print a paper's published tables beside ours.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def _group() -> None:
    """Print a paper's published tables beside ours."""


@app.command()
def rankme(
    data: Annotated[Path, typer.Option(help="The folder with the RankME release (stp1_likert.zip …).")],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    replicates: Annotated[int, typer.Option(min=100, help="Bootstrap replicates.")] = 10_000,
) -> None:
    """Tables 2, 3 and 4 of RankME (Novikova, Dušek & Rieser 2018), cell by cell.

    Exits with 1 if a cell that is known to match no longer does.

    Example: palaver reproduce rankme --data RankME/data
    """
    from rich.console import Console

    from palaver.reproduce.rankme import print_comparison, reproduce

    found = reproduce(data, seed=seed, n_replicates=replicates)
    print_comparison(found, Console())
    if found.lost:
        raise typer.Exit(1)
