"""Triplets of sentences (section 2.2): the five sets, drawn by seed from what the rules make of the corpora.

Every sentence is parsed once for all rules. Then each set takes its candidates in an order that depends only
on the seed and the sentence, reads the outputs again (`grammatical`), and stops when it has enough.

The three sentences of a triplet differ in what is tested and not in how they are written: none has the
capital of a sentence's beginning (names keep theirs), all end alike, and quotation marks stay only where all
three have them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from palaver.engine import Engine, map_shards
from palaver.errors import UserError
from palaver.probes import grammar, grammatical, sources
from palaver.probes.lines import prepare
from palaver.probes.parse import parse
from palaver.probes.recipe import SETS, Recipe, Triplet, TripletSet
from palaver.probes.refusals import NotApplicable
from palaver.probes.rules import clause, synonym
from palaver.probes.sources import Pair, Sentence
from palaver.probes.transform import RULES, apply_rule, apply_variants
from palaver.probes.triplet_files import read_triplets, write_triplets
from palaver.probes.writing import capitalised_words, other_case, without_capital
from palaver.progress import Progress, no_progress

if TYPE_CHECKING:
    from spacy.tokens import Doc

__all__ = [
    "TripletCollection",
    "case_control",
    "generate",
    "read_triplets",
    "similarity",
    "write_triplets",
]

_SHARD = 400
_FINAL = ".!?… "
_FILLED = "argument-sensitivity"
"""The set that runs short: there are few sentences of somebody doing something to somebody. It alone also
draws on what was said (clauses), on the captions SICK was made from and on the STS benchmark."""
_FILLED_RULES = ("passive", "reorder")
_FILLERS = ("sick-captions", "sts")


@dataclass
class TripletCollection:
    """The triplets, and what became of all the sentences and candidates."""

    recipe: Recipe
    triplets: list[Triplet] = field(default_factory=list)
    candidates: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)
    """Rule -> why it did not apply -> how often."""
    n_sentences: Counter[str] = field(default_factory=Counter)
    """Corpus -> sentences read, each counted once."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Sentences that were not looked at: repeated, too short or long, with mark-up; paraphrases that were
    not used."""
    doubtful: Counter[str] = field(default_factory=Counter)
    """Set -> candidates that were read again and refused."""

    @property
    def made(self) -> dict[str, int]:
        """Set -> how many triplets it has, without variants."""
        counts = Counter(t.set for t in self.triplets if not t.variant)
        return {name: counts[name] for name in SETS}


@dataclass
class _Source:
    """A sentence with what the rules made of it."""

    sentence: Sentence
    text: str
    outputs: dict[str, str] = field(default_factory=dict)
    case: str = ""
    pair: str = ""
    relation: str = ""


def generate(
    folder: Path | None,
    recipe: Recipe | None = None,
    *,
    texts: Sequence[Path] = (),
    paraphrases: Sequence[Path] = (),
    columns: Mapping[str, str] | None = None,
    engine: Engine | str = "processes",
    progress: Progress = no_progress,
) -> TripletCollection:
    """The five sets from the corpora in `folder` (or in `folder/sentences`) and from files of one's own.

    `texts` hold sentences, `paraphrases` two a row that mean the same: only these and SICK make Fixed Point
    Reorder. `columns` are field -> name in the files, where these are tables.
    """
    recipe = recipe or Recipe()
    collection = TripletCollection(recipe)
    pairs: list[Pair] = []
    sentences: list[Sentence] = []
    if folder is not None:
        folder = sources.first_with_corpora((folder, folder / "sentences")) or folder
        pairs = sources.read_sick(folder)
    pair_columns = {field: name for field, name in (columns or {}).items() if field in sources.PARAPHRASE}
    text_columns = {field: name for field, name in (columns or {}).items() if field not in pair_columns}
    for path in paraphrases:
        pairs += sources.read_paraphrases(path, pair_columns)
    sentences += [s for pair in pairs for s in (pair.first, pair.second)]
    if folder is not None:
        sentences += sources.read_msrp(folder) + sources.read_treebank(folder)
    for path in texts:
        sentences += sources.read_text(path, text_columns)
    if not sentences:
        raise UserError(
            f"there are no sentences to make triplets of in {folder}",
            "expected SICK_full.txt, msr_paraphrase_train.txt or treebank.zip, packed or not, or --text FILE "
            "or --paraphrases FILE",
        )
    if folder is not None and recipe.size(_FILLED):
        sentences += [caption for pair in pairs for caption in pair.captions]
        sentences += sources.read_sts(folder)
    read = _apply_all(_distinct(sentences, recipe, collection.left_out), collection, engine, progress)
    draws = {}
    for name, kind in SETS.items():
        if name == "fixed-point-reorder":
            candidates = _equivalents(pairs, read, recipe, collection.left_out)
        else:
            candidates = _candidates(kind, read, recipe)
        collection.candidates[name] = len(candidates)
        draws[name] = _Draw(kind, candidates, recipe.size(name))
    _take(draws, collection, engine, progress)
    for draw in draws.values():
        collection.triplets += draw.triplets
    return collection


# --- sentences -----------------------------------------------------------------------------------------


def _key(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(" .!")


def _distinct(sentences: Iterable[Sentence], recipe: Recipe, left_out: Counter[str]) -> list[Sentence]:
    """Each sentence once, of a length that can be parsed well, without leftovers of mark-up."""
    seen: set[str] = set()
    distinct = []
    for sentence in sentences:
        key = _key(sentence.text)
        if key in seen:
            left_out["repeated"] += 1
        elif not recipe.min_words <= len(key.split()) <= recipe.max_words:
            left_out[f"not {recipe.min_words} to {recipe.max_words} words"] += 1
        elif any(mark in sentence.text for mark in "<>[]{}|\\_*="):
            left_out["with mark-up"] += 1
        else:
            distinct.append(sentence)
        seen.add(key)
    return distinct


def _apply_all(
    sentences: list[Sentence], collection: TripletCollection, engine: Engine | str, progress: Progress
) -> list[_Source]:
    shards = [sentences[n : n + _SHARD] for n in range(0, len(sentences), _SHARD)]
    sources_read: list[_Source] = []
    applied = map_shards(_apply_shard, shards, engine=engine, what="parsing", progress=progress)
    for results, reasons in applied:
        sources_read += results
        for rule, counts in reasons.items():
            collection.reasons.setdefault(rule, Counter()).update(counts)
    collection.n_sentences.update(source.sentence.corpus for source in sources_read)
    return sources_read


def _apply_shard(sentences: list[Sentence]) -> tuple[list[_Source], dict[str, Counter[str]]]:
    reasons: dict[str, Counter[str]] = {rule: Counter() for rule in RULES}
    applied = _apply_to(sentences, reasons)
    # What somebody said is a sentence of its own; set 4 needs every one in which somebody does something.
    reported = [
        Sentence(f"{s.sentence.corpus}-clauses", s.sentence.id, s.outputs["clause"])
        for s in applied
        if "clause" in s.outputs and s.sentence.corpus not in _FILLERS
    ]
    return applied + _apply_to(reported, reasons), reasons


def _apply_to(sentences: list[Sentence], reasons: dict[str, Counter[str]]) -> list[_Source]:
    ready: list[tuple[Sentence, str]] = []
    for sentence in sentences:
        try:
            line = prepare(sentence.text)
        except NotApplicable as refused:
            for rule in RULES:
                reasons[rule][refused.reason] += 1
            continue
        ready.append((sentence, line.text[:1].upper() + line.text[1:]))
    applied = []
    for (sentence, text), doc in zip(ready, parse(text for _, text in ready), strict=True):
        source = _Source(sentence, text)
        for rule in _rules_for(sentence):
            result = apply_rule(rule, doc)
            if isinstance(result, NotApplicable):
                reasons[rule][result.reason] += 1
            else:
                source.outputs[rule] = result
        if "clause" in source.outputs:
            source.case = "b" if clause.embedded(doc).i <= grammar.root(doc).i else "a"
        if "synonym" in source.outputs:
            swap = synonym.substitution(doc)
            source.pair, source.relation = f"{swap.lemma}, {swap.synonym}", swap.relation
        applied.append(source)
    return applied


def _rules_for(sentence: Sentence) -> tuple[str, ...]:
    """Only what a set can use: the inversion belongs to paraphrases."""
    if _is_filler(sentence):
        return _FILLED_RULES
    return tuple(rule for rule in RULES if rule != "inversion" or sentence.is_paired)


def _is_filler(sentence: Sentence) -> bool:
    return sentence.corpus in _FILLERS or sentence.corpus.endswith("-clauses")


# --- sets ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Candidate:
    source: _Source
    plus: str
    star: str


def _ordered(seed: int, kind: TripletSet, candidates: Iterable[_Candidate]) -> list[_Candidate]:
    """Fillers last; else in an order of chance, but always the same chance."""

    def rank(candidate: _Candidate) -> tuple[bool, bool, bytes]:
        sentence = candidate.source.sentence
        later = bool(kind.first) and sentence.corpus != kind.first
        chance = hashlib.sha256(f"{seed}|{kind.name}|{candidate.source.text}".encode()).digest()
        return _is_filler(sentence), later, chance

    return sorted(candidates, key=rank)


def _candidates(kind: TripletSet, read: list[_Source], recipe: Recipe) -> list[_Candidate]:
    both = [
        _Candidate(s, s.outputs[kind.plus_rule], s.outputs[kind.star_rule])
        for s in read
        if kind.plus_rule in s.outputs and kind.star_rule in s.outputs
    ]
    distinct = [c for c in both if len({_key(c.source.text), _key(c.plus), _key(c.star)}) == 3]
    ordered = _ordered(recipe.seed, kind, distinct)
    if kind.plus_rule != "synonym":
        return ordered
    used: Counter[str] = Counter()
    varied = []
    for candidate in ordered:
        pair = candidate.source.pair
        used[pair] += 1
        if used[pair] <= recipe.per_synonym:
            varied.append(candidate)
    return varied


def _equivalents(
    pairs: list[Pair], read: list[_Source], recipe: Recipe, left_out: Counter[str]
) -> list[_Candidate]:
    """Pairs that mean the same and are built alike, with the inversion of the first."""
    by_text = {_key(s.sentence.text): s for s in read}
    equivalents: dict[str, _Candidate] = {}
    for pair in pairs:
        if pair.entailment != "ENTAILMENT" or not pair.both_ways or pair.relatedness < recipe.relatedness:
            continue
        source, other = by_text.get(_key(pair.first.text)), by_text.get(_key(pair.second.text))
        if source is None or other is None or source is other or "inversion" not in source.outputs:
            continue
        if similarity(source.text.lower().split(), other.text.lower().split()) < recipe.structure:
            left_out["paraphrases built too differently"] += 1
        else:
            candidate = _Candidate(source, other.text, source.outputs["inversion"])
            equivalents.setdefault(source.text, candidate)
    return _ordered(recipe.seed, SETS["fixed-point-reorder"], equivalents.values())


def similarity(first: Sequence[str], second: Sequence[str]) -> float:
    """1 - Levenshtein distance / length of the longer: 1 for the same words in the same order."""
    row = list(range(len(second) + 1))
    for i, word in enumerate(first, 1):
        last, row[0] = row[0], i
        for j, other in enumerate(second, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (word != other))
    return 1 - row[-1] / max(len(first), len(second), 1)


@dataclass
class _Draw:
    """A set being filled: the candidates in order, how far they were read, what was accepted."""

    kind: TripletSet
    candidates: list[_Candidate]
    wanted: int
    at: int = 0
    n_taken: int = 0
    triplets: list[Triplet] = field(default_factory=list)
    """With their variants, which do not count."""

    def next_batch(self) -> list[_Candidate]:
        """As many candidates as will probably do; 0 wanted means all."""
        missing = max(0, self.wanted - self.n_taken)
        size = missing * 5 // 4 + 20 if missing else 0
        if not self.wanted:
            size = len(self.candidates)
        batch = self.candidates[self.at : self.at + size]
        self.at += size
        return batch


def _take(
    draws: dict[str, _Draw], collection: TripletCollection, engine: Engine | str, progress: Progress
) -> None:
    """For every set, the first candidates in its order that stand up to reading again."""
    while batches := {name: batch for name, draw in draws.items() if (batch := draw.next_batch())}:
        shards = [
            (name, batch[n : n + _SHARD])
            for name, batch in batches.items()
            for n in range(0, len(batch), _SHARD)
        ]
        small = sum(map(len, batches.values())) < 2 * _SHARD  # not worth the start of processes
        finished = map_shards(
            _finish_shard,
            shards,
            engine=Engine.of(engine).for_work(is_small=small),
            what="reading again",
            progress=progress,
        )
        for (name, _), outcomes in zip(shards, finished, strict=True):
            draw = draws[name]
            for triplets in outcomes:
                if not triplets:
                    collection.doubtful[name] += 1
                elif draw.n_taken < draw.wanted or not draw.wanted:
                    draw.n_taken += 1
                    draw.triplets += triplets


def _finish_shard(shard: tuple[str, list[_Candidate]]) -> list[list[Triplet]]:
    """For each candidate its triplet and the variants, or nothing if, read again, it is doubtful."""
    name, batch = shard
    kind = SETS[name]
    plus_check, star_check = (grammatical.CHECKS.get(rule) for rule in (kind.plus_rule, kind.star_rule))
    docs = parse(t for c in batch for t in (c.source.text, c.plus, c.star))
    finished = []
    for candidate, source, plus, star in zip(batch, docs, docs, docs, strict=True):
        plus_fits = plus_check is None or plus_check(source, plus)
        fits = plus_fits and (star_check is None or star_check(source, star))
        finished.append(_triplets(kind, candidate, source, plus) if fits else [])
    return finished


def _triplets(kind: TripletSet, candidate: _Candidate, doc: Doc, plus_doc: Doc) -> list[Triplet]:
    """The triplet of a candidate, and its variants."""
    source = candidate.source
    sentence = source.sentence
    capitalised = capitalised_words(doc)
    if kind.plus_rule not in RULES:
        capitalised |= capitalised_words(plus_doc)  # a sentence of its own

    def triplet(plus: str, star: str, variant: str = "") -> Triplet:
        original, plus, star = _alike(source.text, plus, star, capitalised)
        place = f"{kind.name}:{sentence.corpus}:{sentence.id}"
        return Triplet(
            set=kind.name,
            id=f"{place}:{variant}" if variant else place,
            original=original,
            plus=plus,
            star=star,
            plus_rule=kind.plus_rule,
            star_rule=kind.star_rule,
            corpus=sentence.corpus,
            source_id=sentence.id,
            source=sentence.text,
            case=source.case if kind.plus_rule == "clause" else "",
            pair=source.pair if kind.plus_rule == "synonym" else "",
            relation=source.relation if kind.plus_rule == "synonym" else "",
            variant=variant,
        )

    triplets = [triplet(candidate.plus, candidate.star)]
    for variant, plus in apply_variants(kind.plus_rule, doc).items():
        triplets.append(triplet(plus, candidate.star, variant))
    for variant, star in apply_variants(kind.star_rule, doc).items():
        triplets.append(triplet(candidate.plus, star, variant))
    return triplets


def _alike(original: str, plus: str, star: str, capitalised: frozenset[str]) -> tuple[str, str, str]:
    """The three sentences without differences in writing that would tell them apart."""
    texts = [original, _with_end_of(original, plus), _with_end_of(original, star)]
    if len({text.count('"') for text in texts}) > 1:
        texts = [text.replace('"', "") for text in texts]
    first, second, third = (without_capital(text, capitalised) for text in texts)
    return first, second, third


def _with_end_of(original: str, text: str) -> str:
    """A text with the final mark of another."""
    if text.endswith(('"', ")")) or original.endswith(('"', ")")):
        return text
    mark = original[len(original.rstrip(_FINAL)) :]
    return text if text.endswith(mark) and mark else text.rstrip(_FINAL) + mark


def case_control(triplets: Iterable[Triplet]) -> list[Triplet]:
    """For each triplet one that an encoder should fail: S* is S, its first letter in the other case.

    The words of S* are those of S, so S+ cannot be nearer by meaning. The share of triplets in which it is
    nearer says how much of a probe's accuracy the case of one letter can make.
    """
    return [
        replace(t, star=other_case(t.original), star_rule="case", variant="case", id=f"{t.id}:case")
        for t in triplets
        if not t.variant
    ]
