"""`palaver personality distinguish`: can one tell from the words who speaks?"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console

from palaver.cli import options
from palaver.cli.messages import print_json, write_results
from palaver.cli.progress import progress
from palaver.engine import Engine
from palaver.errors import require
from palaver.files import write_atomically
from palaver.personality.classifiers import NAMES, SVM
from palaver.personality.comparison import SourceComparison, compare_sources
from palaver.personality.plan import QUICK, Settings
from palaver.personality.pools import Choice
from palaver.personality.recogniser import load_recogniser
from palaver.personality.results import Distinguishability
from palaver.reports.personality import (
    print_comparison,
    print_distinguishability,
    render_personality_report,
)


def settings_of(
    samples: int | None = None,
    size: int | None = None,
    repetitions: int | None = None,
    replicates: int | None = None,
    *,
    seed: int = 0,
    quick: bool = False,
    engine: Engine | str = "processes",
    **more: Any,
) -> Settings:
    """The protocol's numbers: what was asked for, then those of --quick, then the paper's."""
    asked = {"samples": samples, "size": size, "repetitions": repetitions, "replicates": replicates}
    chosen: dict[str, Any] = {**(QUICK if quick else {}), **more}
    chosen |= {name: n for name, n in asked.items() if n is not None}
    return Settings(seed=seed, engine=engine, **chosen)


def distinguish(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|CORPUS...",
            help=f"A corpus by name (friends), or dialogues or responses: {options.ANY_SHAPE}. "
            "Several are compared with each other.",
        ),
    ],
    columns: options.Columns = None,
    data: options.Data = None,
    by: Annotated[
        str, typer.Option(help="What is told apart: speaker, system, or another label.")
    ] = "speaker",
    character: options.Characters = None,
    min_utterances: options.MinUtterances = 2000,
    rename: options.Rename = None,
    system: options.OneSystem = None,
    drop_common: options.DropCommon = 0,
    recogniser: options.Recogniser = "default",
    lexicon: options.Lexicon = None,
    words: Annotated[int, typer.Option(min=0, help="Frequent words of the control; 0 for none.")] = 200,
    samples: Annotated[
        int | None, typer.Option(min=10, help="Samples of each character. [default: 250]")
    ] = None,
    size: options.SampleSize = None,
    repetitions: Annotated[
        int | None, typer.Option(min=2, help="Of the cross-validation. [default: 10]")
    ] = None,
    classifier: Annotated[
        str,
        typer.Option(help="What recovers the character; the paper shows svm.", **options.choices(NAMES)),
    ] = SVM,
    pools: Annotated[
        int | None, typer.Option(min=0, help="Resampled pools, for the interval. [default: 50]")
    ] = None,
    seed: options.Seed = 0,
    quick: options.Quick = False,
    engine: options.Engine = None,
    out: options.OptionalOut = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Do the words tell who speaks, and is that more than chance?

    Samples of each character's utterances become five trait scores, and a classifier recovers the character
    (Xing & Fernández 2018). Beside it stand pseudo-characters, a split by episode or context, and the most
    frequent words. Several sources are tested against each other, with the characters that all of them have.
    With --out, report.html and results.json are written into that folder.

    Example: palaver personality distinguish responses.jsonl --drop-common 100 --out distinguish

    Example: palaver personality distinguish friends speaker.jsonl personality.jsonl --drop-common 100
    """
    require("sklearn", "models")
    from palaver.personality.sources import distinguish as run_protocol

    options.claim_folder(out, force)
    settings = settings_of(
        samples,
        size,
        repetitions,
        pools,
        seed=seed,
        quick=quick,
        engine=engine or "processes",
        classifier=classifier,
    )
    choice = Choice(
        by=by,
        characters=tuple(character or ()),
        min_utterances=min_utterances,
        rename=options.parse_rename(rename),
        system=system,
        drop_common=drop_common,
    )
    how: dict[str, Any] = {
        "recogniser": load_recogniser(recogniser, lexicon=lexicon),
        "choice": choice,
        "settings": settings,
        "root": data,
        "columns": options.parse_columns(columns),
        "n_words": words,
    }
    result: Distinguishability | SourceComparison
    with progress() as tell:
        if len(sources) == 1:
            result = run_protocol(sources[0], **how, progress=tell)
        else:
            result = compare_sources(sources, **how, progress=tell)
    if as_json:
        print_json(result)
    elif isinstance(result, Distinguishability):
        print_distinguishability(result, Console())
    else:
        print_comparison(result, Console())
    if out is None:
        return
    if isinstance(result, Distinguishability):
        write_results(result, out, render_personality_report, to_stderr=as_json)
        return
    with write_atomically(out / "results.json") as file:
        file.write(result.to_json())
    for number, one in enumerate(result.results, start=1):
        write_results(one, out / str(number), render_personality_report, to_stderr=as_json)
