"""`palaver knowledge build` and `palaver knowledge reading-sets`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from palaver.cli import options
from palaver.cli.messages import print_json
from palaver.cli.progress import progress
from palaver.corpora.catalogue import corpus_names, read_corpus
from palaver.errors import UsageError, UserError, count_of
from palaver.files import format_by_name
from palaver.knowledge import reading_sets as sets
from palaver.knowledge.articles import FEWEST_WORDS, MOST_WORDS
from palaver.knowledge.base import SAMPLE, KnowledgeBase, Material, read_built, read_records, read_sample
from palaver.knowledge.budgets import paper_budgets
from palaver.knowledge.build import FEWEST_FACTS, Build, build_knowledge_base
from palaver.knowledge.conversations import read_conversations
from palaver.readers import read_dialogues, write_dialogues
from palaver.readers.rows import RowFile
from palaver.readers.texts import read_texts
from palaver.reports import lines

_SHOWN = 3
"""Names that stand behind a reason."""


def build(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="JSON lines of entities and articles; `sample`, which ships; dialogues with reading sets; "
            "a corpus that has them (topical-chat), or the folder of Topical-Chat's release."
        ),
    ],
    out: options.Out,
    budgets: Annotated[
        str,
        typer.Option(
            metavar="paper|all|N|TOPIC=N",
            help="Entities by topic: the paper's table, all there are, a total spread over the topics as "
            "people talk about them, or numbers by topic.",
        ),
    ] = "paper",
    utterances: Annotated[
        Path | None,
        typer.Option(help="What people talk about: dialogues, responses, or a text a line."),
    ] = None,
    articles: Annotated[
        int | None,
        typer.Option(min=1, help="Choose so many that cover the topics. [default: all that can be used]"),
    ] = None,
    fewest_facts: Annotated[
        int, typer.Option(min=4, help="Entities with fewer are left out; configuration A needs 8.")
    ] = FEWEST_FACTS,
    data: options.Data = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Build a knowledge base of entities, facts and articles.

    Entities need 8 to 10 facts and a lead section; articles 600 to 1,000 words, three of the entities, and no
    profane word. What is left out is listed with the reason.

    Example: palaver knowledge build entities.jsonl articles.jsonl --budgets 24 --out kb.jsonl

    Example: palaver knowledge build sample --budgets all --out kb.jsonl

    Example: palaver knowledge build topical-chat --out kb.jsonl
    """
    wanted = _parse_budgets(budgets)
    options.refuse_existing(out, force)
    material = Material()
    with progress() as tell:
        for done, source in enumerate(sources):
            tell("reading", done, len(sources))
            material.add(_read_source(source, data))
        texts = [text.text for text in read_texts(utterances)] if utterances is not None else []
        tell("building", 0, 1)
        made = build_knowledge_base(
            material, budgets=wanted, utterances=texts, n_articles=articles, fewest_facts=fewest_facts
        )
    made.base.write(out)
    if as_json:
        print_json(
            {
                "out": str(out),
                "entities": len(made.base.entities),
                "articles": len(made.base.articles),
                "coverage": made.coverage,
                "refused": made.refusals,
                "notes": made.notes,
            }
        )
    else:
        _print_build(made, out)


def _parse_budgets(text: str) -> Mapping[str, int] | int | None:
    if text == "all":
        return None
    if text == "paper":
        return paper_budgets()
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    by_topic = {}
    for part in text.split(","):
        topic, equals, number = (word.strip() for word in part.rpartition("="))
        if not (topic and equals and number.isascii() and number.isdigit()):
            raise UsageError(
                f"--budgets: expected paper, all, a number, or TOPIC=N, found {part!r}",
                "with commas between topics, such as --budgets Books=10,Music=12",
            )
        if topic in by_topic:
            raise UsageError(f"--budgets: {topic} is there twice")
        by_topic[topic] = int(number)
    if not any(by_topic.values()):
        raise UsageError("--budgets: no topic has an entity")
    return by_topic


def _read_source(source: str, data: Path | None) -> Material:
    path = Path(source)
    if source == SAMPLE:
        return read_sample()
    if path.is_file() and not _holds_dialogues(path):
        return read_records(path)
    if path.is_file() or source in corpus_names():
        reader = read_corpus(source, root=data)
    elif path.is_dir():
        reader = read_corpus("topical-chat", root=path)
    else:
        raise UserError(
            f"there is no {source}",
            f"expected a file, {SAMPLE}, the name of a corpus, or the folder of Topical-Chat's release",
        )
    material = read_conversations(reader)
    material.notes += reader.notes
    if not material.entities:
        raise UserError(f"the dialogues of {source} have no reading sets", "such as topical-chat has")
    return material


def _holds_dialogues(path: Path) -> bool:
    _, row = next(RowFile(path).rows(), (0, None))
    return isinstance(row, dict) and "turns" in row


def _print_build(made: Build, out: Path) -> None:
    console = Console()
    table = lines.table(("topic",), ("budget", "entities", "articles"), title="Knowledge base")
    for one in made.coverage:
        cells = (one.topic or "(none)", f"{one.budget:,}", f"{one.n_entities:,}", f"{one.n_articles:,}")
        table.add_row(*map(Text, cells))
    lines.print_table(console, table)
    lines.line(console, "articles: those with an entity of the topic among the three they mention most")
    for noun, reasons in (("entity", made.refusals.entities), ("article", made.refusals.articles)):
        for reason, names in reasons.items():
            lines.line(console, f"left out, {noun}: {reason}: {len(names):,} ({_some(names)})")
    for note in made.notes:
        lines.line(console, f"note: {note}")
    n_articles = count_of(len(made.base.articles), "article")
    lines.line(console, f"wrote {len(made.base.entities):,} entities and {n_articles} to {out}")


def _some(names: Sequence[str]) -> str:
    more = ", …" if len(names) > _SHOWN else ""
    return ", ".join(name if len(name) <= 60 else f"{name[:59]}…" for name in names[:_SHOWN]) + more


def reading_sets(
    knowledge_base: Annotated[
        str, typer.Argument(help="A file that `palaver knowledge build` wrote; or `sample`, which ships.")
    ],
    out: options.Out,
    number: Annotated[int, typer.Option(min=1, help="Conversations, with two reading sets each.")] = 8,
    configurations: Annotated[
        Path | None,
        typer.Option(help="A TOML file that says which part goes to whom. [default: A to D of the paper]"),
    ] = None,
    accepted: Annotated[
        Path | None,
        typer.Option(help="Accepted conversations: the articles they rest on have been used so often."),
    ] = None,
    most_uses: Annotated[
        int, typer.Option(min=1, help="Accepted conversations that may rest on one article.")
    ] = sets.MOST_USES,
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Make pairs of reading sets for conversations.

    What is written are dialogues without turns: id, speakers, and a reading set for each of the two.
    Configurations come equally often, and so do articles.

    Example: palaver knowledge reading-sets sample --number 12 --seed 1 --out sets.jsonl

    Example: palaver knowledge reading-sets kb.jsonl --accepted done.jsonl --number 100 --out sets.jsonl
    """
    format_by_name(out)
    options.refuse_existing(out, force)
    parts = sets.read_configurations(configurations)
    held = list(read_dialogues(accepted)) if accepted is not None else []
    base = _read_base(knowledge_base)
    if not base.articles:
        raise UserError(
            f"there is no article in {knowledge_base}, and each pair of reading sets rests on one",
            f"add articles of {FEWEST_WORDS} to {MOST_WORDS:,} words and build it anew",
        )
    plan = sets.plan_pairs(
        base, number, configurations=parts, seed=seed, most_uses=most_uses, uses=sets.count_uses(held)
    )
    pairs = sets.make_reading_sets(base, plan, configurations=parts, seed=seed)
    if not {pair.id for pair in pairs}.isdisjoint(dialogue.id for dialogue in held):
        raise UserError(f"{accepted} has conversations of the same ids", "choose another --seed")
    write_dialogues(pairs, out)
    counts = Counter(choice.configuration for choice in plan.choices)
    article_counts = Counter(choice.article.id for choice in plan.choices)
    if as_json:
        print_json(
            {
                "out": str(out),
                "pairs": len(pairs),
                "configurations": {name: counts[name] for name in parts},
                "articles": dict(article_counts),
                "refused": plan.refusals,
            }
        )
        return
    console = Console()
    table = lines.table(("configuration", "what is given"), ("pairs",), title="Reading sets")
    for name, configuration in parts.items():
        table.add_row(*map(Text, (name, configuration.says, f"{counts[name]:,}")))
    lines.print_table(console, table)
    lines.line(
        console,
        f"{count_of(len(article_counts), 'article')}, "
        f"none in more than {count_of(max(article_counts.values()), 'pair')}",
    )
    for reason, n in plan.refusals.items():
        lines.line(console, f"left out, {reason}: {count_of(n, 'article')}")
    lines.line(console, f"wrote {count_of(len(pairs), 'pair')} to {out}")


def _read_base(source: str) -> KnowledgeBase:
    if source == SAMPLE:
        return build_knowledge_base(read_sample()).base
    return read_built(Path(source))
