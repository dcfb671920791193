"""`palaver personality`: OCEAN scores of texts and speakers, and recognisers of one's own."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from palaver.cli import options
from palaver.cli.messages import print_json
from palaver.cli.progress import progress
from palaver.corpora.catalogue import read_corpus
from palaver.corpora.personalities import TRAITS
from palaver.errors import DataError, UsageError, count_of
from palaver.files import TextStream, check_text, sha256_of
from palaver.personality.counts import Counter
from palaver.personality.fit import fit as run_fit
from palaver.personality.fit import read_scored_texts
from palaver.personality.lexicon import open_lexicon, read_lexicon
from palaver.personality.norms import read_norms
from palaver.personality.recogniser import load_recogniser, score_texts
from palaver.readers.texts import Text, is_plain_text, read_texts
from palaver.reports import lines
from palaver.tabular import show_fixed

_FEW_WORDS = 100
_WIDTH = 37
_STEPS = "▁▂▃▄▅▆▇█"
_LONGEST = 60
"""A line of text is its own name; on a terminal it is shown up to here."""


def score(
    source: Annotated[
        str,
        typer.Argument(
            help="A text file, - for standard input, or dialogues or responses, whose texts are scored: "
            f"{options.ANY_SHAPE}; with --per speaker dialogues or a corpus by name."
        ),
    ],
    per: Annotated[
        str,
        typer.Option(help="What has a score of its own.", **options.choices(("text", "line", "speaker"))),
    ] = "text",
    recogniser: options.Recogniser = "default",
    lexicon: options.Lexicon = None,
    norms: options.Norms = None,
    columns: options.Columns = None,
    data: options.Data = None,
    min_words: Annotated[
        int, typer.Option(min=1, help="Speakers who say fewer words are counted, not shown.")
    ] = _FEW_WORDS,
    as_json: options.Json = False,
) -> None:
    """The personality that a text shows: OCEAN, each from 1 to 7.

    The traits are openness, conscientiousness, extraversion, agreeableness and neuroticism. This is a
    statistic of words, not a psychological test: docs/reference/recogniser.md says what it can do.

    Example: palaver personality score letter.txt
    """
    judge = load_recogniser(recogniser, lexicon=lexicon, norms=norms or ())
    with progress() as tell:
        tell("reading", 0, 1)
        names, texts, notes = _gathered(source, per, data, min_words, options.parse_columns(columns))
        tell("scoring", 0, 1)
        scores = (
            score_texts(judge, [" \n".join(parts) for parts in texts]).values
            if judge.count is None
            else _sums(judge, texts)
        )
    notes += getattr(getattr(getattr(judge, "counter", None), "lexicon", None), "notes", ())
    n_words = [_words(parts) for parts in texts]
    if as_json:
        rows = [
            {"name": name, "words": words, **_by_trait(row)}
            for name, words, row in zip(names, n_words, scores, strict=True)
        ]
        print_json({"recogniser": judge.name, "per": per, "scores": rows, "notes": notes})
    elif per == "text":
        _print_picture(scores[0], getattr(judge, "intercepts", None))
        if n_words[0] < _FEW_WORDS:
            notes = (*notes, f"only {count_of(n_words[0], 'word')}: short texts are drawn to the average")
    else:
        _print_table(per, names, n_words, scores)
    if not as_json:
        for note in notes:
            typer.secho(note, fg="yellow")
        typer.echo(f"recogniser {judge.name}; a statistic of words, not a psychological test")


def _sums(judge: Any, texts: Sequence[Sequence[str]]) -> np.ndarray:
    """Scores of texts that come as utterances: counted apart, so that the end of one is the end of a
    sentence."""
    counts = judge.count([part for parts in texts for part in parts])
    ends = np.cumsum([len(parts) for parts in texts])
    totals = [counts[b:e].sum(axis=0) for b, e in zip([0, *ends[:-1]], ends, strict=True)]
    scores: np.ndarray = judge.score(np.asarray(np.concatenate(totals)))
    return scores


def _gathered(
    source: str, per: str, data: Path | None, min_words: int, columns: Mapping[str, str]
) -> tuple[list[str], list[list[str]], tuple[str, ...]]:
    """Names, utterances, and what was left out."""
    if per == "speaker":
        return _speakers(source, data, min_words, columns)
    texts = _texts(source, per, columns)
    if per == "text":
        parts = [text for _, text in texts]
        if not _words(parts):
            raise DataError(f"{_name(source)} has no words", "there is nothing to score")
        return [_name(source)], [parts], ()
    used = [(place, text) for place, text in texts if _words([text])]
    if not used:
        raise DataError(f"{_name(source)} has no line with words", "there is nothing to score")
    left_out = len(texts) - len(used)
    notes = (f"left out {count_of(left_out, 'line')} without words",) if left_out else ()
    return [f"{place}: {text.strip()}" for place, text in used], [[text] for _, text in used], notes


def _speakers(
    source: str, data: Path | None, min_words: int, columns: Mapping[str, str]
) -> tuple[list[str], list[list[str]], tuple[str, ...]]:
    if source == "-":
        raise UsageError(
            "--per speaker needs a file of dialogues or the name of a corpus", "save the text in a file"
        )
    said: dict[str, list[str]] = {}
    for dialogue in read_corpus(source, root=data, columns=columns):
        for turn in dialogue.turns:
            said.setdefault(turn.speaker, []).append(turn.text)
    sizes = {name: _words(texts) for name, texts in said.items()}
    shown = sorted((name for name in said if sizes[name] >= min_words), key=lambda n: -sizes[n])
    if not shown:
        most = max(sizes, key=lambda n: sizes[n], default="")
        why = f"{most} says most, {count_of(sizes[most], 'word')}" if most else "there are no turns"
        raise DataError(
            f"nobody in {source} says {min_words:,} words ({why})", "ask for fewer with --min-words"
        )
    left_out = len(said) - len(shown)
    who = count_of(left_out, "speaker")
    notes = (f"left out {who} with fewer than {min_words:,} words (--min-words)",) if left_out else ()
    return shown, [said[name] for name in shown], notes


def _texts(source: str, per: str, columns: Mapping[str, str]) -> list[Text]:
    """The texts of a file of dialogues or responses; of a plain one its lines, or the whole."""
    if source != "-" and not is_plain_text(Path(source)):
        return list(read_texts(source, columns=columns))
    text = _read(source)
    if per == "text":
        return [Text("", text)]
    return [Text(str(number), line) for number, line in enumerate(text.splitlines(), start=1)]


def _read(source: str) -> str:
    if source != "-":
        with TextStream(Path(source)) as stream:
            return stream.read().decode()
    content = sys.stdin.buffer.read()
    check_text(content[:4096], _name(source))
    return content.decode("utf-8", errors="replace")


def _name(source: str) -> str:
    return "standard input" if source == "-" else source


def _words(parts: Sequence[str]) -> int:
    """Words as the recogniser counts them, near enough: what stands between spaces and has a letter or
    digit."""
    return sum(any(c.isalnum() for c in word) for part in parts for word in part.split())


def _print_picture(scores: np.ndarray, average: np.ndarray | None) -> None:
    """A line for each trait from 1 to 7 with a dot at the score and a bar at the average text."""
    for i, trait in enumerate(TRAITS):
        line = ["─"] * _WIDTH
        if average is not None:
            line[_place(average[i])] = "┼"
        line[_place(scores[i])] = "●"
        typer.echo(f"{trait:<18} {scores[i]:.2f}  1 {''.join(line)} 7")
    if average is not None:
        typer.echo("● this text   ┼ the average text of training")


def _place(score: float) -> int:
    return round((float(score) - 1) / 6 * (_WIDTH - 1))


def _print_table(what: str, names: Sequence[str], n_words: Sequence[int], scores: np.ndarray) -> None:
    """A row each; the little bars compare the rows with each other, from the least to the greatest."""
    console = Console()
    table = lines.table((what,), ("words", *(trait[:5] for trait in TRAITS)))
    low, high = scores.min(axis=0), scores.max(axis=0)
    for name, words, row in zip(names, n_words, scores, strict=True):
        cells = []
        for i, value in enumerate(row):
            spread = high[i] - low[i]
            step = int((value - low[i]) / spread * (len(_STEPS) - 1) + 0.5) if spread > 0 else 3
            cells.append(f"{value:.2f} {_STEPS[step]}")
        shown = lines.name_cell(lines.shorten_on_terminal(console, name, _LONGEST))
        table.add_row(shown, f"{words:,}", *cells)
    lines.print_table(console, table)


def _by_trait(values: Sequence[float]) -> dict[str, float]:
    return {trait: round(float(value), 4) for trait, value in zip(TRAITS, values, strict=True)}


def fit(
    texts: Annotated[
        Path, typer.Argument(help="CSV with text and the five traits (or O, C, E, A, N) from 1 to 7.")
    ],
    out: options.Out,
    name: Annotated[str, typer.Option(help="What it is called. [default: the file's name]")] = "",
    lexicon: options.Lexicon = None,
    norms: options.Norms = None,
    folds: Annotated[int, typer.Option(min=2, max=50, help="Folds of the cross-validation.")] = 10,
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Fit a recogniser to texts with known scores.

    Writes it as JSON, and says how well it does on texts it has not seen.

    Example: palaver personality fit essays.csv --out mine.json
    """
    options.refuse_existing(out, force)
    words = read_lexicon(lexicon) if lexicon else open_lexicon()
    values = read_norms(*(norms or ()))
    with progress() as tell:
        tell("reading", 0, 1)
        read, scores = read_scored_texts(texts)
        tell("fitting", 0, 1)
        fitted = run_fit(
            read,
            scores,
            Counter(words, values),
            name=name or out.name.split(".")[0],
            n_folds=folds,
            seed=seed,
            provenance={"data": {texts.name: sha256_of(texts)}},
        )
    fitted.recogniser.save(out)
    if as_json:
        print_json(
            {
                "recogniser": str(out),
                "texts": fitted.n_texts,
                "folds": folds,
                "correlations": _by_trait(fitted.correlations),
                "mean_errors": _by_trait(fitted.mean_errors),
                "notes": words.notes,
            }
        )
        return
    typer.echo(f"{count_of(fitted.n_texts, 'text')}, {folds} folds; held out:")
    for i, trait in enumerate(TRAITS):
        typer.echo(
            f"  {trait:<18} r = {show_fixed(fitted.correlations[i], 3)}   "
            f"mean error {fitted.mean_errors[i]:.3f}"
        )
    for note in words.notes:
        typer.secho(note, fg="yellow")
    typer.echo(f"wrote {out}; use it with: palaver personality score FILE --recogniser {out}")
