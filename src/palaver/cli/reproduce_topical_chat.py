"""`palaver reproduce topical-chat`: Tables 3, 4 and 5 beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from palaver.cli import options
from palaver.cli.messages import print_json
from palaver.cli.progress import progress
from palaver.errors import UsageError, require
from palaver.reproduce import topical_chat as tables
from palaver.reproduce.snippets import read_snippets
from palaver.reproduce.topical_chat_runs import Run, read_runs
from palaver.studies.design import load_study


def topical_chat(
    runs: Annotated[
        list[Path] | None,
        typer.Option(help="Results of trained models (JSON), as the experiments write them; repeat it."),
    ] = None,
    snippets: Annotated[Path | None, typer.Option(help="Ratings of a snippet study, for Table 4.")] = None,
    study: Annotated[Path | None, typer.Option(help="The study file: scales, permitted values.")] = None,
    data: options.Data = None,
    seed: options.Seed = 0,
    replicates: options.Replicates = None,
    as_json: options.Json = False,
) -> None:
    """Tables 3, 4 and 5 of Topical-Chat (Gopalakrishnan et al. 2019).

    Tables 3 and 5 show the runs in results files, and say which rows were not reached. With --data they
    also show what the oracle's sentence itself would score as a reply. --snippets adds Table 4.

    Example: palaver reproduce topical-chat --runs docs/results/responders.json --snippets ratings.csv
    """
    if study is not None and snippets is None:
        raise UsageError("--study is about the snippets", "give their ratings, too: --snippets ratings.csv")
    measured = read_runs(runs or [])
    if data is not None and not any(run.name == SENTENCE for run in measured):
        measured.append(_sentence_itself(data))
    rated = None
    if snippets is not None:
        design = load_study(study) if study is not None else None
        rated = read_snippets(snippets, design, seed=seed, n_replicates=replicates or 10_000)
    result = tables.reproduce(measured, rated)
    if as_json:
        print_json(result)
    else:
        tables.print_tables(result, Console())


SENTENCE = "the sentence itself"


def _sentence_itself(data: Path) -> Run:
    require("sklearn", "models")
    from palaver.reproduce.topical_chat_sentence import score_sentences

    with progress() as tell:
        return score_sentences(data, tell)
