"""Automatic Evaluation of Neural Personality-based Chatbots (Xing & Fernández 2018).

Tables 1 to 3 beside ours. The recogniser is Palaver's own, not the paper's, so numbers are compared, not
matched: what is checked is that the gold transcripts are recovered at least as well as in the paper. Beside
the paper's rows stand the controls it lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palaver.corpora.catalogue import corpus
from palaver.errors import DataError, UserError
from palaver.personality.plan import Settings
from palaver.personality.pools import Choice, Pools
from palaver.personality.protocol import run_protocol
from palaver.personality.results import Condition, Distinguishability
from palaver.personality.sources import read_pools

Tell = Callable[[str, int, int], None]

SHOWS = {"friends": "Friends", "big-bang-theory": "The Big Bang Theory"}
MIN_TURNS = 2000
DROPPED = 100
PROMPT = "Do you love me?"

# Precision and recall with σ over the characters, and F1
Published = tuple[float, float | None, float, float | None, float]
TABLE_1: dict[str, dict[str, Published]] = {
    "friends": {
        "Baseline": (0.16, 0.01, 0.16, 0.01, 0.16),
        "Gold": (0.61, 0.12, 0.61, 0.16, 0.61),
        "Speaker": (0.32, 0.02, 0.32, 0.05, 0.32),
        "Personality": (0.22, 0.04, 0.23, 0.09, 0.23),
    },
    "big-bang-theory": {
        "Baseline": (0.15, 0.01, 0.15, 0.02, 0.15),
        "Gold": (0.69, 0.11, 0.69, 0.16, 0.69),
        "Speaker": (0.46, 0.20, 0.47, 0.23, 0.47),
        "Personality": (0.29, 0.19, 0.31, 0.24, 0.30),
    },
}
WORDS_F1 = {"friends": (0.23, 0.22), "big-bang-theory": (0.19, 0.18)}
"""Section 5.1: F1 of the bag of words, with and without stop words."""
TABLE_2: dict[str, Published] = {
    "Baseline": (0.19, None, 0.19, None, 0.19),
    "Average": (0.53, 0.07, 0.53, 0.09, 0.53),
    "Open": (0.46, None, 0.46, None, 0.46),
    "Conscientious": (0.59, None, 0.62, None, 0.61),
    "Extravert": (0.63, None, 0.65, None, 0.64),
    "Agreeable": (0.53, None, 0.50, None, 0.51),
    "Neurotic": (0.44, None, 0.42, None, 0.43),
}
TABLE_3 = {
    "Joey": "Oh, of course I love you, baby.",
    "Raj": "I don’t love you.",
    "Open": "You are beautiful!",
    "Agreeable": "Oh I, I love you too.",
}
HIGH, AVERAGE = 6.5, 3.5
EXTREMES = {
    name: tuple(HIGH if i == k else AVERAGE for i in range(5)) for k, name in enumerate([*TABLE_2][2:])
}
"""Section 5.2: one trait high, the others average."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of a table: the paper's numbers where it has them, and ours where they were computed."""

    table: str
    label: str
    paper: Published | None = None
    ours: Published | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """All tables, and the results they come from."""

    rows: tuple[Row, ...]
    examples: tuple[tuple[str, str, str], ...]
    """Table 3: who, the paper's response, ours."""
    results: Mapping[str, Distinguishability] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    """What should be at least the paper's, and is not."""


@dataclass(frozen=True, kw_only=True)
class Responses:
    """Files of responses that `palaver generate` wrote, one condition a character."""

    speaker: Path | None = None
    personality: Path | None = None
    extremes: Path | None = None


def reproduce(
    folder: str | Path,
    recogniser: Any,
    *,
    settings: Settings | None = None,
    responses: Responses | None = None,
    examples: Sequence[tuple[str, str, str]] = (),
    tell: Tell | None = None,
) -> Reproduction:
    """Both shows' transcripts, and what was generated in their characters' names."""
    s = settings or Settings(unscaled_words=True)
    given = responses or Responses()
    _check(Path(folder))
    results: dict[str, Distinguishability] = {}
    generated = {
        name: _read(path, recogniser, s, tell)
        for name, path in (("Speaker", given.speaker), ("Personality", given.personality))
        if path is not None
    }
    rows: list[Row] = []
    for show, title in SHOWS.items():
        pools = read_pools(
            show, recogniser, Choice(min_turns=MIN_TURNS), root=folder, workers=s.workers, progress=tell
        )
        results[title] = gold = run_protocol(pools, s, progress=tell)
        for name, found in generated.items():
            of_show = _of_show(found, pools.characters, name)
            results[f"{title}, {name}"] = run_protocol(of_show, s, progress=tell)
        rows += _table_1(show, title, gold, results)
    if given.extremes is not None:
        results["Extremes"] = run_protocol(_read(given.extremes, recogniser, s, tell), s, progress=tell)
    rows += _table_2(results.get("Extremes"))
    return Reproduction(
        rows=tuple(rows),
        examples=tuple(examples),
        results=results,
        remarks=tuple(_remarks(results)),
        missed=tuple(_missed(results)),
    )


def _check(folder: Path) -> None:
    missing = [f"{title}: no file {corpus(show).layouts[0].file}" for show, title in SHOWS.items()
               if corpus(show).find(folder) is None]  # fmt: skip
    if missing:
        raise DataError(
            f"{folder} does not hold the transcripts",
            "see palaver corpus show friends, big-bang-theory, and name their folder with --data",
            missing,
        )


def _read(path: Path, recogniser: Any, settings: Settings, tell: Tell | None) -> Pools:
    """Responses without the 100 most frequent ones common to all, unless the file is clean already."""
    clean = ".cleaned." in path.name
    return read_pools(
        path, recogniser, Choice(drop_common=0 if clean else DROPPED), workers=settings.workers, progress=tell
    )


def _of_show(pools: Pools, characters: Sequence[str], name: str) -> Pools:
    there = [who for who in characters if who in pools.characters]
    if len(there) < len(characters):
        missing = ", ".join(who for who in characters if who not in there)
        raise UserError(
            f"the {name} responses have none of {missing}", f"they have: {', '.join(pools.characters)}"
        )
    return pools.only(there)


def _published(condition: Condition | None) -> Published | None:
    if condition is None:
        return None
    return (
        condition.precision,
        condition.precision_sigma,
        condition.recall,
        condition.recall_sigma,
        condition.f1,
    )


def _table_1(
    show: str, title: str, gold: Distinguishability, results: Mapping[str, Distinguishability]
) -> Iterator[Row]:
    table = f"Table 1: {title}"
    paper = TABLE_1[show]
    noun = gold.group_noun

    def row(
        label: str, name: str, of: Distinguishability | None = gold, key: str = "", note: str = ""
    ) -> Row:
        ours = _published(of.condition(name)) if of is not None else None
        return Row(table=table, label=label, paper=paper.get(key), ours=ours, note=note)

    yield row("Baseline", "shuffled labels", key="Baseline", note="shuffled labels")
    yield row("  pseudo-characters", "pseudo-characters", note="utterances dealt out anew")
    yield row("Gold", "characters", key="Gold")
    yield row("  by episode", "characters by group", note=f"no {noun} on both sides")
    yield row("  pseudo, by episode", "pseudo-characters by group")
    for name in ("Speaker", "Personality"):
        found = results.get(f"{title}, {name}")
        yield row(name, "characters", found, name, "" if found else "needs responses")
        if found is not None:
            yield row("  pseudo-characters", "pseudo-characters", found)
            yield row(
                "  by context", "characters by group", found, note=f"distinguishable: {found.verdict.answer}"
            )
            yield row("  pseudo, by context", "pseudo-characters by group", found)
    for i, features in enumerate(("words", "words without stop words")):
        f1 = WORDS_F1[show][i]
        label = "Words" if not i else "Words, no stop words"
        note = "section 5.1" + (", not scaled" if gold.condition(f"{features}, unscaled") else "")
        name = f"{features}, unscaled" if gold.condition(f"{features}, unscaled") else features
        ours = _published(gold.condition(name))
        yield Row(table=table, label=label, paper=(-1.0, None, -1.0, None, f1), ours=ours, note=note)
        yield row("  scaled", features, note="as the traits are")
    yield row("  scaled, by episode", "words by group")


def _table_2(found: Distinguishability | None) -> Iterator[Row]:
    table = "Table 2: extreme personalities"
    note = "" if found else "needs responses"
    characters = found.condition("characters") if found is not None else None
    for label, paper in TABLE_2.items():
        ours: Published | None = None
        if found is not None and characters is not None:
            if label in ("Baseline", "Average"):
                ours = _published(found.condition("shuffled labels" if label == "Baseline" else "characters"))
            else:
                ours = next(
                    (
                        (c.precision, None, c.recall, None, c.f1)
                        for c in characters.characters
                        if _same_type(c.character, label)
                    ),
                    None,
                )
        yield Row(table=table, label=label, paper=paper, ours=ours, note=note)
        if found is not None and label == "Average":
            for name, text in (
                ("pseudo-characters", "  pseudo-characters"),
                ("characters by group", "  by context"),
                ("pseudo-characters by group", "  pseudo, by context"),
            ):
                yield Row(table=table, label=text, ours=_published(found.condition(name)))


def _same_type(name: str, label: str) -> bool:
    """ "Open", "openness" or "6.5,3.5,3.5,3.5,3.5"."""
    if name == ",".join(f"{score:g}" for score in EXTREMES[label]):
        return True
    return name.casefold()[:4] == label.casefold()[:4]


def _missed(results: Mapping[str, Distinguishability]) -> Iterator[str]:
    for show, title in SHOWS.items():
        gold = results[title].condition("characters")
        least = TABLE_1[show]["Gold"][4]
        if gold is not None and round(gold.f1, 2) < least:
            yield f"{title}: gold F1 {gold.f1:.3f}, the paper has {least:.2f}"


def _remarks(results: Mapping[str, Distinguishability]) -> Iterator[str]:
    for title, found in results.items():
        yield f"{title}: {found.verdict.text}"
    yield (
        "Words: scaled like the traits (or as relative frequencies), the 200 most frequent words recover "
        "nearly all samples, so the paper’s low bag of words does not show what words can tell. Raw counts, "
        "among which an RBF kernel sees every sample far from every other, come nearest to its figures."
    )
