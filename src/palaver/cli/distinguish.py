"""`palaver personality distinguish`: can one tell from the words who speaks?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palaver.cli.personality import app

if TYPE_CHECKING:
    from palaver.personality.plan import Settings

Samples = Annotated[int | None, typer.Option(min=10, help="Samples of each character. [default: 250]")]
Size = Annotated[int | None, typer.Option(min=1, help="Utterances in a sample. [default: 500]")]
Repetitions = Annotated[int | None, typer.Option(min=2, help="Of the cross-validation. [default: 10]")]
Replicates = Annotated[
    int | None, typer.Option(min=0, help="Resampled pools for the interval. [default: 50]")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all that is drawn at random.")]
Quick = Annotated[
    bool, typer.Option("--quick", help="A first look: 100 samples, 3 repetitions, 20 resampled pools.")
]
Workers = Annotated[int, typer.Option(min=0, help="Processes and threads; 0 for one a core.")]


def settings_of(
    samples: int | None = None,
    size: int | None = None,
    repetitions: int | None = None,
    replicates: int | None = None,
    *,
    seed: int = 0,
    quick: bool = False,
    workers: int = 0,
    **more: Any,
) -> Settings:
    """The protocol's numbers: what was asked for, then those of --quick, then the paper's."""
    from palaver.personality.plan import QUICK, Settings

    asked = {"samples": samples, "size": size, "repetitions": repetitions, "replicates": replicates}
    chosen: dict[str, Any] = {**(QUICK if quick else {}), **more}
    chosen |= {name: n for name, n in asked.items() if n is not None}
    return Settings(seed=seed, workers=workers, **chosen)


@app.command()
def distinguish(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|CORPUS",
            help="A corpus by name (friends), a dialogue file, or the responses of palaver generate.",
        ),
    ],
    data: Annotated[Path | None, typer.Option(help="Folder of the corpora, for a corpus by name.")] = None,
    by: Annotated[
        str, typer.Option(help="What is told apart: speaker, system, or another label.")
    ] = "speaker",
    character: Annotated[
        list[str] | None, typer.Option(help="Only these; repeat it. [default: by --min-turns]")
    ] = None,
    min_turns: Annotated[
        int, typer.Option(min=1, help="Of transcripts: all who have at least as many turns.")
    ] = 2000,
    rename: Annotated[
        list[str] | None, typer.Option(help="OLD=NEW, for a name that is spelled in two ways; repeat it.")
    ] = None,
    system: Annotated[
        str | None, typer.Option(help="Of responses of several systems: only those of this one.")
    ] = None,
    drop_common: Annotated[
        int, typer.Option(min=0, help="Drop the N most frequent responses common to all (the paper: 100).")
    ] = 0,
    recogniser: Annotated[str, typer.Option(help="default, a file, or MODULE:FUNCTION.")] = "default",
    lexicon: Annotated[Path | None, typer.Option(help="A LIWC dictionary of your own (.dic).")] = None,
    words: Annotated[int, typer.Option(min=0, help="Frequent words of the control; 0 for none.")] = 200,
    samples: Samples = None,
    size: Size = None,
    repetitions: Repetitions = None,
    replicates: Replicates = None,
    seed: Seed = 0,
    quick: Quick = False,
    workers: Workers = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for report.html and results.json. [default: none]")
    ] = None,
) -> None:
    """Can one tell from the words who speaks, and is that more than chance?

    Samples of each character's utterances become five trait scores, and a classifier recovers the character
    (Xing & Fernández 2018). Beside it stand pseudo-characters, a split by episode or context, and the most
    frequent words.

    Example: palaver personality distinguish responses.jsonl --drop-common 100 --out distinguish
    """
    from palaver.errors import require

    require("sklearn", "models")

    from rich.console import Console

    from palaver.cli.progress import progress
    from palaver.files import check_writable, write_atomically
    from palaver.personality.pools import Choice
    from palaver.personality.protocol import distinguish as run_protocol
    from palaver.personality.recogniser import load_recogniser
    from palaver.personality.sources import read_pools
    from palaver.reports.personality import print_distinguishability, write_personality_report

    settings = settings_of(samples, size, repetitions, replicates, seed=seed, quick=quick, workers=workers)
    choice = Choice(
        by=by,
        characters=tuple(character or ()),
        min_turns=min_turns,
        rename=_renamed(rename or []),
        system=system,
        drop_common=drop_common,
    )
    if out is not None:
        check_writable(out)
    judge = load_recogniser(recogniser, lexicon=lexicon)
    with progress() as tell:
        pools = read_pools(source, judge, choice, root=data, n_words=words, workers=workers, tell=tell)
        found = run_protocol(pools, settings, tell=tell)
    print_distinguishability(found, Console())
    if out is not None:
        with write_atomically(out / "results.json") as file:
            file.write(found.to_json())
        report = write_personality_report(found, out / "report.html")
        typer.echo(f"report: {report}")


def _renamed(words: list[str]) -> dict[str, str]:
    from palaver.errors import UserError

    found = {}
    for word in words:
        old, equals, new = word.partition("=")
        if not (old and equals and new):
            raise UserError(f"--rename: expected OLD=NEW, such as Rachael=Rachel, found {word!r}")
        found[old] = new
    return found
