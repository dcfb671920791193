"""The features of USR's 360 responses, for response.py and usr.py. Twenty minutes on two cores.

python experiments/judges/features.py --data ../shared/data --out features.npz
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from corpora import read_usr
from palaver.judges.response_features import FEATURES, ResponseFeatures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    _, responses = read_usr(options.data)
    table = ResponseFeatures.load(options.device).table(responses)
    np.savez(options.out, features=np.array(FEATURES), table=table)


if __name__ == "__main__":
    main()
