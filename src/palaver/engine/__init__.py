"""Work over shards: in this process, in threads, in worker processes, or on a Ray cluster."""

from palaver.engine.collector import without_collector
from palaver.engine.cores import n_cores
from palaver.engine.engine import Engine, parse_engine
from palaver.engine.recipe import Recipe
from palaver.engine.rows import GIVE_UP, Failures, RowError, batches, in_parts
from palaver.engine.shards import map_rows, map_shards

__all__ = [
    "GIVE_UP",
    "Engine",
    "Failures",
    "Recipe",
    "RowError",
    "batches",
    "in_parts",
    "map_rows",
    "map_shards",
    "n_cores",
    "parse_engine",
    "without_collector",
]
