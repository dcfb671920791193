"""A study of what systems said: `palaver generate` writes responses, this makes a study of them.

Which contexts are drawn depends on the seed and their ids alone, so a file that grows keeps its sample.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import combinations
from pathlib import Path

from palaver.config import parse_toml, toml_value
from palaver.errors import UserError, nearest
from palaver.files import write_atomically
from palaver.schema import Dialogue, Item, Output, Study
from palaver.studies.material import UNSHARED_KNOWLEDGE, Candidate, Material, read_material
from palaver.studies.media import media_notes, with_media
from palaver.studies.screens import draw_key

DRAFTS = ("likert", "rankme", "pairwise", "snippet")
"""The presets that can be put to responses and dialogues."""
CONVERSATION = "conversation"
PERSON = "human"
"""What the person's own reply is called where it is judged among those of systems."""


@dataclass(frozen=True)
class StudyDraft:
    """A study that can be served as it is, and how it came about."""

    study: Study
    text: str
    """The study file, without its items."""
    items_file: str
    """What the study file calls the file of its items."""
    left_out: Mapping[str, int]
    """Reason -> how many."""
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<StudyDraft: {len(self.study.items):,} items of {', '.join(self.study.systems)}>"

    def write(self, path: str | Path) -> tuple[Path, Path]:
        """Write the study file, and its items beside it as JSON lines; both paths."""
        path = Path(path)
        items = path.with_name(items_file_of(path))
        text = self.text.replace(toml_value(self.items_file), toml_value(items.name), 1)
        media = self.study.media
        if media is not None:  # it was named from here, and is looked for from the study file
            folder = Path(os.path.relpath(media.folder, path.parent)).as_posix()
            text = text.replace(_media_toml(media.folder), _media_toml(folder), 1)
        with write_atomically(items) as file:
            for item in self.study.items:
                file.write(item.model_dump_json(exclude_defaults=True) + "\n")
        with write_atomically(path) as file:
            file.write(text)
        return path, items


def _media_toml(folder: str | Path) -> str:
    return toml_value({"folder": str(folder)})


def items_file_of(path: Path) -> str:
    """`study-items.jsonl` of `study.toml`."""
    return f"{path.name.removesuffix('.toml')}-items.jsonl"


def draft_study(
    sources: str | Path | Sequence[str | Path],
    *,
    preset: str = "likert",
    sample: int | None = None,
    distinct_by: str | None = None,
    pairs: int | None = None,
    layout: str | None = None,
    columns: Mapping[str, str] | None = None,
    media: str | Path | None = None,
    seed: int = 0,
) -> StudyDraft:
    """A study of the responses or dialogues in one or more files.

    `sample` contexts are drawn; `distinct_by` takes at most one of each conversation (or of another label of
    the responses). The preset "snippet" puts what was really said among the replies, as the system human. In
    a pairwise study each context is shown with every pair of systems or, with `pairs`, with so many, in turn.
    Systems are named in the rows, or else as the files. `media` is a folder of images and sounds that the
    texts name in Markdown.
    """
    if preset not in DRAFTS:
        raise UserError(
            f"the preset {preset!r} cannot be put to responses{nearest(preset, DRAFTS)}",
            f"those that can: {', '.join(DRAFTS)}",
        )
    for name, number in (("sample", sample), ("pairs", pairs)):
        if number is not None and number < 1:
            raise UserError(f"{name}: expected 1 or more, found {number}")
    paths = [sources] if isinstance(sources, str | Path) else list(sources)
    material = read_material(paths, columns=columns, seed=seed)
    if len(material.systems) < 2 and preset in ("pairwise", "rankme"):
        raise UserError(
            f"{preset} shows several systems on a screen, found one: {material.systems[0]}",
            "give the file of another system, too: --from A --from B",
        )
    choice = _Choice(material, seed)
    candidates = choice.take(preset, sample, distinct_by)
    if preset == "pairwise":
        items = _pairs(candidates, material.systems, pairs or len(material.systems) ** 2)
    else:
        judges_person = choice.judges_person(preset)
        items = [_item(candidate, candidate.id, material.systems, judges_person) for candidate in candidates]
    stem = Path(paths[0]).name.partition(".")[0]
    text = _text(f"{stem}-{preset}", preset, items, material.dialogues, layout, seed, media)
    fields, _ = parse_toml(text, preset)
    items_file = str(fields.pop("items_from"))
    study, mistakes = with_media(Study.model_validate({**fields, "items": items}), Path())
    if mistakes:
        problems = [f"{items[int(place[1])].id}: {text}" for place, text in mistakes if place[0] == "items"]
        raise UserError(f"{media}: not every file can be shown", problems=problems or [mistakes[0][1]])
    return StudyDraft(study, text, items_file, choice.left_out, (*choice.notes, *media_notes(study)))


class _Choice:
    """Which candidates are taken, and why the others are not."""

    def __init__(self, material: Material, seed: int) -> None:
        self.material = material
        self.seed = seed
        self.what = "dialogues" if material.dialogues else "contexts"
        self._left_out: Counter[str] = Counter(material.left_out)
        self._notes = list(material.notes)

    @property
    def left_out(self) -> dict[str, int]:
        return {reason: n for reason, n in self._left_out.items() if n}

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes)

    def take(self, preset: str, sample: int | None, distinct_by: str | None) -> list[Candidate]:
        """The candidates to be judged, in the order of the file."""
        able = list(self.material.candidates)
        with_reference = [candidate for candidate in able if candidate.reference]
        if preset == "rankme" and with_reference:
            self._left_out[f"{self.what} without a reference, which is the standard"] += len(able) - len(
                with_reference
            )
            able = with_reference
        if self.judges_person(preset):
            self._left_out["contexts without what the person said"] += len(able) - len(with_reference)
            able = with_reference
        elif preset == "snippet" and not self.material.dialogues and PERSON not in self.material.systems:
            self._notes.append("the responses have no reference, so no person's reply is among those judged")
        drawn = sorted(able, key=lambda candidate: draw_key(self.seed, "sample", candidate.id))
        if distinct_by is not None:
            drawn = self._distinct(drawn, distinct_by)
        if sample is not None and sample > len(drawn):
            self._notes.append(f"{sample:,} {self.what} were asked for, there are {len(drawn):,}")
        if sample is not None:
            self._left_out[f"{self.what} that were not drawn"] += max(0, len(drawn) - sample)
            drawn = drawn[:sample]
        if UNSHARED_KNOWLEDGE in self.left_out and not any(candidate.knowledge for candidate in drawn):
            self._notes.append("no item has a background sentence, so nobody is asked how it was used")
        place = {candidate.id: n for n, candidate in enumerate(able)}
        return sorted(drawn, key=lambda candidate: place[candidate.id])

    def judges_person(self, preset: str) -> bool:
        """Whether what the person said is one of the replies that are judged."""
        material = self.material
        if preset != "snippet" or material.dialogues or PERSON in material.systems:
            return False
        return any(candidate.reference for candidate in material.candidates)

    def _distinct(self, candidates: Sequence[Candidate], label: str) -> list[Candidate]:
        """The first of each conversation, or of each value of another label."""
        labels = {name for candidate in candidates for name in candidate.labels}
        name = next((known for known in (label, f"{label}_id") if known in labels), None)
        if name is None and label != CONVERSATION:
            known = sorted({*labels, CONVERSATION})
            raise UserError(
                f"--distinct-by: the responses have no {label!r}{nearest(label, known)}",
                f"there are {', '.join(known)}",
            )
        first: dict[object, Candidate] = {}
        for candidate in candidates:
            value = candidate.labels.get(name) if name is not None else _conversation(candidate.id)
            first.setdefault((candidate.id,) if value is None else value, candidate)
        self._left_out[f"{self.what} of a {label} that has one already"] += len(candidates) - len(first)
        return list(first.values())


def _conversation(id: str) -> str:
    """`talk-1` of `talk-1#3`, as `palaver generate --every-turn` names contexts."""
    return id.rpartition("#")[0] or id


def _item(candidate: Candidate, id: str, systems: Sequence[str], judges_person: bool = False) -> Item:
    history = Dialogue(id=candidate.id, turns=candidate.context) if candidate.context else None
    outputs = [output for output in candidate.outputs if output.system in systems]
    if judges_person:
        outputs.append(Output(system=PERSON, text=candidate.reference))
    return Item(
        id=id,
        context=history,
        knowledge=candidate.knowledge,
        reference=None if judges_person else candidate.reference,
        outputs=tuple(outputs),
    )


def _pairs(candidates: Sequence[Candidate], systems: Sequence[str], per_context: int) -> list[Item]:
    """Each context with the pairs whose turn it is: over the study every pair comes equally often."""
    pairs = list(combinations(systems, 2))
    per_context = min(per_context, len(pairs))
    items = []
    for n, candidate in enumerate(candidates):
        for k in range(n * per_context, (n + 1) * per_context):
            first, second = pairs[k % len(pairs)]
            items.append(_item(candidate, f"{candidate.id}|{first}|{second}", (first, second)))
    return items


def _text(
    name: str,
    preset: str,
    items: Sequence[Item],
    dialogues: bool,
    layout: str | None,
    seed: int,
    media: str | Path | None,
) -> str:
    """The study file, worded for what is judged, for people to go on with."""
    from jinja2 import Environment, StrictUndefined

    template = files("palaver.studies") / "presets" / "drafts" / f"{preset}.toml.j2"
    jinja = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    has_reference = any(item.reference for item in items)
    head = [
        f"name = {toml_value(name)}",
        f"items_from = {toml_value('items.jsonl')}        # one item a line, beside this file",
        f"seed = {seed}",
    ]
    if media is not None:
        head += ["markdown = true", f"media = {_media_toml(media)}        # images and sounds"]
    if has_reference and preset != "rankme":
        head.append('# What was really said next is hidden: a question whose shows has "reference" shows it.')
    text = jinja.from_string(template.read_text(encoding="utf-8")).render(
        head="\n".join(head),
        dialogues=dialogues,
        thing="conversation" if dialogues else "reply",
        things="conversations" if dialogues else "replies",
        layout=layout,
        shows='shows = ["context", "knowledge", "output"]',
        has_knowledge=any(item.knowledge for item in items),
        has_reference=has_reference,
    )
    return text + "\n"
