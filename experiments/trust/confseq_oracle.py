"""Write tests/data/confseq.json: what the library confseq finds on small data.

Needs confseq 0.0.11, which Palaver does not depend on and which is built with Debian's libboost-dev:
pip install "pybind11<3" scikit-build cmake ninja && pip install --no-build-isolation confseq==0.0.11
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

np.float64 = np.float64  # the name that confseq still uses
from confseq.betting import betting_cs  # noqa: E402
from confseq.boundaries import normal_mixture_bound  # noqa: E402

OUT = Path(__file__).parents[2] / "tests/data/confseq.json"
ALPHA = 0.05


def main() -> None:
    values = np.random.default_rng(0).choice([0.2, 0.4, 0.5, 0.8, 1.0], 120)
    low, high = betting_cs(values, alpha=ALPHA, breaks=1000, running_intersection=True, trunc_scale=1 / 2)
    logs = -2 * math.log(ALPHA)
    bounds = []
    for planned in (50, 200):
        rho = planned / (logs + math.log(logs) + 1)  # Palaver's tuning
        v_opt = rho * (logs + math.log(1 + logs))  # with which confseq's is the same
        for n in (10, 50, 200, 1000):
            bound = normal_mixture_bound(n, ALPHA, v_opt, ALPHA, False)
            bounds.append({"planned": planned, "n": n, "bound": float(bound)})
    content = {
        "command": "python experiments/trust/confseq_oracle.py",
        "library": "confseq 0.0.11",
        "alpha": ALPHA,
        "betting": {"values": values.tolist(), "low": low.tolist(), "high": high.tolist()},
        "normal_mixture": bounds,
    }
    OUT.write_text(json.dumps(content) + "\n")


if __name__ == "__main__":
    main()
