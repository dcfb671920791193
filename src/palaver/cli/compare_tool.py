"""`palaver compare score | pair | rank | clean`: a comparator at work."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from palaver.cli import options
from palaver.cli.compare import record_comparator
from palaver.cli.messages import print_json
from palaver.cli.progress import progress
from palaver.errors import DataError, UsageError, UserError, nearest, require
from palaver.files import check_readable, check_writable
from palaver.judges import judge
from palaver.judges.ranking import rank_systems, read_scores
from palaver.readers.roles import is_silent
from palaver.reports.compare import print_cleaned, print_scores, write_cleaned
from palaver.reports.judges import print_ranking
from palaver.reports.names import shorten
from palaver.tabular import show_fixed

if TYPE_CHECKING:  # what needs torch is imported in the functions
    from palaver.comparator.training_data import RatedDialogues
    from palaver.schema import Dialogue


def _device(name: str) -> str:
    require("transformers", "models")
    return options.torch_device(name)


def score(
    file: Annotated[
        Path,
        typer.Argument(help=f"Dialogues, or responses with their contexts: {options.ANY_SHAPE}."),
    ],
    out: options.Out,
    comparator: options.Comparator = "default",
    turns: Annotated[
        int, typer.Option(min=0, help="Look for the costliest turn in the N worst dialogues.")
    ] = 100,
    all_turns: Annotated[
        bool, typer.Option("--all-turns", help="Look for the costliest turn in every dialogue.")
    ] = False,
    min_turns: options.MinTurns = 2,
    columns: options.Columns = None,
    engine: options.Engine = None,
    shard_size: Annotated[int, typer.Option(min=1, help="Dialogues that are in memory at once.")] = 1000,
    device: options.Device = "auto",
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Score every dialogue or response of a file.

    Each gets a number, its interval, and the turn that costs most, as JSON lines, worst first. Differences of
    scores are log-odds: 1 more is better with 73%, 2 more with 88%. Each worker of an --engine has a
    comparator of its own.

    Example: palaver compare score chats.jsonl --out scores.jsonl
    """
    _device(device)
    from palaver.comparator.file_scores import score_file
    from palaver.comparator.scorer import load_scorer

    check_readable(file)
    if out.is_dir():
        raise UserError(f"{out} is a folder", f"name a file in it, such as {out / 'scores.jsonl'}")
    if out.exists() and out.samefile(file):
        raise UsageError("--out is the file of the dialogues itself", "choose another name")
    options.refuse_existing(out, force)
    check_writable(out.parent)
    if comparator != "default":
        load_scorer(comparator, device="cpu")  # mistakes show before the work, not in it
    with progress() as tell:
        summary = score_file(
            file,
            out,
            comparator=comparator,
            device=device,
            engine=engine or "local",
            turns=None if all_turns else turns,
            min_turns=min_turns,
            shard_size=shard_size,
            columns=options.parse_columns(columns),
            progress=lambda what, done, total: tell(f"{done:,} dialogues scored", 0, 0),
        )
    if as_json:
        lowest = [row.to_json() for row in summary.lowest]
        print_json({**dataclasses.asdict(summary), "lowest": lowest, "out": out})
        return
    for note, n in summary.notes.items():
        typer.secho(f"{note} ({n:,})" if n else note, fg="yellow")
    print_scores(summary, Console())
    typer.echo(f"scores: {out}")
    if summary.n_systems > 1:
        typer.echo(f"next: palaver compare rank {out}")


def pair(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A", help="A file with one dialogue, FILE#ID, FILE#ID@SYSTEM (responses), or an id."
        ),
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="What it is compared with.")],
    dialogues: Annotated[Path | None, typer.Option(help="The file in which A and B are ids.")] = None,
    columns: options.Columns = None,
    comparator: options.Comparator = "default",
    device: options.Device = "auto",
    as_json: options.Json = False,
) -> None:
    """Compare two dialogues or responses: the probability that A is better than B.

    Example: palaver compare pair chats.jsonl#17 chats.jsonl#23

    Responses of two systems to one context: palaver compare pair r.jsonl#c1@mine r.jsonl#c1@yours
    """
    where = _device(device)
    from palaver.comparator.coherence import MOST_TURNS
    from palaver.comparator.reading import name_of
    from palaver.comparator.scorer import is_english, load_scorer

    renamed = options.parse_columns(columns)
    first, second = _one(a, dialogues, renamed), _one(b, dialogues, renamed)
    scorer = load_scorer(comparator, device=where)
    notes = []
    for side, dialogue in (("A", first), ("B", second)):
        if is_silent(dialogue):
            notes.append(f"the system of {side} says nothing: put at the bottom by rule")
        if not is_english(dialogue):
            notes.append(f"{side} does not look English: do not believe its score")
        if scorer.is_wordy(dialogue):
            far = "says far more at a time than those the comparator learnt from"
            notes.append(f"the system of {side} {far}: do not believe its score")
        if len(dialogue.turns) > MOST_TURNS:
            notes.append(f"{side} is long: the meaning of its last {MOST_TURNS:,} turns is looked at")
    names = (first.id, second.id) if first.id != second.id else (name_of(first), name_of(second))
    notes += scorer.notes
    scores = scorer.score([first, second])
    probability = scorer.probability(first, second)
    a_is_better = probability >= 0.5
    same = first.turns == second.turns
    undecided = same or abs(probability - 0.5) < 0.005  # it would be printed as 50%
    turn = None if undecided else scorer.worst_turns([second if a_is_better else first])[0]
    if as_json:
        sides = [
            {"id": one.id, "system": one.labels.get("system"), "turns": len(one.turns)}
            | {name: float(getattr(scores, name)[i]) for name in ("score", "low", "high")}
            for i, one in enumerate((first, second))
        ]
        better = None if undecided else "A" if a_is_better else "B"
        print_json(
            {
                "A": sides[0],
                "B": sides[1],
                "probability": probability,
                "better": better,
                "costs_most": turn,
                "notes": notes,
            }
        )
        return
    for letter, name, dialogue, i in (("A", names[0], first, 0), ("B", names[1], second, 1)):
        low, high = scores.low[i], scores.high[i]
        between = f" (95% {show_fixed(low)} to {show_fixed(high)})" if low == low else ""
        typer.echo(
            f"{letter}  {name}: score {show_fixed(scores.score[i])}{between}, {len(dialogue.turns)} turns"
        )
    for note in notes:
        typer.secho(note, fg="yellow")
    if same:
        typer.secho("the two dialogues have the same turns", fg="yellow")
        return
    if undecided:
        typer.secho("it cannot tell which is better", bold=True)
        return
    better, worse = names if a_is_better else reversed(names)
    certainty = max(probability, 1 - probability)
    percent = "more than 99%" if certainty > 0.99 else f"{certainty:.0%}"
    typer.secho(f"{better} is better than {worse} with {percent}", bold=True)
    if turn is not None:
        said = shorten(turn.text, 400)
        typer.echo(f"what costs {worse} most ({show_fixed(turn.gain)}): turn {turn.turn}: {said}")


def rank(
    file: Annotated[
        Path,
        typer.Argument(
            help=f"Dialogues or responses: {options.ANY_SHAPE}; or what `palaver compare score` wrote."
        ),
    ],
    columns: options.Columns = None,
    comparator: options.Comparator = "default",
    replicates: options.Replicates = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    as_json: options.Json = False,
) -> None:
    """Rank systems by their dialogues or responses.

    With the statistics that rank by people's ratings. What shares a sitting or a context is compared within
    it; dialogues that share none are compared by their means.

    Example: palaver compare rank scores.jsonl
    """
    scores = read_scores(file)
    left_out: Mapping[str, int] = {}
    notes: Sequence[str] = ()
    if scores is not None:
        ratings, notes = scores.ratings, scores.notes
    else:
        with progress() as tell:
            result = judge(
                file,
                [f"comparator={comparator}"],
                columns=options.parse_columns(columns),
                device=_device(device),
                progress=tell,
            )
        ratings, left_out, notes = result.frame, result.left_out, result.notes
    analysis = rank_systems(ratings, n_replicates=replicates or 1000, confidence=confidence, seed=seed)
    if as_json:
        notes = [*notes, *analysis.reading.notes, *analysis.notes]
        print_json({"ranking": analysis.ranking, "left_out": left_out, "notes": notes, "run": analysis.run})
        return
    for reason, n in left_out.items():
        typer.secho(f"left out {n:,}: {reason}", fg="yellow")
    for note in notes:
        typer.secho(note, fg="yellow")
    print_ranking(analysis, Console())


def clean(
    ratings: Annotated[
        list[Path], typer.Argument(help=f"Rated dialogues that name their raters: {options.ANY_SHAPE}.")
    ],
    out: options.Out,
    dev_pairs: options.DevPairs = None,
    dev_dialogues: options.DevDialogues = None,
    scale: options.RatingScale = None,
    columns: options.Columns = None,
    encoder: options.Encoder = "minilm",
    drop: Annotated[
        float, typer.Option(help="Raters with less trust are dropped (1: the common rater).")
    ] = 0.4,
    doubt: Annotated[float, typer.Option(help="Raters with less trust are suspicious.")] = 0.7,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Judge ratings: keep, drop or look at again, and why.

    A model learns from all other raters what a rater's dialogues are worth; who rates past that, gives
    everything the same or types the same again is found. Compared pairs add Shapley values of ratings and
    raters. Writes ratings.jsonl, raters.jsonl, kept.jsonl (the dialogues whose ratings are kept) and
    report.html; nothing is removed from your files.

    Example: palaver compare clean ratings.jsonl --out cleaned
    """
    where = _device(device)
    require("sklearn", "models")
    from palaver.comparator.cleaning import CleanSettings
    from palaver.comparator.cleaning import clean as clean_ratings
    from palaver.comparator.method import MethodSettings
    from palaver.comparator.reading import read_pairs, read_rated
    from palaver.comparator.representation import represent, turn_encoder
    from palaver.comparator.training_data import TrainingData

    if (dev_pairs is None) != (not dev_dialogues):
        raise UsageError("--dev-pairs and --dev-dialogues go together")
    settings = CleanSettings(drop=drop, doubt=doubt)
    options.claim_folder(out, force)
    rated = read_rated(ratings, scale=scale, columns=options.parse_columns(columns))
    if not as_json:
        _tell(rated)
    dev = read_rated(dev_dialogues, need_rating=False) if dev_dialogues else None
    pairs = read_pairs(dev_pairs, dev.index) if dev is not None and dev_pairs is not None else None
    encode = turn_encoder(encoder, device=where)
    with progress() as tell:
        x = represent(rated.dialogues, encode, progress=tell)
        dev_x = represent(dev.dialogues, encode, progress=tell) if dev is not None else None
        cleaned = clean_ratings(
            rated, x, pairs=pairs, pairs_x=dev_x, settings=settings,
            method=MethodSettings(heads=1, seed=seed), progress=tell,
        )  # fmt: skip
    record = record_comparator(
        "palaver compare clean", TrainingData(rated, dev=dev, pairs=pairs), seed, settings, encoder=encoder
    )
    report = write_cleaned(cleaned, rated, out, record)
    if as_json:
        about = {"left_out": rated.dropped, "notes": [*rated.notes, *cleaned.notes], "report": report}
        found = {
            name: getattr(cleaned, name) for name in ("counts", "reasons", "accuracy", "agreement", "raters")
        }
        print_json({**found, **about})
        return
    print_cleaned(cleaned, Console())
    typer.echo(f"report: {report}")


def _tell(ratings: RatedDialogues) -> None:
    for reason, n in ratings.dropped.items():
        typer.secho(f"left out {n:,}: {reason}", fg="yellow")
    for note in ratings.notes:
        typer.secho(note, fg="yellow")


def _one(word: str, dialogues: Path | None, columns: Mapping[str, str]) -> Dialogue:
    """The dialogue that `word` names: an id in `dialogues`, FILE#ID, or a file that holds one."""
    from palaver.comparator.reading import name_of, read_rated

    path, name = _place_of(word, dialogues)
    rated = read_rated(path, need_rating=False, keep_empty=True, columns=columns)
    if name is None:
        if len(rated) > 1:
            raise DataError(
                f"{path} holds {len(rated)} dialogues, expected one", f"say which: {path}#{rated.ids[0]}"
            )
        return rated.dialogues[0]
    dialogues_of_name = [one for one in rated.dialogues if name in (one.id, name_of(one))]
    if not dialogues_of_name:
        left_out = [f"left out {n:,}: {reason}" for reason, n in rated.dropped.items()]
        missing = f"{path} holds no dialogue {name!r} that can be scored{nearest(name, rated.ids[:5000])}"
        raise UserError(missing, problems=left_out)
    if len(dialogues_of_name) > 1:
        systems = ", ".join(str(one.labels.get("system")) for one in dialogues_of_name)
        raise UserError(
            f"{path} holds {len(dialogues_of_name)} responses to {name!r}, of {systems}",
            f"say whose: {path}#{name_of(dialogues_of_name[0])}",
        )
    return dialogues_of_name[0]


def _place_of(word: str, dialogues: Path | None) -> tuple[Path, str | None]:
    """The file, and which of its dialogues is meant. Files and ids may have a # of their own."""
    if dialogues is not None:
        return dialogues, word
    if Path(word).exists():
        return Path(word), None
    if "#" not in word:
        raise UserError(
            f"there is no file {word}", "of an id, say the file as well: FILE#ID, or --dialogues FILE"
        )
    parts = word.split("#")
    cuts = [("#".join(parts[:n]), "#".join(parts[n:])) for n in range(1, len(parts))]
    file, name = next((cut for cut in cuts if Path(cut[0]).is_file()), cuts[-1])
    return Path(file), name
