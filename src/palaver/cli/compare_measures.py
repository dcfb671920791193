"""`palaver compare audit | evaluate | ratings`: how far a comparator, or ratings, can be believed."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from palaver.cli import completion, options
from palaver.cli.messages import print_json
from palaver.cli.progress import progress
from palaver.errors import UsageError, require
from palaver.reports.page import write_page
from palaver.schema import record_run


class AuditPart(StrEnum):
    """The parts of the audit set."""

    open = "open"
    held_out = "held-out"
    second = "second"


def audit(
    comparator: options.Comparator = "default",
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            help="Another judge than a comparator: NAME, NAME=WHICH, or MODULE:FUNCTION.",
            autocompletion=completion.judges,
        ),
    ] = None,
    part: Annotated[
        AuditPart,
        typer.Option("--part", help="Keep those held out for the final run; they show no single pair."),
    ] = AuditPart.open,
    out: options.OptionalOut = None,
    device: options.Device = "auto",
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Audit a comparator or any judge: what does it notice, and what not?

    156 pairs of short dialogues differ in one thing each: rude or polite, right or wrong, repeated, silent,
    translated, spelled otherwise. Shows how often the judge is right, kind by kind, beside what trivial rules
    reach. --out writes a page. As many pairs are held out, twice.

    Example: palaver compare audit --out audit.html
    """
    from palaver.judges.audit import Part
    from palaver.judges.audit import audit as audit_judge
    from palaver.reports.audit import audit_page, print_audit

    if by is not None and comparator != "default":
        raise UsageError("--by and --comparator name two judges", "give one of them")
    if by is not None and by.startswith("llm:"):
        raise UsageError(
            "a language model answers a study, not the audit", "palaver judge study.toml --by llm:NAME"
        )
    options.refuse_existing(out, force)
    name = by or ("comparator" if comparator == "default" else f"comparator={comparator}")
    parts: dict[AuditPart, Part] = {
        AuditPart.open: "open", AuditPart.held_out: "held out", AuditPart.second: "second"
    }  # fmt: skip
    result = audit_judge(name, part=parts[part], device=device)
    if out is not None:
        write_page(audit_page(result), out)
    if as_json:
        print_json(result)
        return
    print_audit(result, Console())
    if out is not None:
        typer.echo(f"report: {out}")


def evaluate(
    dialogues: Annotated[
        list[Path],
        typer.Argument(help=f"The dialogues or responses that the pairs name: {options.ANY_SHAPE}."),
    ],
    pairs: Annotated[
        Path,
        typer.Option(
            "--pairs",
            help='Compared pairs, one a row: {a, b, better: "a" or "b"}; or the ratings of a pairwise study.',
        ),
    ],
    comparator: options.Comparator = "default",
    tier: Annotated[
        list[str] | None,
        typer.Option("--tier", metavar="A,B,C", help="Systems of like quality; repeat it for more tiers."),
    ] = None,
    trained_on: Annotated[
        list[Path] | None,
        typer.Option(help="What it was trained on: trains it anew without each system; repeat it for more."),
    ] = None,
    other_source: Annotated[
        list[Path] | None,
        typer.Option(
            help="Rated dialogues from elsewhere: trains it anew on them alone; repeat it for more."
        ),
    ] = None,
    criteria: options.Criteria = None,
    columns: options.Columns = None,
    out: options.OptionalOut = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Measure a comparator on compared pairs, beside what simpler things reach.

    Accuracy with an interval over raters, kappa and calibration; baselines: which system it is, a linear
    model of surface features, who says more. Also for pairs within a system, within a tier, of unseen systems
    (--trained-on) and of an unseen source (--other-source). What is chosen on pairs is chosen on half of the
    raters and measured on the others. Every vote counts; what nobody could tell is left out and counted.
    --out writes a page.

    Example: palaver compare evaluate chats.jsonl --pairs pairs.jsonl --tier A,B --tier C,D --out report.html
    """
    require("transformers", "models")
    where = options.torch_device(device)
    from palaver.comparator.left_out import measure_unseen
    from palaver.comparator.reading import read_pairs, read_rated
    from palaver.comparator.scorecard import evaluate_comparator
    from palaver.comparator.scorer import load_scorer
    from palaver.reports.scorecard import print_scorecard, scorecard_page

    options.refuse_existing(out, force)
    tiers = [[name.strip() for name in names.split(",") if name.strip()] for names in tier or ()]
    if not all(tiers):
        raise UsageError("--tier: expected names with commas between them, such as A,B,C")
    rated = read_rated(dialogues, need_rating=False, keep_empty=True, columns=options.parse_columns(columns))
    if not as_json:  # before the pairs: they may name just those that were left out
        for reason, n in rated.dropped.items():
            typer.secho(f"left out {n:,}: {reason}", fg="yellow")
        for note in rated.notes:
            typer.secho(note, fg="yellow")
    compared = read_pairs(pairs, rated.index, every_vote=True, criteria=options.parse_criteria(criteria))
    scorer = load_scorer(comparator, device=where)
    with progress() as tell:
        unseen = measure_unseen(
            scorer,
            rated,
            trained_on=read_rated(trained_on) if trained_on else None,
            other_source=read_rated(other_source) if other_source else None,
            progress=tell,
        )
        card = evaluate_comparator(
            scorer, rated, compared, tiers=tiers, unseen=unseen, seed=seed, progress=tell
        )
    run = record_run(
        "palaver compare evaluate",
        seed=seed,
        config={"comparator": scorer.signature, "tiers": tiers, "criteria": criteria},
        data={"dialogues": rated.digest, "pairs": compared.digest},
        packages=("palaver", "numpy", "scipy", "scikit-learn", "torch", "transformers"),
    )
    if out is not None:
        write_page(scorecard_page(card, run), out)
    if as_json:
        dropped = {"dialogues_left_out": rated.dropped, "notes_on_dialogues": rated.notes}
        print_json({**vars(card), **dropped, "run": run})
        return
    print_scorecard(card, run, Console())
    if out is not None:
        typer.echo(f"report: {out}")


def ratings(
    files: Annotated[list[Path], typer.Argument(help=f"Rated dialogues: {options.ANY_SHAPE}.")],
    pairs: Annotated[
        Path | None,
        typer.Option("--pairs", help="Comparisons of these dialogues by other people: do the ratings agree?"),
    ] = None,
    scale: options.RatingScale = None,
    criteria: options.Criteria = None,
    columns: options.Columns = None,
    as_json: options.Json = False,
) -> None:
    """Show how people rate: the distribution, and how often comparisons disagree.

    Table 1 and Table 2 of Liang et al. (2020). Ratings are J-shaped where most are the highest there is. With
    --pairs: of two dialogues whose ratings lie so far apart, how often was the lower rated called better?

    Example: palaver compare ratings chats.jsonl --pairs pairs.jsonl
    """
    from palaver.comparator.rating_study import study_file
    from palaver.comparator.reading import read_pairs, read_rated
    from palaver.reports.rating_study import print_rating_study

    rated = read_rated(files, scale=scale, columns=options.parse_columns(columns))
    compared = None
    if pairs is not None:
        compared = read_pairs(pairs, rated.index, every_vote=True, criteria=options.parse_criteria(criteria))
    study = study_file(rated, compared)
    left_out = {**rated.dropped, **({} if compared is None else compared.dropped)}
    if as_json:
        print_json({**vars(study), "left_out": left_out, "notes": [*rated.notes, *study.notes]})
        return
    print_rating_study(study, left_out, rated.notes, Console())
