"""`palaver meta`: does the judge agree with people?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from palaver.cli import options
from palaver.cli.messages import print_json
from palaver.cli.progress import progress
from palaver.errors import UsageError
from palaver.files import write_atomically
from palaver.readers.rating_options import RatingOptions
from palaver.studies.ratings import read_rating_table


def meta(
    files: Annotated[
        list[Path], typer.Argument(help="Ratings by people and by judges, as `study analyse` takes them.")
    ],
    match: Annotated[
        list[str] | None,
        typer.Option(
            "--match", metavar="A=B", help="Judge's criterion A beside people's B; repeat it. [default: all]"
        ),
    ] = None,
    responses: Annotated[
        Path | None, typer.Option("--responses", help="The responses rated: texts for the disagreements.")
    ] = None,
    disagreements: Annotated[
        int, typer.Option("--disagreements", min=0, help="How many to list of each judge and criterion.")
    ] = 10,
    permutations: Annotated[
        int, typer.Option("--permutations", min=1, help="Of the tests between judges.")
    ] = 1000,
    habits: Annotated[
        bool,
        typer.Option(
            "--habits", help="Instead: what moves judges of pairs besides quality; people may be absent."
        ),
    ] = False,
    out: options.OptionalOut = None,
    file_options: options.RatingFile = RatingOptions(),
    kind: options.Kinds = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Does the judge agree with people, and as well as a person does?

    Puts every criterion of every judge beside every criterion of people: all outputs together, systems on one
    item, systems' means. Beside them stands what one person reaches who is compared with the others. The
    column `kind` says who rated, or --kind. --out writes a page, or with .json the results.

    Example: palaver meta people.csv judged.parquet --responses responses.jsonl --out meta.html

    Example: palaver meta people.csv llm.parquet --habits --responses responses.jsonl --out habits.html

    Example: palaver meta people.csv scores.csv --kind scores.csv=llm --match quality=overall --json
    """
    from palaver.judges.bias import BiasReport, bias_report
    from palaver.judges.meta import meta_evaluate
    from palaver.judges.meta_results import MetaEvaluation
    from palaver.reports.bias import bias_page, print_bias
    from palaver.reports.meta import meta_page, print_meta
    from palaver.reports.page import write_page

    options.refuse_existing(out, force)
    if out is not None and out.suffix not in (".html", ".json"):
        raise UsageError(f"--out: expected a name that ends in .html or .json, found {out.name!r}")
    if habits and match:
        raise UsageError("--habits takes no --match: judges of pairs are not put beside criteria")
    pairs = []
    for word in match or ():
        judges, equals, people = word.partition("=")
        if not (judges and equals and people):
            raise UsageError(f"--match: expected A=B, such as quality=overall, found {word!r}")
        pairs.append((judges, people))
    result: MetaEvaluation | BiasReport
    with progress() as tell:
        table = read_rating_table(list(files), file_options, kinds=options.parse_kinds(kind))
        if habits:
            result = bias_report(table, responses=responses, confidence=confidence)
        else:
            result = meta_evaluate(
                table,
                match=pairs,
                responses=responses,
                confidence=confidence,
                n_permutations=permutations,
                n_disagreements=disagreements,
                seed=seed,
                progress=tell,
            )
    if out is not None and out.suffix == ".json":
        with write_atomically(out) as file:
            file.write(result.to_json())
    elif out is not None:
        page = bias_page(result) if isinstance(result, BiasReport) else meta_page(result)
        write_page(page, out)
    if as_json:
        print_json(result)
        return
    if isinstance(result, BiasReport):
        print_bias(result, Console())
    else:
        print_meta(result, Console())
    if out is not None:
        typer.echo(f"report: {out}")
