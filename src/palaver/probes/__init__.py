"""What a sentence encoder really notices: sentences changed by rule, and triplets made of them.

X. Zhu, T. Li, G. de Melo: Exploring Semantic Properties of Sentence Embeddings. ACL 2018, pages 632-637.
"""

from palaver.probes.recipe import SETS, Recipe, Triplet
from palaver.probes.refusals import REASONS, NotApplicable
from palaver.probes.transform import RULES, Transformation, transform
from palaver.probes.triplet_files import read_triplets, write_triplets
from palaver.probes.triplets import TripletCollection, generate

__all__ = [
    "REASONS",
    "RULES",
    "SETS",
    "NotApplicable",
    "Recipe",
    "Transformation",
    "Triplet",
    "TripletCollection",
    "generate",
    "read_triplets",
    "transform",
    "write_triplets",
]
