"""`palaver compare score | pair | rank | clean`: a comparator at work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palaver.cli.compare import app

if TYPE_CHECKING:
    from palaver.comparator.training_data import RatedDialogues, TrainingData
    from palaver.schema import Dialogue, RunRecord

Comparator = Annotated[str, typer.Option(help="default, or a folder that `palaver compare train` wrote.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]
Seed = Annotated[int, typer.Option(min=0, help="Of everything random.")]
Scale = Annotated[
    tuple[float, float] | None,
    typer.Option(metavar="LOW HIGH", help="Of the ratings. [default: read off the file]"),
]


def _device(name: str) -> str:
    from palaver.errors import require

    require("torch", "models")
    require("transformers", "models")
    from palaver.models.devices import choose_device

    return str(choose_device(name))


@app.command()
def score(
    file: Annotated[Path, typer.Argument(help="Dialogues, JSON lines, packed or not.")],
    out: Annotated[Path, typer.Option(help="File for the scores, JSON lines, worst first.")],
    comparator: Comparator = "default",
    turns: Annotated[
        int, typer.Option(min=0, help="Look for the costliest turn in the N worst dialogues.")
    ] = 100,
    all_turns: Annotated[
        bool, typer.Option("--all-turns", help="Look for the costliest turn in every dialogue.")
    ] = False,
    min_turns: Annotated[int, typer.Option(min=2, help="Shorter dialogues are left out and counted.")] = 2,
    workers: Annotated[
        int, typer.Option(min=0, help="Processes, each with its own comparator; 0 for one a core.")
    ] = 1,
    shard_size: Annotated[int, typer.Option(min=1, help="Dialogues that are in memory at once.")] = 1000,
    device: Device = "auto",
) -> None:
    """Score every dialogue of a file: a number, its interval, and the turn that costs most.

    Differences of scores are log-odds: 1 more is better with 73%, 2 more with 88%.

    Example: palaver compare score chats.jsonl --out scores.jsonl
    """
    where = _device(device)

    from rich.console import Console

    from palaver.cli.progress import progress
    from palaver.comparator.file_scores import score_file
    from palaver.comparator.scorer import load_scorer
    from palaver.errors import UserError
    from palaver.files import check_readable, check_writable
    from palaver.reports.compare import print_scores

    check_readable(file)
    if out.is_dir():
        raise UserError(f"{out} is a folder", f"name a file in it, such as {out / 'scores.jsonl'}")
    if out.exists() and out.samefile(file):
        raise UserError("--out is the file of the dialogues itself", "choose another name")
    check_writable(out.parent)
    load_scorer(comparator, device="cpu") if comparator != "default" else None  # before the work, not in it
    with progress() as tell:
        found = score_file(
            file,
            out,
            comparator=comparator,
            device=where,
            workers=workers,
            turns=None if all_turns else turns,
            min_turns=min_turns,
            shard_size=shard_size,
            progress=lambda what, done, total: tell(f"{done:,} dialogues scored", 0, 0),
        )
    for note, n in found.notes.items():
        typer.secho(f"{note} ({n:,})" if n else note, fg="yellow")
    print_scores(found, Console())
    typer.echo(f"scores: {out}")


@app.command()
def pair(
    a: Annotated[str, typer.Argument(metavar="A", help="A file with one dialogue, FILE#ID, or an id.")],
    b: Annotated[str, typer.Argument(metavar="B", help="What it is compared with.")],
    dialogues: Annotated[Path | None, typer.Option(help="The file in which A and B are ids.")] = None,
    comparator: Comparator = "default",
    device: Device = "auto",
) -> None:
    """Compare two dialogues: the probability that A is better than B.

    Example: palaver compare pair chats.jsonl#17 chats.jsonl#23
    """
    where = _device(device)

    from palaver.comparator.scorer import load_scorer

    first, second = _one(a, dialogues), _one(b, dialogues)
    scorer = load_scorer(comparator, device=where)
    found = scorer.score([first, second])
    probability = scorer.probability(first, second)
    better, worse, sure = (
        (first, second, probability) if probability >= 0.5 else (second, first, 1 - probability)
    )
    for name, dialogue, i in (("A", first, 0), ("B", second, 1)):
        low, high = found.low[i], found.high[i]
        between = f" (95% {low:.2f} to {high:.2f})" if low == low else ""
        typer.echo(f"{name}  {dialogue.id}: score {found.score[i]:.2f}{between}, {len(dialogue.turns)} turns")
    if first.turns == second.turns:
        typer.secho("the two dialogues have the same turns", fg="yellow")
        return
    typer.secho(f"{better.id} is better than {worse.id} with {sure:.0%}", bold=True)
    turn = scorer.worst_turns([worse])[0]
    if turn is not None and turn.gain > 0:
        typer.echo(f"what costs {worse.id} most ({turn.gain:.2f}): turn {turn.turn}: {turn.text}")


@app.command()
def rank(
    file: Annotated[Path, typer.Argument(help="Dialogues, or what `palaver compare score` wrote.")],
    comparator: Comparator = "default",
    replicates: Annotated[int, typer.Option(min=1, help="Of the bootstrap.")] = 1000,
    confidence: Annotated[float, typer.Option(help="Of intervals and places.")] = 0.95,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Rank systems by their dialogues, with the bootstrap and the TrueSkill that rank by people's ratings.

    The system of a dialogue is its field `system` or `bot`.

    Example: palaver compare rank scores.jsonl
    """
    from rich.console import Console

    from palaver.cli.progress import progress
    from palaver.comparator.ranks import rank_systems
    from palaver.errors import UserError
    from palaver.reports.compare import print_ranking

    if not 0 < confidence < 1:
        raise UserError(f"--confidence must lie between 0 and 1, found {confidence:g}")
    scored = _scores_of(file)
    if scored is not None:
        scores, systems = scored
        sittings = None
    else:
        from palaver.comparator.reading import read_rated
        from palaver.comparator.scorer import load_scorer

        where = _device(device)
        found = read_rated(file, need_rating=False)
        _tell(found)
        scorer = load_scorer(comparator, device=where)
        with progress() as tell:
            scores = scorer.score(found.dialogues, progress=tell).score.tolist()
        systems = [row.system for row in found.rows]
        groups = [row.group for row in found.rows]
        sittings = groups if any(group is not None for group in groups) else None
    result = rank_systems(
        scores, systems, sittings, n_replicates=replicates, confidence=confidence, seed=seed
    )
    print_ranking(result, Console())


@app.command()
def clean(
    ratings: Annotated[list[Path], typer.Argument(help="Rated dialogues that name their raters.")],
    out: Annotated[Path, typer.Option(help="Folder for ratings.jsonl, raters.jsonl and report.html.")],
    dev_pairs: Annotated[
        Path | None, typer.Option(help="Compared pairs: adds Shapley values of ratings and raters.")
    ] = None,
    dev_dialogues: Annotated[Path | None, typer.Option(help="The dialogues that the pairs name.")] = None,
    scale: Scale = None,
    encoder: Annotated[str, typer.Option(help="minilm, or the folder of another.")] = "minilm",
    drop: Annotated[
        float, typer.Option(help="Raters with less trust are dropped (1: the common rater).")
    ] = 0.4,
    doubt: Annotated[float, typer.Option(help="Raters with less trust are suspicious.")] = 0.7,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Judge ratings: keep, drop or look at again, with the reason for each.

    A model learns from all other raters what a rater's dialogues are worth; who rates past that, gives
    everything the same or types the same again is found. Nothing is removed from your files.

    Example: palaver compare clean ratings.jsonl --out cleaned
    """
    where = _device(device)
    from palaver.errors import UserError, require

    require("sklearn", "models")

    from rich.console import Console

    from palaver.cli.progress import progress
    from palaver.comparator.cleaning import CleanSettings
    from palaver.comparator.cleaning import clean as judge
    from palaver.comparator.method import MethodSettings
    from palaver.comparator.reading import read_pairs, read_rated
    from palaver.comparator.representation import represent, turn_encoder
    from palaver.comparator.training_data import TrainingData
    from palaver.files import check_writable
    from palaver.reports.compare import print_cleaned, write_cleaned

    if (dev_pairs is None) != (dev_dialogues is None):
        raise UserError("--dev-pairs and --dev-dialogues go together")
    settings = CleanSettings(drop=drop, doubt=doubt)
    check_writable(out)
    rated = read_rated(ratings, scale=scale)
    _tell(rated)
    dev = read_rated(dev_dialogues, need_rating=False) if dev_dialogues is not None else None
    pairs = read_pairs(dev_pairs, dev.index) if dev is not None and dev_pairs is not None else None
    encode = turn_encoder(encoder, device=where)
    with progress() as tell:
        x = represent(rated.dialogues, encode, progress=tell)
        dev_x = represent(dev.dialogues, encode, progress=tell) if dev is not None else None
        found = judge(
            rated, x, pairs=pairs, pairs_x=dev_x, settings=settings,
            method=MethodSettings(heads=1, seed=seed), progress=tell,
        )  # fmt: skip
    print_cleaned(found, Console())
    record = record_comparator(
        "palaver compare clean", TrainingData(rated, dev=dev, pairs=pairs), seed, settings, encoder=encoder
    )
    typer.echo(f"report: {write_cleaned(found, out, record)}")


def train_palaver(
    sources: TrainingData, out: Path, *, encoder: str, seed: int, device: str, fresh: bool
) -> None:
    """`palaver compare train --method palaver`, once the files are read."""
    where = _device(device)

    from palaver.cli.compare import describe_result
    from palaver.cli.progress import progress
    from palaver.comparator.method import MethodSettings
    from palaver.comparator.training import train_palaver as run
    from palaver.reports.compare_pages import method_page
    from palaver.reports.page import write_page

    with progress() as tell:
        found = run(
            sources, out, settings=MethodSettings(seed=seed), encoder=encoder, device=where, fresh=fresh,
            progress=tell, say=typer.echo,
        )  # fmt: skip
    fitted = found.fitted
    for note in (*sources.notes, *fitted.notes):
        typer.secho(note, fg="yellow")
    if fitted.on_ratings is not None:
        typer.echo(f"held-out ratings, within a sitting: {describe_result(fitted.on_ratings)}")
    if fitted.on_pairs is not None:
        typer.echo(f"compared pairs (they fix the unit, no more): {describe_result(fitted.on_pairs)}")
    if fitted.calibration is not None:
        typer.echo(f"calibration error {fitted.calibration.ece:.3f}")
    run_record = record_comparator(
        "palaver compare train --method palaver", sources, seed, fitted.settings, encoder=encoder
    )
    typer.echo(f"report: {write_page(method_page(fitted, run_record), Path(out) / 'report.html')}")
    typer.echo(f"comparator: {found.folder}")


def record_comparator(
    command: str, sources: TrainingData, seed: int, settings: Any, **more: object
) -> RunRecord:
    """What a page says at its foot: settings, seed, versions, hashes of what was read."""
    import dataclasses

    from palaver.schema.run import record_run

    given = {"ratings": sources.ratings, "dialogues of pairs": sources.dev, "pairs": sources.pairs}
    return record_run(
        command,
        seed=seed,
        config={**dataclasses.asdict(settings), **more},
        data={name: found.digest for name, found in given.items() if found is not None},
        packages=("palaver", "numpy", "scipy", "torch", "transformers"),
    )


def _tell(found: RatedDialogues) -> None:
    for reason, n in found.dropped.items():
        typer.secho(f"left out {n:,}: {reason}", fg="yellow")
    for note in found.notes:
        typer.secho(note, fg="yellow")


def _one(word: str, dialogues: Path | None) -> Dialogue:
    """The dialogue that `word` names: an id in `dialogues`, FILE#ID, or a file that holds one."""
    from palaver.comparator.reading import read_rated
    from palaver.errors import DataError, UserError, nearest

    name: str | None
    if dialogues is not None:
        path, name = dialogues, word
    elif Path(word).exists() or "#" not in word:
        path, name = Path(word), None
    else:
        file, _, name = word.rpartition("#")
        path = Path(file)
    found = read_rated(path, need_rating=False)
    if name is None:
        if len(found) > 1:
            raise DataError(
                f"{path} holds {len(found)} dialogues, expected one", f"say which: {path}#{found.ids[0]}"
            )
        return found.dialogues[0]
    if name not in found.index:
        raise UserError(f"{path} holds no dialogue {name!r}{nearest(name, found.ids[:5000])}")
    return found.dialogues[found.index[name]]


def _scores_of(path: Path) -> tuple[list[float], list[str | None]] | None:
    """Scores and systems of a file that `score` wrote; nothing where it holds dialogues."""
    from palaver.errors import DataError
    from palaver.files import TextStream, json_object

    scores: list[float] = []
    systems: list[str | None] = []
    problems = []
    with TextStream(path) as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                row = json_object(line)
            except ValueError as error:
                problems.append(f"line {number}: {error}")
                continue
            if "turns" in row and not scores:
                return None
            value = row.get("score")
            if isinstance(value, bool) or not isinstance(value, int | float):
                problems.append(f"line {number}: expected a score or a dialogue, found neither")
                continue
            scores.append(float(value))
            system = row.get("system")
            systems.append(None if system is None else str(system))
    if problems:
        raise DataError(f"{path}: these lines cannot be used", problems=problems[:20])
    return scores, systems
