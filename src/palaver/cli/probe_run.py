"""`palaver probe run`, or just `palaver probe ENCODER …`: which differences in meaning an encoder notices."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from palaver.cli import completion, options
from palaver.cli.messages import print_json, write_results
from palaver.cli.progress import progress
from palaver.probes.probe import probe
from palaver.probes.vectors import cache_folder
from palaver.reports.probes import print_probe, render_probe_report


def run(
    encoders: Annotated[
        list[str],
        typer.Argument(
            metavar="ENCODER",
            autocompletion=completion.encoders,
            help="glove, p-means, sent2vec, skipthought, infersent, minilm, wordllama; bge-small, "
            "answerai-colbert, glove-100d, smollm2 (palaver get); NAME=FILE for other weights; a folder or "
            "hub name; openai=URL,MODEL; MODULE:FUNCTION.",
        ),
    ],
    triplets: options.TripletFile = None,
    data: options.Data = None,
    out: options.OptionalOut = None,
    force: options.Force = False,
    failures: Annotated[int, typer.Option(min=0, max=10, help="Worst failures to show of each set.")] = 0,
    cache: options.VectorCache = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Encode everything anew, keep nothing.")
    ] = False,
    device: options.Device = "auto",
    seed: options.Seed = 0,
    replicates: options.Replicates = None,
    engine: options.Engine = None,
    as_json: options.Json = False,
) -> None:
    """Which differences in meaning does a sentence encoder notice?

    For each of five sets of triplets (Zhu et al. 2018): the mean cosines, in how many triplets they are
    ordered as desired, and which differences between encoders are more than chance. Vectors are kept, so
    nothing is encoded twice. With --out, report.html and results.json are written into that folder.

    Example: palaver probe run minilm glove --data data/sentences --out probe (`run` may be left out)
    """
    options.claim_folder(out, force)
    with progress() as tell:
        result = probe(
            encoders,
            triplets=triplets,
            data=data,
            device=options.torch_device(device),
            cache=None if no_cache else cache or cache_folder(),
            seed=seed,
            n_replicates=replicates or 10_000,
            engine=engine,
            progress=tell,
        )
    if as_json:
        print_json(result)
    else:
        print_probe(result, Console(), n_failures=failures)
    if out is not None:
        write_results(result, out, render_probe_report, to_stderr=as_json)
