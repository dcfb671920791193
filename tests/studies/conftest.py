"""Makes the helpers beside the tests importable (`study_strategies`, `slow_analysis`; this is no package)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
