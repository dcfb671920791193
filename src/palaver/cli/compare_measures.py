"""`palaver compare audit | evaluate`: how far a comparator can be believed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from palaver.cli import options
from palaver.cli.messages import print_json
from palaver.errors import UsageError
from palaver.reports.page import write_page


def audit(
    comparator: options.Comparator = "default",
    by: Annotated[
        str | None,
        typer.Option("--by", help="Another judge than a comparator: NAME, NAME=WHICH, or MODULE:FUNCTION."),
    ] = None,
    held_out: Annotated[
        bool,
        typer.Option("--held-out", help="The half that is kept for the final run; shows no single pair."),
    ] = False,
    out: options.OptionalOut = None,
    device: options.Device = "auto",
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Audit a comparator or any judge: what does it notice, and what not?

    312 pairs of short dialogues, written for this, differ in one thing each: rude or polite, right or wrong,
    repeated, silent, translated, spelled otherwise … Shows how often the judge is right, kind by kind, beside
    what trivial rules reach. --out writes a page.

    Example: palaver compare audit --out audit.html
    """
    from palaver.judges.audit import audit as audit_judge
    from palaver.reports.audit import audit_page, print_audit

    if by is not None and comparator != "default":
        raise UsageError("--by and --comparator name two judges", "give one of them")
    options.refuse_existing(out, force)
    name = by or ("comparator" if comparator == "default" else f"comparator={comparator}")
    result = audit_judge(name, held_out=held_out, device=device)
    if out is not None:
        write_page(audit_page(result), out)
    if as_json:
        print_json(result)
        return
    print_audit(result, Console())
    if out is not None:
        typer.echo(f"report: {out}")
