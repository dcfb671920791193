"""`palaver metrics`: BLEU, ROUGE, F1, diversity and more of responses, with intervals and tests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from palaver.cli import completion, options
from palaver.cli.messages import print_json
from palaver.cli.progress import progress
from palaver.errors import UsageError
from palaver.metrics.file_scores import score_files
from palaver.metrics.metric import METRICS
from palaver.readers.rating_files import write_frames
from palaver.reports.metrics import print_scores


def metrics(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help=f"Responses: {options.ANY_SHAPE}; or a .txt a system, one response a line."),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            help="A metric: NAME, NAME=MODEL or MODULE:FUNCTION; repeat it. [default: all without a model]",
            autocompletion=completion.metrics,
        ),
    ] = None,
    references: Annotated[
        list[Path] | None,
        typer.Option("--reference", help="True responses of .txt files, one a line; repeat it for more."),
    ] = None,
    list_metrics: options.ListNames = False,
    out: options.OptionalOut = None,
    columns: options.Columns = None,
    confidence: options.Confidence = 0.95,
    replicates: options.Replicates = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Compute BLEU, ROUGE, F1, diversity and more of responses.

    Each system's figure has an interval, and every pair of systems is tested. BLEU and chrF are those of
    sacrebleu, from 0 to 100, ROUGE those of rouge-score. Metrics that need a model, such as
    bertscore and perplexity, are computed when they are named. --out writes the score of every response, as
    `palaver judge` does.

    Example: palaver metrics responses.jsonl --by bleu --by rouge_l --by distinct_2

    Example: palaver metrics mine.txt theirs.txt --reference true.txt --json

    Example: palaver metrics responses.jsonl --by bertscore --by perplexity=smollm2
    """
    if list_metrics:
        names = list(METRICS)
        if as_json:
            print_json(names)
        else:
            typer.echo("\n".join(names))
        return
    if not files:
        raise UsageError("name the file to score", "palaver metrics --help shows what it takes")
    options.refuse_source(out, *files, *(references or ()))
    options.claim_ratings(out, force)
    with progress() as tell:
        result = score_files(
            files,
            by,
            references=references or (),
            columns=options.parse_columns(columns),
            seed=seed,
            n_replicates=replicates or 1000,
            confidence=confidence,
            device=device,
            progress=tell,
        )
    n_written = 0 if out is None else write_frames(result.rating_frames(), out)
    if as_json:
        print_json(result.as_dict())
        return
    print_scores(result, Console())
    if out is not None:
        typer.echo(f"wrote {out}: {n_written:,} ratings")
        typer.echo(f"next: palaver study analyse {out}")
