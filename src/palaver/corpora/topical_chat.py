"""Topical-Chat (Gopalakrishnan et al. 2019, section 3), in the layout of its release.

`conversations/SPLIT.json` are joined with what each side had been given to read, from the first of these that
is there: `reading_sets/post-build/` (as the authors' script makes them, complete), `reading_sets/` (a copy in
which facts were recovered in part), `reading_sets/pre-build/` (lead sections by number, looked up in
`wiki.json`; facts only by the number of a post, without text). What is missing is counted.

A turn's `knowledge` names the sections its writer said it came from: FS1 to FS3 are the sections of the
reading set in order, AS1 to AS4 the parts of the article.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from palaver.corpora.reading import build, field, in_split, load_json, named, split_labels
from palaver.errors import DataError
from palaver.readers.shapes import Tally
from palaver.schema import Dialogue

SPLITS = ("train", "valid_freq", "valid_rare", "test_freq", "test_rare")
AGENTS = ("agent_1", "agent_2")
_FILES = {"train": "train", "train_partial": "train", **{name: name for name in SPLITS[1:]}}
_LEADS = {"shortened_wiki_lead_section": "shortened", "summarized_wiki_lead_section": "summarised"}
_POST = re.compile(r"t3_\w+")
_NO_TEXT = "facts without their text"


def read_release(path: Path, split: str | None, tally: Tally) -> Iterator[Dialogue]:
    """The conversations of all splits, or of one. `path` is the folder `conversations`."""
    home = path.parent
    topics = _json_if_there(home, "entity_to_topic.json", "src/entity_to_topic.json")
    is_there = False
    for name, belongs in _FILES.items():
        file = named(path, f"{name}.json")
        if file is not None and in_split(belongs, split):
            is_there = True
            yield from _read_split(home, file, name, belongs, topics, tally)
    if not is_there:
        wanted = split or "any split"
        raise DataError(
            f"{path} holds no conversations of {wanted}", f"expected {', '.join(SPLITS)} (.json, .json.gz)"
        )


def _read_split(
    home: Path, file: Path, name: str, belongs: str, topics: dict[str, str], tally: Tally
) -> Iterator[Dialogue]:
    labels = split_labels(name) if name == belongs else {"split": belongs, "original_split": name}
    shelf = _Shelf(home, name, topics, tally)
    for id, conversation in load_json(file, dict).items():
        place = f"{file}, conversation {id}"
        turns = [_turn(turn, place) for turn in field(conversation, "content", list, place)]
        about: dict[str, Any] = {**labels, "config": conversation.get("config")}
        about["article_url"] = conversation.get("article_url")
        for agent in AGENTS:
            about[f"rating_{agent}"] = _object(conversation, "conversation_rating", place).get(agent)
        yield build(id, turns, about, place, knowledge=shelf.reading_sets(id))


def _turn(turn: Any, place: str) -> dict[str, Any]:
    return {
        "speaker": field(turn, "agent", str, place),
        "text": field(turn, "message", str, place),
        "knowledge": turn.get("knowledge_source") or (),
        "labels": {name: turn[name] for name in ("sentiment", "turn_rating") if turn.get(name)},
    }


class _Shelf:
    """The reading sets of one split."""

    def __init__(self, home: Path, name: str, topics: dict[str, str], tally: Tally) -> None:
        self._topics = topics
        self._tally = tally
        self._sets: dict[str, Any] = {}
        self._wiki: dict[str, dict[str, str]] = {}
        for folder in ("reading_sets/post-build", "reading_sets", "reading_sets/pre-build"):
            self._path = named(home / folder, f"{name}.json")
            if self._path is not None:
                self._sets = load_json(self._path, dict)
                break
        if self._path is not None and self._path.parent.name == "pre-build":
            wiki = _json_if_there(home, "src/wiki/wiki.json", "wiki.json")
            for kind in _LEADS:
                self._wiki[kind] = {str(n): text for text, n in _object(wiki, kind, "wiki.json").items()}

    def reading_sets(self, id: str) -> list[dict[str, Any]] | None:
        """One reading set for each side, or None where nobody knows what they read."""
        record = self._sets.get(id)
        if record is None:
            self._tally["conversations without reading sets"] += 1
            return None
        place = f"{self._path}, conversation {id}"
        article = self._article(id, record, place)
        return [
            {
                "id": f"{id}-{agent}",
                "sections": [
                    self._section(key, section, place)
                    for key, section in sorted(field(record, agent, dict, place).items())
                    if key.startswith("FS")
                ],
                "article": article,
                "configuration": record.get("config"),
            }
            for agent in AGENTS
        ]

    def _section(self, key: str, section: Any, place: str) -> dict[str, Any]:
        entity = field(section, "entity", str, f"{place}, {key}")
        facts = [
            {"id": f"{key}-{n}", "text": text, "entity": entity}
            for n, text in enumerate(self._facts(section, place), start=1)
        ]
        lead, form = self._lead(section)
        topic = self._topics.get(entity, "")
        return {
            "entity": {"id": entity, "name": entity, "topic": topic},
            "lead": lead,
            "lead_form": form,
            "facts": facts,
        }

    def _facts(self, section: dict[str, Any], place: str) -> list[str]:
        if "fun_facts_recovered" in section:
            texts = field(section, "fun_facts_recovered", list, place)
            self._tally[_NO_TEXT] += max(0, len(field(section, "fun_fact_ids", list, place)) - len(texts))
        else:
            texts = field(section, "fun_facts", list, place)
        known = [t for t in texts if isinstance(t, str) and t.strip() and not _POST.fullmatch(t)]
        self._tally[_NO_TEXT] += len(texts) - len(known)
        return known

    def _lead(self, section: dict[str, Any]) -> tuple[str, str]:
        for kind, form in _LEADS.items():
            lead = section.get(kind)
            if isinstance(lead, int):
                lead = self._wiki.get(kind, {}).get(str(lead))
            if isinstance(lead, str) and lead:
                return lead, form
        self._tally["sections without their lead section"] += 1
        return "", "none"

    def _article(self, id: str, record: dict[str, Any], place: str) -> dict[str, Any] | None:
        """The article with its text; None in configuration C, which has none, and where it is missing."""
        article = _object(record, "article", place)
        url = str(article.get("url") or record.get("article_url") or "")
        parts = [article.get(f"AS{n}") or "" for n in range(1, 5)]
        while parts and not parts[-1]:
            parts.pop()
        if not parts:
            if "article_segments_recovered" in record:
                parts = [part for part in field(record, "article_segments_recovered", list, place) if part]
            if parts:
                self._tally["articles of which a few parts were recovered, in no known order"] += 1
        if not parts:
            if record.get("config") != "C":
                self._tally["articles without their text"] += 1
            return None
        return {
            "id": url[:1000] or f"{id}-article",
            "title": article.get("headline") or "",
            "parts": parts,
            "url": url,
        }


def _object(record: Any, name: str, place: str) -> dict[str, Any]:
    """An object that may be missing."""
    if isinstance(record, dict) and record.get(name) is None:
        return {}
    value: dict[str, Any] = field(record, name, dict, place)
    return value


def _json_if_there(home: Path, *names: str) -> dict[str, Any]:
    for name in names:
        path = named(home, name)
        if path is not None:
            value: dict[str, Any] = load_json(path, dict)
            return value
    return {}
