"""`palaver collect check`: which conversations are accepted, and who is paid what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from palaver.artefacts import write_folder
from palaver.cli import options
from palaver.cli.conversations import Conversations, open_source
from palaver.cli.messages import print_json
from palaver.collection.labels import as_dialogue
from palaver.collection.payout import (
    Account,
    Payment,
    Payout,
    pay_out,
    people_from,
    read_paid,
    write_payments,
)
from palaver.collection.qualifications import with_qualifications
from palaver.collection.quality import Quality, check_quality, decide
from palaver.collection.records import Conversation
from palaver.collection.review import read_decisions, write_review
from palaver.collection.standards import Standards, read_standards
from palaver.errors import UserError
from palaver.files import sha256_of
from palaver.readers import write_dialogues
from palaver.reports import lines
from palaver.reports.collection import print_payout, print_quality, review_page
from palaver.reports.page import write_page
from palaver.schema.run import RunRecord, record_run


def check(
    conversations: Conversations,
    standards: Annotated[
        Path | None,
        typer.Option(
            help="A TOML file with [quality.turns], [qualification], [pay], [bonus], such as collection.toml."
        ),
    ] = None,
    decisions: Annotated[
        Path | None, typer.Option(help="A review.csv in which you decided: accept or reject.")
    ] = None,
    paid: Annotated[
        Path | None, typer.Option(help="An earlier payments.csv; what is on it is not paid again.")
    ] = None,
    qualifications: Annotated[
        Path | None,
        typer.Option(help="A table of participants with approved and approval_rate, for [qualification]."),
    ] = None,
    out: options.OptionalOut = None,
    data: options.Data = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Check the quality of conversations, and list who is paid what.

    Into --out go accepted.jsonl, review.csv and report.html to decide with, payout.csv (a row for each
    participant), payments.csv (a row for each thing that is paid for) and bonus.csv.

    Example: palaver collect check collection.toml --out checked

    Example: palaver collect check collection.toml --decisions checked/review.csv --out decided

    Example: palaver collect check conversations.jsonl --standards mine.toml --json
    """
    standards = standards or _own_standards(conversations)
    rules = read_standards(standards) if standards is not None else Standards()
    options.claim_folder(out, force)
    source = open_source(conversations, data)
    if not source.conversations:
        raise UserError(f"there are no conversations in {conversations}")
    people = source.people
    if qualifications is not None:
        people = with_qualifications(people or people_from(source.conversations, 1), qualifications)
    quality = check_quality(source.conversations, rules, people)
    in_file = read_decisions(decisions, quality) if decisions is not None else {}
    quality = decide(quality, {**source.decisions, **in_file})
    already = read_paid(paid) if paid is not None else ()
    payout = pay_out(source.conversations, quality, rules, source.people, already)
    notes = [*source.notes, *quality.notes, *payout.notes]
    if standards is None:
        notes.append("by the usual standards: --standards collection.toml takes those of a collection")
    if out is not None:
        run = _record(conversations, [standards, decisions, qualifications, paid], rules)
        _write(out, force, source.conversations, quality, payout, run)
    if as_json:
        print_json(
            {
                "counts": quality.counts,
                "checks": quality.checks,
                "conversations": quality.results,
                "currency": payout.currency,
                "due": payout.due,
                "payments": payout.payments,
                "notes": notes,
                "out": str(out) if out is not None else None,
            }
        )
        return
    console = Console()
    print_quality(quality, console)
    if payout.payments:
        print_payout(payout, console)
    lines.notes(console, notes)
    if out is not None:
        lines.line(console, f"wrote {out}: review.csv and report.html to decide with, payout.csv to pay by")
        if not quality.counts["accepted"]:
            lines.line(console, "no conversation was accepted, so there is no accepted.jsonl")
        if quality.counts["review"]:
            decided = f"palaver collect check {conversations} --decisions {out / 'review.csv'} --out decided"
            lines.line(console, f"next: decide in {out / 'review.csv'}, then: {decided}")
        elif quality.counts["accepted"]:
            lines.line(console, f"next: palaver collect split {out / 'accepted.jsonl'} --out split.jsonl")


def _own_standards(conversations: str) -> Path | None:
    """The file of a collection has standards; its database and its conversations have none."""
    path = Path(conversations)
    return path if path.suffix == ".toml" and path.is_file() else None


def _record(conversations: str, files: list[Path | None], rules: Standards) -> RunRecord:
    read = [path for path in (Path(conversations), *files) if path is not None and path.is_file()]
    return record_run(
        "palaver collect check",
        config={"standards": rules.model_dump_json(), "conversations": Path(conversations).name},
        data={path.name: sha256_of(path) for path in read},
        packages=("palaver",),
    )


def _write(
    out: Path,
    force: bool,
    conversations: list[Conversation],
    quality: Quality,
    payout: Payout,
    run: RunRecord,
) -> None:
    accepted = {result.conversation for result in quality.results if result.verdict == "accepted"}
    with write_folder(out, replace=force or out.exists()) as folder:  # what exists was found to be empty
        if accepted:
            dialogues = (as_dialogue(c) for c in conversations if c.id in accepted)
            write_dialogues(dialogues, folder / "accepted.jsonl")
        write_review(quality, folder / "review.csv")
        write_page(review_page(quality, conversations, payout, run), folder / "report.html")
        write_payments(payout.accounts, folder / "payout.csv", Account)
        write_payments(payout.payments, folder / "payments.csv", Payment)
        bonuses = [payment for payment in payout.payments if payment.kind == "bonus"]
        write_payments(bonuses, folder / "bonus.csv", Payment)
