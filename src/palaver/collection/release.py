"""Conversations in the layout of Topical-Chat's release, which `palaver.corpora.topical_chat` reads.

`conversations/SPLIT.json`, `reading_sets/post-build/SPLIT.json` for the five splits, and
`entity_to_topic.json`. Every turn has every field of the release, empty where nothing is known: programs that
read the release ask for all of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palaver.collection.labels import SPLITS, configuration_of, text_label
from palaver.errors import UserError
from palaver.files import write_atomically
from palaver.knowledge.candidates import reading_set_of
from palaver.schema import Article, Dialogue, ReadingSet, Section
from palaver.tabular import Tabular

AGENTS = ("agent_1", "agent_2")
TURN_LABELS = ("sentiment", "turn_rating")
N_ARTICLE_SECTIONS = 4
_MOST_SECTIONS = 9
"""FS10 would stand before FS2 when readers sort the names."""
_LEADS = {
    "shortened": "shortened_wiki_lead_section",
    "summarised": "summarized_wiki_lead_section",
    "full": "shortened_wiki_lead_section",
}
_DIALOGUE_LABELS = {"split", "original_split", "config", "article", "article_url"}


@dataclass(frozen=True, repr=False)
class Release(Tabular):
    """What was written, and what the layout has no place for."""

    conversations: Mapping[str, int]
    """Split -> how many."""
    left_out: Mapping[str, tuple[str, ...]]
    """Reason -> ids of the conversations that could not be written."""
    lost: Mapping[str, int]
    """What the layout does not hold -> how often it was there."""

    def _headline(self) -> str:
        n_left_out = sum(map(len, self.left_out.values()))
        return f"{sum(self.conversations.values()):,} conversations written, {n_left_out:,} left out"

    def _tables(self) -> Mapping[str, Any]:
        splits = list(self.conversations)
        return {"splits": {"split": splits, "conversations": list(self.conversations.values())}}


@dataclass
class _Files:
    """The content of the files."""

    conversations: dict[str, dict[str, Any]] = field(default_factory=lambda: {s: {} for s in SPLITS})
    reading_sets: dict[str, dict[str, Any]] = field(default_factory=lambda: {s: {} for s in SPLITS})
    topics: dict[str, str] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    left_out: dict[str, tuple[str, ...]] = field(default_factory=dict)
    lost: Counter[str] = field(default_factory=Counter)


def write_release(dialogues: Iterable[Dialogue], folder: Path) -> Release:
    """Write conversations into a folder; one without a split is training data."""
    files = _Files()
    for dialogue in dialogues:
        fault = _fault(dialogue, files.ids)
        if fault:
            files.left_out[fault] = (*files.left_out.get(fault, ()), dialogue.id)
            continue
        files.ids.add(dialogue.id)
        split = text_label(dialogue, "split") or "train"
        agents = _agents(dialogue)
        files.conversations[split][dialogue.id] = _conversation(dialogue, agents, files.lost)
        if dialogue.knowledge:
            files.reading_sets[split][dialogue.id] = _reading_sets(dialogue, agents, files)
    if not files.ids:
        problems = [f"{reason}: {len(ids):,}" for reason, ids in files.left_out.items()]
        raise UserError("there is no conversation that the layout can hold", problems=problems)
    for split in SPLITS:
        _write(folder / "conversations" / f"{split}.json", files.conversations[split])
        _write(folder / "reading_sets" / "post-build" / f"{split}.json", files.reading_sets[split])
    _write(folder / "entity_to_topic.json", dict(sorted(files.topics.items())))
    counts = {split: len(files.conversations[split]) for split in SPLITS}
    return Release(counts, files.left_out, dict(files.lost))


def _write(path: Path, content: Mapping[str, Any]) -> None:
    with write_atomically(path) as file:
        json.dump(content, file, indent=2)  # ASCII, as the release is


def _fault(dialogue: Dialogue, ids: set[str]) -> str:
    """Why the layout cannot hold a conversation; empty if it can."""
    split = text_label(dialogue, "split") or "train"
    if not dialogue.turns:
        return "no turns"
    n_speakers = len({turn.speaker for turn in dialogue.turns})
    if n_speakers != len(AGENTS) or len(dialogue.speakers) != len(AGENTS):
        return "one side alone speaks" if n_speakers == 1 else "more than two speakers"
    if dialogue.id in ids:
        return "the id of an earlier conversation"
    if split not in SPLITS:
        return f"the split {split!r}, which is none of {', '.join(SPLITS)}"
    if any(len(reading_set.sections) > _MOST_SECTIONS for reading_set in dialogue.knowledge or ()):
        return f"more than {_MOST_SECTIONS} factual sections"
    return ""


def _agents(dialogue: Dialogue) -> dict[str, str]:
    """Speaker -> the name the layout has for them."""
    if set(dialogue.speakers) == set(AGENTS):
        return {name: name for name in AGENTS}
    return dict(zip(dialogue.speakers, AGENTS, strict=True))


def _conversation(dialogue: Dialogue, agents: Mapping[str, str], lost: Counter[str]) -> dict[str, Any]:
    content = []
    for turn in dialogue.turns:
        message = {"agent": agents[turn.speaker], "message": turn.text}
        said: dict[str, Any] = {name: turn.labels.get(name) or "" for name in TURN_LABELS}
        content.append({**message, **said, "knowledge_source": list(turn.knowledge)})
        lost.update(f"turns' label {name}" for name in turn.labels if name not in TURN_LABELS)
    known = _DIALOGUE_LABELS | {f"rating_{speaker}" for speaker in agents}
    lost.update(f"conversations' label {name}" for name in dialogue.labels if name not in known)
    ratings = {agent: dialogue.labels.get(f"rating_{speaker}") for speaker, agent in agents.items()}
    return {
        "article_url": _url(dialogue) or None,
        "config": configuration_of(dialogue) or None,
        "content": content,
        "conversation_rating": ratings,
    }


def _url(dialogue: Dialogue) -> str:
    named = text_label(dialogue, "article_url")
    articles = [r.article for r in dialogue.knowledge or () if r.article is not None]
    return named or next((a.url for a in articles if a.url), "") or text_label(dialogue, "article")


def _reading_sets(dialogue: Dialogue, agents: Mapping[str, str], files: _Files) -> dict[str, Any]:
    sets = {agent: reading_set_of(dialogue, speaker) for speaker, agent in agents.items()}
    if None in sets.values():
        files.lost["reading sets that belong to no speaker"] += 1
    shown = [s.article if s is not None else None for s in sets.values()]
    articles = [article for article in shown if article is not None and any(article.parts)]
    if articles and (len(articles) < len(shown) or articles[0] != articles[1]):
        files.lost["articles of one side, which the layout shows to both"] += 1
    record: dict[str, Any] = {"config": configuration_of(dialogue) or None}
    for agent, reading_set in sets.items():
        record[agent] = _sections(reading_set, files)
    record["article"] = _article(articles[0], files.lost) if articles else {}
    record["article"]["url"] = _url(dialogue)
    return record


def _sections(reading_set: ReadingSet | None, files: _Files) -> dict[str, Any]:
    sections = reading_set.sections if reading_set is not None else ()
    return {f"FS{n}": _section(section, files) for n, section in enumerate(sections, start=1)}


def _section(section: Section, files: _Files) -> dict[str, Any]:
    name = section.entity.name
    if section.entity.topic:
        files.topics.setdefault(name, section.entity.topic)
    facts = [fact.text for fact in section.facts if fact.text.strip()]
    if len(facts) < len(section.facts):
        files.lost["facts without a word"] += len(section.facts) - len(facts)
    record: dict[str, Any] = {"entity": name, "fun_facts": facts}
    if section.lead:
        record[_LEADS.get(section.lead_form, _LEADS["full"])] = section.lead
        if section.lead_form == "full":
            files.lost["lead sections in full, written as shortened ones"] += 1
    return record


def _article(article: Article, lost: Counter[str]) -> dict[str, Any]:
    sections = article.parts[:N_ARTICLE_SECTIONS]
    if len(article.parts) > N_ARTICLE_SECTIONS:
        lost["articles with more than four sections, of which four were written"] += 1
    return {"headline": article.title, **{f"AS{n}": text for n, text in enumerate(sections, start=1)}}
