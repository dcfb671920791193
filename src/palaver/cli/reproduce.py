"""`palaver reproduce`: a paper's published tables beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from palaver.cli import options
from palaver.cli.messages import print_json, write_results
from palaver.cli.personality_distinguish import settings_of
from palaver.cli.progress import progress
from palaver.errors import require
from palaver.files import check_writable, write_atomically
from palaver.models.encoders import Places
from palaver.personality.recogniser import load_recogniser
from palaver.probes.vectors import cache_folder
from palaver.reports.page import write_page
from palaver.reports.personality import render_personality_report
from palaver.reports.probes import render_probe_report
from palaver.reproduce import probes as probe_tables
from palaver.reproduce import rankme as rankme_tables
from palaver.reproduce.comparison import Comparison, print_comparison


def rankme(
    data: options.Data = None,
    seed: options.Seed = 0,
    replicates: options.Replicates = None,
    as_json: options.Json = False,
) -> None:
    """Tables 2, 3 and 4 of RankME (Novikova, Dušek & Rieser 2018).

    --data is the folder of the release (stp1_likert.zip and the others), or one that holds it as rankme.
    Exits with 1 if a cell that is known to match no longer does.

    Example: palaver reproduce rankme --data RankME/data
    """
    folder = options.corpora_folder(data, "rankme")
    _show(rankme_tables.reproduce(folder, seed=seed, n_replicates=replicates or 10_000), as_json)


def judges(
    data: options.Data = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """How far annotators and judges agree, as USR (Mehri & Eskenazi 2020) has it.

    --data is the folder of usr_topical_chat.json.gz, or one that holds it as rated. Beside the paper's judge
    stand metrics of ours on the same responses. Exits with 1 if a cell that is known to match no longer does.

    Example: palaver reproduce judges --data data/rated
    """
    from palaver.reproduce.judges import reproduce

    _show(reproduce(options.corpora_folder(data, "rated"), seed=seed), as_json)


def _show(comparison: Comparison, as_json: bool) -> None:
    """A paper's figures beside ours; it fails where a cell that is known to match no longer does."""
    if as_json:
        print_json(comparison)
    else:
        print_comparison(comparison, Console())
    if comparison.lost:
        raise typer.Exit(1)


def personality(
    data: options.Data = None,
    speaker_responses: Annotated[
        Path | None, typer.Option(help="Responses of a Speaker model as each character (palaver generate).")
    ] = None,
    personality_responses: Annotated[
        Path | None, typer.Option(help="Responses of a Personality model as each character.")
    ] = None,
    extreme_responses: Annotated[
        Path | None, typer.Option(help="Responses of a Personality model with one extreme trait each.")
    ] = None,
    speaker_checkpoint: Annotated[
        str | None, typer.Option(help="A Speaker model, for Table 3 and, with --contexts, for Table 1.")
    ] = None,
    personality_checkpoint: Annotated[
        str | None,
        typer.Option(help="A Personality model, for Table 3 and, with --contexts, Tables 1 and 2."),
    ] = None,
    contexts: options.OptionalContexts = None,
    limit: options.Limit = None,
    device: options.Device = "auto",
    recogniser: options.Recogniser = "default",
    lexicon: options.Lexicon = None,
    seed: options.Seed = 0,
    quick: options.Quick = False,
    engine: options.Engine = None,
    out: options.OptionalOut = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Tables 1, 2 and 3 of Xing & Fernández (2018).

    How distinguishable are characters by their traits? Gold transcripts and controls need the scripts alone
    (friends_turns.csv and bbt_turns.csv in --data, packed or not); the Speaker and Personality rows need
    responses, or checkpoints and contexts. Exits with 1 if the transcripts are recovered less well than in
    the paper.

    Example: palaver reproduce personality --data scripts --out personality
    """
    require("sklearn", "models")
    from palaver.reproduce.personality import Responses, print_reproduction, reproduce

    if not (speaker_checkpoint or personality_checkpoint):  # these go on with the responses in the folder
        options.refuse_existing(out, force)
    data = options.corpora_folder(data, "scripts")
    settings = settings_of(seed=seed, quick=quick, engine=engine or "processes", unscaled_words=True)
    judge = load_recogniser(recogniser, lexicon=lexicon)
    if out is not None:
        check_writable(out)
    responses = Responses(
        speaker=speaker_responses, personality=personality_responses, extremes=extreme_responses
    )
    with progress() as tell:
        examples: list[tuple[str, str, str]] = []
        if speaker_checkpoint or personality_checkpoint:
            from palaver.reproduce.personality_examples import from_checkpoints

            examples, responses = from_checkpoints(
                data, judge, settings, speaker_checkpoint, personality_checkpoint, responses,
                contexts=contexts, folder=out, limit=limit, progress=tell,
                device=None if device == "auto" else device,
            )  # fmt: skip
        tables = reproduce(
            data, judge, settings=settings, responses=responses, examples=examples, progress=tell
        )
    if as_json:
        print_json(tables)
    else:
        print_reproduction(tables, Console())
    if out is not None:
        for number, (title, result) in enumerate(tables.results.items(), start=1):
            stem = "-".join("".join(c if c.isalnum() else " " for c in title.casefold()).split())
            with write_atomically(out / f"{number}-{stem}.json") as file:
                file.write(result.to_json())
            page = write_page(render_personality_report(result), out / f"{number}-{stem}.html")
            typer.echo(f"report: {page}", err=as_json)
    if tables.missed:
        raise typer.Exit(1)


def probes(
    data: options.Data = None,
    triplets: options.TripletFile = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=FILE in place of a default (infersent=infersent1.pkl,glove.txt), or one more."
        ),
    ] = None,
    cache: options.VectorCache = None,
    device: options.Device = "auto",
    seed: options.Seed = 0,
    out: options.OptionalOut = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Tables 2 to 6 of Zhu, Li & de Melo (2018): what encoders notice.

    --data, or sentences in it, holds SICK, MSR Paraphrase, the Treebank sample and GloVe vectors. Sent2Vec,
    SkipThought and InferSent are those trained here unless you give the authors' weights. Exits with 1 if an
    average (GloVe, P-Means) that is known to be close is more than 5 points of accuracy from the paper's.

    Example: palaver reproduce probes --data data/sentences
    """
    options.claim_folder(out, force)
    with progress() as tell:
        tables = probe_tables.reproduce(
            Places(data, options.torch_device(device)),
            triplets=triplets,
            weights=weights or (),
            cache=cache or cache_folder(),
            seed=seed,
            progress=tell,
        )
    if as_json:
        print_json(tables)
    else:
        probe_tables.print_reproduction(tables, Console())
    if out is not None:
        write_results(tables.result, out, render_probe_report, to_stderr=as_json)
    if tables.lost:
        raise typer.Exit(1)
