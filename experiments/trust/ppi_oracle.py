"""Write tests/data/ppi_python.json: what the library ppi-python finds on small simulated data.

Needs ppi-python 0.2.3, which Palaver does not depend on: pip install ppi-python==0.2.3
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from ppi_py import ppi_logistic_ci, ppi_logistic_pointestimate, ppi_mean_ci, ppi_mean_pointestimate

OUT = Path(__file__).parents[2] / "tests/data/ppi_python.json"


def main() -> None:
    rng = np.random.default_rng(0)
    quality = rng.standard_normal(90)
    people = np.round(3 + quality[:40] + 0.5 * rng.standard_normal(40), 2)
    judge = np.round(3 + 1.2 * quality + 0.6 * rng.standard_normal(90), 2)
    rated, unrated = judge[:40], judge[40:]
    means = [
        {
            "weight": weight,
            "estimate": float(ppi_mean_pointestimate(people, rated, unrated, lam=weight)[0]),
            "interval": [float(x[0]) for x in ppi_mean_ci(people, rated, unrated, alpha=0.05, lam=weight)],
        }
        for weight in (0.0, 0.4, 0.8)
    ]
    tuned = float(ppi_mean_pointestimate(people, rated, unrated, lam=None)[0])

    def pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
        systems = np.array([rng.permutation(3)[:2] for _ in range(n)])
        x = np.zeros((n, 3))
        x[np.arange(n), systems[:, 0]] += 1
        x[np.arange(n), systems[:, 1]] -= 1
        return systems, np.c_[x[:, :2], rng.choice([-1.0, 1.0], n)]

    truth = np.array([0.8, 0.3, 0.25])
    systems, x = pairs(120)
    systems_unrated, x_unrated = pairs(400)
    won = (rng.random(120) < 1 / (1 + np.exp(-x @ truth))).astype(float)
    verdict = np.where(rng.random(120) < 0.8, won, 1 - won)
    verdict_unrated = (rng.random(400) < 1 / (1 + np.exp(-x_unrated @ truth))).astype(float)
    strengths = []
    for weight in (0.0, 0.3, 0.6):
        given = (x, won, verdict, x_unrated, verdict_unrated)
        options = {"gtol": 1e-12, "ftol": 1e-15, "maxiter": 10_000}
        point = ppi_logistic_pointestimate(*given, lam=weight, optimizer_options=dict(options))
        low, high = ppi_logistic_ci(*given, alpha=0.05, lam=weight, optimizer_options=dict(options))
        row = {"weight": weight, "estimate": point.tolist(), "low": low.tolist(), "high": high.tolist()}
        strengths.append(row)
    content = {
        "command": "python experiments/trust/ppi_oracle.py",
        "library": "ppi-python 0.2.3",
        "mean": {
            "people": people.tolist(),
            "rated": rated.tolist(),
            "unrated": unrated.tolist(),
            "results": means,
            "tuned": tuned,
        },
        "pairs": {
            "systems": systems.tolist(),
            "position": x[:, 2].tolist(),
            "won": won.tolist(),
            "verdict": verdict.tolist(),
            "systems_unrated": systems_unrated.tolist(),
            "position_unrated": x_unrated[:, 2].tolist(),
            "verdict_unrated": verdict_unrated.tolist(),
            "results": strengths,
        },
    }
    OUT.write_text(json.dumps(content) + "\n")


if __name__ == "__main__":
    main()
