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
    said = ""
    for kind, name, block in re.findall(r"^```(python|console) ?(\S*)\n(.*?)^```", text, flags=re.M | re.S):
        if kind == "python":
            (tmp_path / name).write_text(block, encoding="utf-8")
            ran = subprocess.run(
                [sys.executable, name], cwd=tmp_path, check=True, env=dict(os.environ), capture_output=True
            )
            said += ran.stdout.decode() + " "
            continue
        for line in block.splitlines():
            ran = palaver(*shlex.split(line)[1:])
            assert ran.code == 0, f"{line}\n{ran.err}"
            said += " ".join(ran.out.split()) + " "
    quotes = re.findall(r"((?:^> .*\n)+)", text, flags=re.M)
    assert len(quotes) >= 8
    for quote in quotes:
        words = " ".join(quote.replace("\n> ", " ").removeprefix("> ").split())
        assert words in said, words
    planned = (tmp_path / "planned.toml").read_text()
    assert planned.count('stop = "when-sure"') == 1
    assert planned.count("sampling_probability = ") == 148
    [answered] = re.findall(r"(\d+) screens were answered", said)
    assert abs(int(answered) - 114) <= 12  # who gets which screen is left to chance
