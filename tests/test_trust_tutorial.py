"""docs/tutorials/how-many-people-do-i-need.md: its commands give what the page says they give."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs/tutorials/how-many-people-do-i-need.md"


def test_the_tutorial_gives_what_it_says(palaver: Callable[..., Any], tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    [program] = re.findall(r"^```python make_study\.py\n(.*?)^```", text, flags=re.M | re.S)
    (tmp_path / "make_study.py").write_text(program, encoding="utf-8")
    subprocess.run([sys.executable, "make_study.py"], cwd=tmp_path, check=True, env=dict(os.environ))
    blocks = re.findall(r"^```console\n(.*?)^```", text, flags=re.M | re.S)
    said = ""
    for line in (line for block in blocks for line in block.splitlines()):
        ran = palaver(*shlex.split(line)[1:])
        assert ran.code == 0, f"{line}\n{ran.err}"
        said += " ".join(ran.out.split()) + " "
    quotes = re.findall(r"((?:^> .*\n)+)", text, flags=re.M)
    assert len(quotes) >= 8
    for quote in quotes:
        words = " ".join(quote.replace("\n> ", " ").removeprefix("> ").split())
        assert words in said, words
    assert (tmp_path / "planned.toml").read_text().count('stop = "when-sure"') == 1
