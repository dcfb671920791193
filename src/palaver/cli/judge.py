"""`palaver judge`: metrics, trained models and functions rate responses or dialogues."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.console import Console

from palaver.cli import completion, options
from palaver.cli.messages import print_json
from palaver.cli.progress import progress
from palaver.errors import UsageError
from palaver.judges import judge as rate
from palaver.judges import judge_names
from palaver.judges.llm import Budget, LlmRatings, outputs_of, rate_study
from palaver.readers.rating_files import write_frames
from palaver.reports.judges import print_judgements, print_tally
from palaver.schema import Study
from palaver.studies import draft_study, load_study

LLM = "llm:"
"""Before the name of a language model that is to answer a study."""


def judge(
    file: Annotated[
        Path | None, typer.Argument(help=f"Responses or dialogues: {options.ANY_SHAPE}; or study.toml.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            help="A judge: NAME, NAME=WHICH, llm:NAME or MODULE:FUNCTION; repeat it.",
            autocompletion=completion.judges,
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset", help="For llm:NAME, what to make of responses: likert, pairwise, rankme or snippet."
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="How often llm:NAME is asked each question.")
    ] = 1,
    one_order: Annotated[
        bool, typer.Option("--one-order", help="Ask llm:NAME about outputs side by side in one order only.")
    ] = False,
    token_limit: Annotated[
        int | None, typer.Option("--token-limit", min=1, help="Most tokens that llm:NAME may take and give.")
    ] = None,
    cost_limit: Annotated[
        float | None,
        typer.Option("--cost-limit", min=0, help="Most money that llm:NAME may cost; see --token-prices."),
    ] = None,
    token_prices: Annotated[
        str | None,
        typer.Option("--token-prices", metavar="IN,OUT", help="Of a million tokens read and written."),
    ] = None,
    systems: options.SystemsFile = None,
    out: options.OptionalOut = None,
    list_judges: options.ListNames = False,
    columns: options.Columns = None,
    device: options.Device = "auto",
    engine: options.Engine = None,
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Let metrics, models and functions rate responses or dialogues.

    The ratings are rows of the table that people's ratings are in, so `palaver study analyse` reads both
    together. `user` takes over the ratings that chatters left in the file. A language model (llm:NAME, of
    systems.toml, or llm:smollm2) answers a study as a person would: a study.toml, or --preset for responses.

    Example: palaver judge responses.jsonl --by unigram_f1 --by comparator --out judged.parquet

    Example: palaver judge study.toml --by llm:smollm2 --out llm.parquet
    """
    if list_judges:
        if as_json:
            print_json(list(judge_names()))
        else:
            typer.echo("\n".join(judge_names()))
        return
    if file is None:
        raise UsageError("name the file to judge", "palaver judge --help shows what it takes")
    options.refuse_source(out, file)
    options.claim_ratings(out, force)
    models = [name.removeprefix(LLM) for name in by or () if name.startswith(LLM)]
    if models or file.suffix == ".toml" or preset is not None:
        if not models or len(models) < len(by or ()):
            raise UsageError(
                "a study is answered by language models: --by llm:NAME for each",
                "other judges rate the responses themselves: palaver judge responses.jsonl --by NAME",
            )
        limits = Budget(tokens=token_limit, money=cost_limit, token_prices=_prices(token_prices))
        from palaver.judges.llm_models import open_language_model

        study = _study_to_answer(file, preset, options.parse_columns(columns))
        results = []
        with progress() as tell:
            for name in models:
                model = open_language_model(name, systems=systems, device=device)
                results.append(
                    rate_study(
                        study, model, repeats=repeats, both_orders=not one_order, budget=limits, progress=tell
                    )
                )
        _show_answers(study, results, out, as_json)
        return
    if not by:
        raise UsageError("no judge was named", "name at least one: --by unigram_f1; --list shows all")
    with progress() as tell:
        result = rate(
            file, by, columns=options.parse_columns(columns), device=device, engine=engine or "local",
            progress=tell,
        )  # fmt: skip
    if out is not None:
        write_frames([result.frame], out)
    if as_json:
        counts = {"ratings": result.frame.height, "left_out": result.left_out, "notes": result.notes}
        print_json({**counts, "means": result.summary().to_dicts()})
        return
    print_judgements(result, Console())
    if out is not None:
        typer.echo(f"wrote {out}: {result.frame.height:,} ratings")
        typer.echo(f"next: palaver study analyse {out}")


def _prices(words: str | None) -> tuple[float, float]:
    """`IN,OUT`, the prices of a million tokens."""
    if words is None:
        return 0.0, 0.0
    try:
        given, taken = (float(word) for word in words.split(","))
    except ValueError:
        raise UsageError(f"--token-prices: expected IN,OUT, such as 0.15,0.60, found {words!r}") from None
    return given, taken


def _study_to_answer(file: Path, preset: str | None, columns: dict[str, str]) -> Study:
    """The study in a file, or a preset's about responses."""
    if file.suffix != ".toml":
        return draft_study(file, preset=preset or "likert", columns=columns).study
    if preset is not None:
        raise UsageError("--preset is for responses; a study file says itself what is asked")
    return load_study(file)


def _show_answers(study: Study, results: list[LlmRatings], out: Path | None, as_json: bool) -> None:
    """What the models answered, with their habits where they compared."""
    from palaver.judges.bias import bias_report
    from palaver.reports.bias import print_bias
    from palaver.studies.ratings import ratings_from_frame

    frames = [result.frame for result in results if result.frame.height]
    if out is not None and frames:
        write_frames(frames, out)
    if as_json:
        told = [{"judge": r.judge, **asdict(r.tally), "notes": r.notes} for r in results]
        print_json({"ratings": sum(frame.height for frame in frames), "judges": told})
        return
    console = Console()
    print_tally(results, console)
    paired = any(question.scale.form == "pair" for question in study.questions)
    if paired and frames:
        verdicts = ratings_from_frame(pl.concat(frames), study=study)
        print_bias(bias_report(verdicts, responses=outputs_of(study)), console)
    if out is not None and frames:
        typer.echo(f"wrote {out}: {sum(frame.height for frame in frames):,} ratings")
        typer.echo(f"next: palaver meta people.csv {out}")
