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


@app.command()
def personality(
    data: Annotated[
        Path, typer.Option(help="The folder with friends_turns.csv and bbt_turns.csv, packed or not.")
    ],
    speaker_responses: Annotated[
        Path | None, typer.Option(help="Responses of a Speaker model as each character (palaver generate).")
    ] = None,
    personality_responses: Annotated[
        Path | None, typer.Option(help="Responses of a Personality model as each character.")
    ] = None,
    extreme_responses: Annotated[
        Path | None, typer.Option(help="Responses of a Personality model as Open, Conscientious, Extravert …")
    ] = None,
    speaker_checkpoint: Annotated[
        str | None, typer.Option(help="A Speaker model, for Table 3 and, with --contexts, for Table 1.")
    ] = None,
    personality_checkpoint: Annotated[
        str | None,
        typer.Option(help="A Personality model, for Table 3 and, with --contexts, Tables 1 and 2."),
    ] = None,
    contexts: Annotated[
        str | None, typer.Option(help="What the checkpoints reply to: a .txt, a dialogue file or a corpus.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N contexts.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda …")] = None,
    recogniser: Annotated[str, typer.Option(help="default, a file, or MODULE:FUNCTION.")] = "default",
    lexicon: Annotated[Path | None, typer.Option(help="A LIWC dictionary of your own (.dic).")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is drawn at random.")] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: 100 samples, 3 repetitions, 20 resampled pools.")
    ] = False,
    workers: Annotated[int, typer.Option(min=0, help="Processes and threads; 0 for one a core.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for reports, results and responses.")] = None,
) -> None:
    """Tables 1, 2 and 3 of Xing & Fernández (2018): how distinguishable characters are by their traits.

    Gold transcripts and controls need the scripts alone; the Speaker and Personality rows need responses, or
    checkpoints and contexts. Exits with 1 if the transcripts are recovered less well than in the paper.

    Example: palaver reproduce personality --data scripts --out personality
    """
    from palaver.errors import require

    require("sklearn", "models")

    from rich.console import Console

    from palaver.cli.distinguish import settings_of
    from palaver.cli.progress import progress
    from palaver.files import check_writable, write_atomically
    from palaver.personality.recogniser import load_recogniser
    from palaver.reports.personality import write_personality_report
    from palaver.reproduce.personality import Responses, reproduce
    from palaver.reproduce.personality_print import print_reproduction

    settings = settings_of(seed=seed, quick=quick, workers=workers, unscaled_words=True)
    judge = load_recogniser(recogniser, lexicon=lexicon)
    if out is not None:
        check_writable(out)
    given = Responses(
        speaker=speaker_responses, personality=personality_responses, extremes=extreme_responses
    )
    with progress() as tell:
        shown: list[tuple[str, str, str]] = []
        if speaker_checkpoint or personality_checkpoint:
            from palaver.reproduce.personality_examples import from_checkpoints

            shown, given = from_checkpoints(
                data, judge, settings, speaker_checkpoint, personality_checkpoint, given,
                contexts=contexts, folder=out, limit=limit, device=device, tell=tell,
            )  # fmt: skip
        found = reproduce(data, judge, settings=settings, responses=given, examples=shown, tell=tell)
    print_reproduction(found, Console())
    if out is not None:
        for number, (title, result) in enumerate(found.results.items(), start=1):
            stem = "-".join("".join(c if c.isalnum() else " " for c in title.casefold()).split())
            with write_atomically(out / f"{number}-{stem}.json") as file:
                file.write(result.to_json())
            typer.echo(f"report: {write_personality_report(result, out / f'{number}-{stem}.html')}")
    if found.missed:
        raise typer.Exit(1)


@app.command()
def probes(
    data: Annotated[
        Path,
        typer.Option(help="The folder with SICK, MSR Paraphrase, the Treebank sample and GloVe vectors."),
    ],
    triplets: Annotated[
        Path | None, typer.Option(help="Triplets (palaver probe triplets). [default: made from the corpora]")
    ] = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=FILE in place of a default (infersent=infersent1.pkl,glove.txt), or one more."
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Where vectors are kept. [default: ~/.cache/palaver/vectors]"),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda …")] = "cpu",
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the triplets that are drawn and of the bootstrap.")
    ] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for report.html and results.json.")] = None,
) -> None:
    """Tables 2 to 6 of Zhu, Li & de Melo (2018): what sentence encoders notice.

    Sent2Vec, SkipThought and InferSent are those trained here unless you give the authors' weights. Exits
    with 1 if the averages (GloVe, P-Means) are more than 5 points of accuracy from the paper's.

    Example: palaver reproduce probes --data data/sentences
    """
    from rich.console import Console

    from palaver.cli.progress import progress
    from palaver.files import check_writable, write_atomically
    from palaver.models.encoders import Places
    from palaver.probes.vectors import cache_folder
    from palaver.reports.probes import write_probe_report
    from palaver.reproduce.probes import print_reproduction, reproduce

    if out is not None:
        check_writable(out)
    with progress() as tell:
        found = reproduce(
            Places(data, device), triplets=triplets, given=encoder or (), cache=cache or cache_folder(),
            seed=seed, tell=tell,
        )  # fmt: skip
    print_reproduction(found, Console())
    if out is not None:
        with write_atomically(out / "results.json") as file:
            file.write(found.result.to_json())
        typer.echo(f"report: {write_probe_report(found.result, out / 'report.html')}")
    if found.far:
        raise typer.Exit(1)
