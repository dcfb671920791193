"""The rival of `benchmarks.serve`: potato-annotation with an equal Likert task, in its own environment.

Its page does the same work for an answer: it shows an instance, stores the choice (`/updateinstance`) and
asks for the next instance (`/annotate`).
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.serve import Connection

CONFIG = """
annotation_task_name: load
task_dir: .
output_annotation_dir: output
data_files: [items.jsonl]
item_properties: {{id_key: id, text_key: text}}
user_config: {{allow_all_users: true, users: []}}
require_password: false
assignment_strategy: random
max_annotations_per_user: 1500
max_annotations_per_item: {per_item}
secret_key: only-a-benchmark
alert_time_each_instance: 10000000
annotation_schemes:
  - annotation_type: likert
    name: quality
    description: How good is it?
    min_label: not at all
    max_label: entirely
    size: 6
    sequential_key_binding: true
site_dir: default
"""


class PotatoRater:
    """Logs in without a password and answers one instance after the other."""

    def __init__(self, port: int, number: int) -> None:
        from benchmarks.serve import Connection

        self.web: Connection = Connection(port)
        self.number = number
        self.next: str | None = None

    async def enter(self) -> None:
        await self.web.ask(
            "POST", "/auth", f"email=rater{self.number}&pass=".encode(), "application/x-www-form-urlencoded"
        )

    async def page(self) -> str | None:
        if self.next is None:
            status, page, head = await self.web.ask("GET", "/annotate")
        else:
            body = json.dumps({"action": "next_instance", "instance_id": self.next}).encode()
            status, page, head = await self.web.ask("POST", "/annotate", body, "application/json")
        for _ in range(4):
            if status in (301, 302, 303, 307):
                status, page, head = await self.web.ask("GET", head["location"])
        if status != 200:
            raise RuntimeError(f"{status}: {page[:200]}")
        held = re.search(r'name="instance_id"[^>]*value="([^"]+)"', page) or re.search(
            r'id="instance_id"[^>]*value="([^"]+)"', page
        )
        if held is None or held[1] == self.next:
            return None
        self.next = held[1]
        return self.next

    async def answer(self, held: str) -> str:
        step = random.randint(1, 6)
        body = {"instance_id": held, "annotations": {f"quality:::{step}": str(step)}}
        status, reply, _ = await self.web.ask(
            "POST", "/updateinstance", json.dumps(body).encode(), "application/json"
        )
        if status != 200 or json.loads(reply).get("status") not in ("ok", "success"):
            raise RuntimeError(f"{status}: {reply[:200]}")
        return f"rater{self.number}:{held}"


@contextmanager
def serve_potato(python: str, port: int, raters: int) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """The process, and the folder where its answers are when it has ended."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        items = [
            {"id": f"item-{i}", "text": f"What can you tell me about place {i}? It is quiet, by the river."}
            for i in range(1500)
        ]
        (folder / "items.jsonl").write_text("\n".join(map(json.dumps, items)) + "\n", encoding="utf-8")
        (folder / "config.yaml").write_text(CONFIG.format(per_item=max(3, raters)), encoding="utf-8")
        process = subprocess.Popen(
            [python, "-m", "potato", "start", "config.yaml", "-p", str(port), "--host", "127.0.0.1"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=(folder / "log").open("wb"),
        )
        yield process, folder


def potato_answers(folder: Path) -> int:
    """How many instances have an answer on disk."""
    found = 0
    for state in folder.glob("output/**/user_state.json"):
        saved = json.loads(state.read_text(encoding="utf-8"))
        found += len(saved.get("instance_id_to_label_to_value", {}))
    return found
