"""The recipe of the five datasets (section 2.2): what each set is made of, from which sentences, how many.

The recipe is shipped, the corpora are not: it says which filters and sizes, and the same recipe over the
same files gives the same triplets.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from palaver.artefacts import digest


@dataclass(frozen=True)
class TripletSet:
    """One evaluation set: which rule makes S+ and which S*, and what is expected of an encoder."""

    name: str
    title: str
    plus_rule: str
    star_rule: str
    paper_size: int
    """Table 1."""
    table: int
    """The table of the paper that reports it."""
    first: str = ""
    """The corpus that is drawn on before the others."""


SETS: dict[str, TripletSet] = {
    triplet_set.name: triplet_set
    for triplet_set in (
        TripletSet("negation-detection", "Negation Detection", "synonym", "not-negation", 674, 2, "sick"),
        TripletSet("negation-variants", "Negation Variants", "not-negation", "quantifier-negation", 516, 3),
        TripletSet("clause-relatedness", "Clause Relatedness", "clause", "not-negation", 567, 4),
        TripletSet("argument-sensitivity", "Argument Sensitivity", "passive", "reorder", 445, 5),
        TripletSet("fixed-point-reorder", "Fixed Point Reorder", "equivalent", "inversion", 623, 6),
    )
}


@dataclass(frozen=True)
class Triplet:
    """S, S+ and S* as in Tables 2 to 6, with where S comes from and what made the other two."""

    set: str
    id: str
    original: str
    plus: str
    star: str
    plus_rule: str
    star_rule: str
    corpus: str
    source_id: str
    source: str
    """The sentence as the corpus has it; `original` is that sentence tidied, or a clause of it."""
    case: str = ""
    """Of Clause Relatedness: "a" where the report comes first, "b" where the clause does (section 3.3)."""
    pair: str = ""
    """Of Negation Detection: the verb and what stands in its place, as "jump, leap"."""
    relation: str = ""
    """Of Negation Detection: "synonym", or "wider" where the second verb says less, as in "slice, cut"."""
    variant: str = ""
    """Empty in the triplets that are counted as the paper's. A name from `VARIANTS` in one that was made from
    the same sentence in another way, to be reported beside them; its id ends with that name."""


VARIANTS: dict[str, str] = {
    "fronted": "Fixed Point Reorder: the end of the sentence is only put in front of a whole statement",
    "article": "Fixed Point Reorder: only the first word, an article, moves to the end",
    "agentless": "Argument Sensitivity: the passive without who did it",
    "contracted": "negated by n't where the paper's triplet has not",
    "full": "negated by not where the paper's triplet has n't",
    "case": "S* is S itself, its first letter in the other case (see `triplets.case_control`)",
}
"""What a triplet with a `variant` has otherwise than the paper's triplet of the same sentence."""


@dataclass(frozen=True)
class Recipe:
    """Everything that decides which triplets come out, apart from the sentences."""

    seed: int = 0
    sizes: tuple[tuple[str, int], ...] = tuple((s.name, s.paper_size) for s in SETS.values())
    """How many triplets of each set; 0 for as many as there are."""
    max_words: int = 30
    min_words: int = 4
    relatedness: float = 4.5
    """Of SICK's 1 to 5: pairs at least as related, marked ENTAILMENT, count as equivalent (set 5)."""
    structure: float = 0.6
    """Least similarity of such a pair: 1 - Levenshtein distance in words / length of the longer."""
    per_synonym: int = 34
    """At most so many triplets with the same pair of verbs, a twentieth of the set."""

    def size(self, name: str) -> int:
        return dict(self.sizes)[name]

    @property
    def signature(self) -> str:
        """A short hash of the recipe."""
        return digest({**asdict(self), "sizes": dict(self.sizes)})[:12]
