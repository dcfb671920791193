"""One script per performance claim: a peer and ours side by side, one thread, and the ratio."""

import os

# Here, because this runs before any benchmark loads NumPy.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ[_name] = "1"
