"""`palaver probe run`, or just `palaver probe ENCODER …`: which differences in meaning an encoder notices."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup


class RunByDefault(TyperGroup):
    """`palaver probe minilm` means `palaver probe run minilm`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        first = args[0] if args else ""
        commands = self.list_commands(ctx)
        # what looks like a misspelled verb is left to the usual message
        if (
            first
            and not first.startswith("-")
            and not difflib.get_close_matches(first, commands, cutoff=0.75)
        ):
            args = ["run", *args]
        return super().resolve_command(ctx, args)


def run(
    encoders: Annotated[
        list[str],
        typer.Argument(
            metavar="ENCODER...",
            help="glove, p-means, sent2vec, skipthought, infersent, minilm, wordllama; NAME=FILE for other "
            "weights; a folder or hub name; openai=URL,MODEL; MODULE:FUNCTION.",
        ),
    ],
    triplets: Annotated[
        Path | None, typer.Option(help="Triplets (palaver probe triplets). [default: made from the corpora]")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the corpora and GloVe vectors. [default: PALAVER_DATA]")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for report.html and results.json.")] = None,
    failures: Annotated[int, typer.Option(min=0, max=10, help="Worst failures to show of each set.")] = 0,
    cache: Annotated[
        Path | None, typer.Option(help="Where vectors are kept. [default: ~/.cache/palaver/vectors]")
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Encode everything anew, keep nothing.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda …")] = "cpu",
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the triplets that are drawn and of the bootstrap.")
    ] = 0,
    replicates: Annotated[int, typer.Option(min=100, help="Bootstrap replicates.")] = 10_000,
    workers: Annotated[int, typer.Option(min=0, help="Processes that make triplets; 0 for one a core.")] = 0,
) -> None:
    """Which differences in meaning does a sentence encoder notice? (Zhu et al. 2018)

    For each of five sets of triplets: the mean cosines, in how many triplets they are ordered as desired, and
    which differences between encoders are more than chance. Vectors are kept, so nothing is encoded twice.

    Example: palaver probe run minilm glove --data data/sentences --out probe (`run` may be left out)
    """
    from rich.console import Console

    from palaver.cli.progress import progress
    from palaver.files import check_writable, write_atomically
    from palaver.models.encoders import Places, open_encoders
    from palaver.probes.evaluate import evaluate
    from palaver.probes.inputs import find_triplets
    from palaver.probes.vectors import cache_folder
    from palaver.reports.probes import print_probe, write_probe_report

    if out is not None:
        check_writable(out)
    places = Places(data, device)
    kept = None if no_cache else cache or cache_folder()
    opened = open_encoders(encoders, places)
    with progress() as tell:
        given = find_triplets(triplets, places, seed=seed, keep=kept, workers=workers, tell=tell)
        found = evaluate(
            opened, given.triplets, cache=kept, seed=seed, n_replicates=replicates, data=given.data,
            notes=given.notes, tell=tell,
        )  # fmt: skip
    print_probe(found, Console(), n_failures=failures)
    if out is not None:
        with write_atomically(out / "results.json") as file:
            file.write(found.to_json())
        typer.echo(f"report: {write_probe_report(found, out / 'report.html')}")
