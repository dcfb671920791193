"""Makes the strategies of the study tests importable (`study_strategies`)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "studies"))
