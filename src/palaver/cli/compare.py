"""`palaver compare`: which of two dialogues is better, learnt from the ratings people left."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from palaver.cli import completion, options
from palaver.cli.messages import print_json
from palaver.cli.progress import progress
from palaver.comparator.cmade.presets import PRESETS, Settings, Training, find_preset
from palaver.errors import require
from palaver.reports.page import write_page
from palaver.schema import RunRecord, record_run
from palaver.tabular import show_fixed

if TYPE_CHECKING:  # what needs torch is imported in the functions
    from palaver.comparator.evaluation import PairResult
    from palaver.comparator.training_data import RatedDialogues, TrainingData

_KINDS = get_type_hints(Settings)


def train(
    ratings: Annotated[
        list[Path], typer.Option(help=f"Rated dialogues: {options.ANY_SHAPE}; repeat it for more.")
    ],
    out: options.Out,
    dev_pairs: options.DevPairs = None,
    dev_dialogues: options.DevDialogues = None,
    method: Annotated[
        str,
        typer.Option(
            help="The stages of the paper, or ours: what raters differ in taken out, no fine-tuning.",
            **options.choices(("paper", "palaver")),
        ),
    ] = "paper",
    preset: Annotated[
        str,
        typer.Option(
            help="Of the paper: what to train, see `palaver compare presets`; a name or a row.",
            autocompletion=completion.comparator_recipes,
        ),
    ] = "cmade",
    flow: Annotated[
        list[Path] | None, typer.Option(help="More dialogues for stage 1, rated or not; repeat it.")
    ] = None,
    encoder: options.Encoder = "minilm",
    pooling: Annotated[
        str,
        typer.Option(
            help="φ: the first state, the mean of all, or as the encoder was trained.",
            **options.choices(get_args(_KINDS["pooling"])),
        ),
    ] = "auto",
    epochs: Annotated[int, typer.Option(min=1, help="Of each stage that learns from ratings.")] = 3,
    flow_epochs: Annotated[int, typer.Option(min=1, help="Of stage 1.")] = 2,
    batch_size: Annotated[
        int, typer.Option(min=0, help="Dialogues of a step, all compared; 0: the whole training set.")
    ] = 32,
    learning_rate: Annotated[float, typer.Option(help="At its highest.")] = 5e-5,
    max_tokens: Annotated[
        int, typer.Option(min=2, help="Of a longer dialogue the end is kept; at most what the encoder takes.")
    ] = 512,
    frozen_layers: Annotated[
        int,
        typer.Option(
            min=0, help="Lower layers of the encoder that are not trained: 4 of MiniLM's 6 on a CPU."
        ),
    ] = 0,
    k: Annotated[int, typer.Option(min=1, help="Neighbours in stages 2 and 3.")] = 50,
    within: Annotated[
        str,
        typer.Option(
            help="Compare all dialogues, or only those of one sitting, rater or system.",
            **options.choices(get_args(_KINDS["within"])),
        ),
    ] = "all",
    scale: options.RatingScale = None,
    min_turns: options.MinTurns = 2,
    columns: options.Columns = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    force: options.Force = False,
) -> None:
    """Train a comparator on ratings that people left.

    By the stages of Liang et al. (2020) or by Palaver's own method. The stages are kept in the folder: the
    same command goes on where it was stopped. Without --dev-dialogues the pairs name rated dialogues.

    Example: palaver compare train --ratings chats.jsonl --dev-pairs pairs.jsonl --dev-dialogues dev.jsonl
    --out runs/comparator

    On several GPUs: accelerate launch --num_processes 4 -m palaver compare train ...
    """
    require("torch", "models")
    require("transformers", "models")
    from palaver.comparator.cmade.pipeline import run_pipeline
    from palaver.comparator.cmade.training import is_first_process
    from palaver.comparator.reading import read_pairs, read_rated
    from palaver.comparator.training_data import TrainingData

    wanted = find_preset(preset)
    settings = Settings(
        encoder=encoder,
        pooling=pooling,  # type: ignore[arg-type]  # one of its names
        max_tokens=max_tokens,
        frozen_layers=frozen_layers,
        k=k,
        within=within,  # type: ignore[arg-type]
        flow_epochs=flow_epochs,
        training=Training(epochs=epochs, batch_size=batch_size, learning_rate=learning_rate),
    ).check()
    rated = read_rated(ratings, scale=scale, min_turns=min_turns, columns=options.parse_columns(columns))
    _tell_ratings("rated dialogues", rated)
    more = read_rated(flow, min_turns=min_turns, need_rating=False) if flow else None
    if more is not None:
        _tell_ratings("more dialogues for stage 1", more)
    dev = pairs = None
    if dev_pairs is not None:
        dev = read_rated(dev_dialogues, need_rating=False) if dev_dialogues else None
        pairs = read_pairs(dev_pairs, (dev or rated).index)
        left = ", ".join(f"{count} {reason}" for reason, count in pairs.dropped.items())
        _say(f"compared pairs: {len(pairs):,}" + (f"; left out: {left}" if left else ""))
    sources = TrainingData.gather(rated, dev=dev, pairs=pairs, flow=more)
    for note in sources.notes:
        _say(note, "yellow")
    if method == "palaver":
        _train_palaver(sources, out, encoder=encoder, seed=seed, device=device, fresh=force)
        return
    with progress() as tell:
        outcome = run_pipeline(
            wanted,
            sources,
            out,
            settings,
            seed=seed,
            device=device,
            fresh=force,
            progress=tell,
            say=_say,
        )
    if outcome.on_pairs is not None:
        _say(f"{wanted.title}: {describe_result(outcome.on_pairs)}")
        if wanted.needs_pairs:
            _say("these pairs were used in training: measure on others before you trust it", "yellow")
    if is_first_process():
        from palaver.reports.compare import preset_page

        record = record_comparator(f"palaver compare train --preset {preset}", sources, seed, settings)
        _say(f"report: {write_page(preset_page(outcome, sources, record), out / 'report.html')}")
    _say(f"comparator: {outcome.folder}")


def presets(as_json: options.Json = False) -> None:
    """List the rows of Table 4 of Liang et al. (2020) and its figures.

    Example: palaver compare presets
    """
    if as_json:
        print_json(list(PRESETS.values()))
        return
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


def describe_result(result: PairResult) -> str:
    """One line: accuracy with its interval, kappa with its error."""
    return (
        f"accuracy {result.accuracy:.3f} (95% {result.low:.3f} to {result.high:.3f}), "
        f"kappa {show_fixed(result.kappa, 3)} ± {result.kappa_se:.3f}, {result.n:,} pairs"
    )


def _tell_ratings(what: str, dialogues: RatedDialogues) -> None:
    low, high = dialogues.scale
    is_rated = any(row.rating is not None for row in dialogues.rows)
    _say(f"{what}: {len(dialogues):,}" + (f", rated from {low:g} to {high:g}" if is_rated else ""))
    for reason, count in dialogues.dropped.items():
        _say(f"  left out {count:,}: {reason}", "yellow")
    for note in dialogues.notes:
        _say(f"  {note}", "yellow")


def _train_palaver(
    sources: TrainingData, out: Path, *, encoder: str, seed: int, device: str, fresh: bool
) -> None:
    """`palaver compare train --method palaver`, once the files are read."""
    where = options.torch_device(device)
    from palaver.comparator.method import MethodSettings
    from palaver.comparator.training import train_palaver as run
    from palaver.reports.compare import method_page, notes_on

    with progress() as tell:
        trained = run(
            sources, out, settings=MethodSettings(seed=seed), encoder=encoder, device=where, fresh=fresh,
            progress=tell, say=typer.echo,
        )  # fmt: skip
    fitted = trained.fitted
    for note in fitted.notes:
        typer.secho(note, fg="yellow")
    if fitted.on_ratings is not None:
        typer.echo(f"held-out ratings, within a sitting: {describe_result(fitted.on_ratings)}")
    if fitted.longer_on_ratings is not None:
        typer.echo(f"  the same if longer wins: {describe_result(fitted.longer_on_ratings)}")
    if fitted.on_pairs is not None:
        typer.echo(f"compared pairs (they fix the unit, no more): {describe_result(fitted.on_pairs)}")
    if fitted.calibration is not None:
        typer.echo(f"calibration error {fitted.calibration.ece:.3f}")
    run_record = record_comparator(
        "palaver compare train --method palaver", sources, seed, fitted.settings, encoder=encoder
    )
    page = method_page(fitted, run_record, [*notes_on(sources.ratings), *sources.notes])
    typer.echo(f"report: {write_page(page, Path(out) / 'report.html')}")
    typer.echo(f"comparator: {trained.folder}")


def record_comparator(
    command: str, sources: TrainingData, seed: int, settings: Any, **more: object
) -> RunRecord:
    """What a page says at its foot: settings, seed, versions, hashes of what was read."""
    given = {"ratings": sources.ratings, "dialogues of pairs": sources.dev, "pairs": sources.pairs}
    return record_run(
        command,
        seed=seed,
        config={**dataclasses.asdict(settings), **more},
        data={name: data.digest for name, data in given.items() if data is not None},
        packages=("palaver", "numpy", "scipy", "torch", "transformers"),
    )
