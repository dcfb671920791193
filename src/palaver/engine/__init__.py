"""Work over shards: in this process, in threads, in worker processes, or on a Ray cluster."""

from palaver.engine.shards import map_shards, n_cores

__all__ = ["map_shards", "n_cores"]
