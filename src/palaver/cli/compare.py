"""`palaver compare`: which of two dialogues is better, learnt from the ratings people left."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from palaver.comparator.evaluation import PairResult
    from palaver.comparator.training_data import Pairs, RatedDialogues

app = typer.Typer(
    help="Learn from noisy ratings which dialogue is better, and compare with that.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class Method(StrEnum):
    paper = "paper"
    palaver = "palaver"


class Pooling(StrEnum):
    auto = "auto"
    cls = "cls"
    mean = "mean"


class Within(StrEnum):
    all = "all"
    group = "group"
    rater = "rater"
    system = "system"


@app.callback()
def _noun() -> None:
    """Learn from noisy ratings which dialogue is better, and compare with that."""


@app.command()
def train(
    ratings: Annotated[
        list[Path], typer.Option(help="Rated dialogues, JSON lines, packed or not; repeat it for more.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the stages; the same command goes on from there.")],
    dev_pairs: Annotated[
        Path | None, typer.Option(help='Compared pairs, JSON lines {a, b, better: "a" or "b"}.')
    ] = None,
    dev_dialogues: Annotated[
        list[Path] | None,
        typer.Option(help="The dialogues the pairs name. [default: they are among --ratings]"),
    ] = None,
    method: Annotated[
        Method,
        typer.Option(
            help="The stages of the paper, or ours: what raters differ in taken out, no fine-tuning."
        ),
    ] = Method.paper,
    preset: Annotated[
        str, typer.Option(help="Of the paper: what to train, see `palaver compare presets`; a name or a row.")
    ] = "cmade",
    flow: Annotated[
        list[Path] | None, typer.Option(help="More dialogues for stage 1, rated or not; repeat it.")
    ] = None,
    encoder: Annotated[
        str, typer.Option(help="minilm, a folder, or a name such as bert-base-uncased.")
    ] = "minilm",
    pooling: Annotated[
        Pooling, typer.Option(help="φ: the first state, the mean of all, or as the encoder was trained.")
    ] = Pooling.auto,
    epochs: Annotated[int, typer.Option(min=1, help="Of each stage that learns from ratings.")] = 3,
    flow_epochs: Annotated[int, typer.Option(min=1, help="Of stage 1.")] = 2,
    batch_size: Annotated[
        int, typer.Option(min=0, help="Dialogues of a step, all compared; 0: the whole training set.")
    ] = 32,
    learning_rate: Annotated[float, typer.Option(help="At its highest.")] = 5e-5,
    max_tokens: Annotated[
        int, typer.Option(min=2, help="Of a longer dialogue the end is kept; at most what the encoder takes.")
    ] = 512,
    k: Annotated[int, typer.Option(min=1, help="Neighbours in stages 2 and 3.")] = 50,
    within: Annotated[
        Within, typer.Option(help="Compare all dialogues, or only those of one sitting, rater or system.")
    ] = Within.all,
    scale: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LOW HIGH", help="Of the ratings. [default: read off each file]"),
    ] = None,
    min_turns: Annotated[int, typer.Option(min=1, help="Shorter dialogues are left out and counted.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute every stage anew.")] = False,
) -> None:
    """Train a comparator on ratings, by the stages of Liang et al. (2020) or by Palaver's own method.

    The stages are kept in the folder: the same command goes on where it was stopped.

    Example: palaver compare train --ratings chats.jsonl --dev-pairs pairs.jsonl --dev-dialogues dev.jsonl
    --out runs/comparator

    On several GPUs: accelerate launch --num_processes 4 -m palaver compare train …
    """
    from palaver.errors import require

    require("torch", "models")
    require("transformers", "models")
    from palaver.cli.progress import progress
    from palaver.comparator.cmade.pipeline import run_pipeline
    from palaver.comparator.cmade.presets import Settings, Training, find_preset
    from palaver.comparator.cmade.training import is_first_process
    from palaver.comparator.reading import read_pairs, read_rated
    from palaver.comparator.training_data import TrainingData

    wanted = find_preset(preset)
    settings = Settings(
        encoder=encoder,
        pooling=pooling.value,
        max_tokens=max_tokens,
        k=k,
        within=within.value,
        flow_epochs=flow_epochs,
        training=Training(epochs=epochs, batch_size=batch_size, learning_rate=learning_rate),
    ).check()
    rated = read_rated(ratings, scale=scale, min_turns=min_turns)
    _tell_ratings("rated dialogues", rated)
    more = read_rated(flow, min_turns=min_turns, need_rating=False) if flow else None
    if more is not None:
        _tell_ratings("more dialogues for stage 1", more)
    dev = pairs = None
    if dev_pairs is not None:
        dev = read_rated(dev_dialogues, need_rating=False) if dev_dialogues else rated
        pairs = read_pairs(dev_pairs, dev.index)
        if not dev_dialogues:
            dev, pairs = only_compared(rated, pairs)
        left = ", ".join(f"{count} {reason}" for reason, count in pairs.dropped.items())
        _say(f"compared pairs: {len(pairs):,}" + (f"; left out: {left}" if left else ""))
    sources = TrainingData.gather(rated, dev=dev, pairs=pairs, flow=more)
    if method is Method.palaver:
        from palaver.cli.compare_tool import train_palaver

        train_palaver(sources, out, encoder=encoder, seed=seed, device=device, fresh=fresh)
        return
    with progress() as tell:
        outcome = run_pipeline(
            wanted,
            sources,
            out,
            settings,
            seed=seed,
            device=device,
            fresh=fresh,
            progress=tell,
            say=_say,
        )
    for note in sources.notes:
        _say(note, "yellow")
    if outcome.on_pairs is not None:
        _say(f"{wanted.title}: {describe_result(outcome.on_pairs)}")
        if wanted.needs_pairs:
            _say("these pairs were used in training: measure on others before you trust it", "yellow")
    if is_first_process():
        from palaver.cli.compare_tool import record_comparator
        from palaver.reports.compare_pages import preset_page
        from palaver.reports.page import write_page

        record = record_comparator(f"palaver compare train --preset {preset}", sources, seed, settings)
        _say(f"report: {write_page(preset_page(outcome, sources, record), out / 'report.html')}")
    _say(f"comparator: {outcome.folder}")


@app.command()
def presets() -> None:
    """List the eleven rows of Table 4 of Liang et al. (2020) and what the paper measured.

    Example: palaver compare presets
    """
    from palaver.comparator.cmade.presets import PRESETS

    typer.echo(
        "row  preset          what is trained on                                       paper: accuracy  kappa"
    )
    for preset in PRESETS.values():
        if preset.stages == ("rate",):
            about = f"ratings, {preset.objective}" + (" and development pairs" if preset.dev else "")
        else:
            about = ", then ".join(_STAGES[stage] for stage in preset.stages)
        typer.echo(
            f"{preset.row:>3}  {preset.name:<14}  {about:<63}  {preset.accuracy:.3f}   {preset.kappa:.3f}"
        )


_STAGES = {"flow": "spoilt dialogues", "smooth": "smoothed ratings", "shapley": "cleaned ratings"}


def _say(text: str, colour: str | None = None) -> None:
    """Of several processes only the first speaks."""
    from palaver.comparator.cmade.training import is_first_process

    if is_first_process():
        typer.secho(text, fg=colour)


def describe_result(found: PairResult) -> str:
    """One line: accuracy with its interval, kappa with its error."""
    return (
        f"accuracy {found.accuracy:.3f} (95% {found.low:.3f} to {found.high:.3f}), "
        f"kappa {found.kappa:.3f} ± {found.kappa_se:.3f}, {found.n:,} pairs"
    )


def _tell_ratings(what: str, found: RatedDialogues) -> None:
    low, high = found.scale
    rated = f", rated from {low:g} to {high:g}" if any(row.rating is not None for row in found.rows) else ""
    _say(f"{what}: {len(found):,}{rated}")
    for reason, count in found.dropped.items():
        _say(f"  left out {count:,}: {reason}", "yellow")
    for note in found.notes:
        _say(f"  {note}", "yellow")


def only_compared(rated: RatedDialogues, pairs: Pairs) -> tuple[RatedDialogues, Pairs]:
    """Those of the rated dialogues that pairs name, which are held out, and the pairs by their new rows."""
    import dataclasses

    import numpy as np

    used = pairs.used
    first, second = (np.searchsorted(used, rows) for rows in (pairs.first, pairs.second))
    return rated.take(used), dataclasses.replace(pairs, first=first, second=second)
