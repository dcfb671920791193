"""Reads a Dockerfile and says what is wrong with it, for machines without a Docker daemon."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

KNOWN = {
    *("FROM", "RUN", "CMD", "LABEL", "EXPOSE", "ENV", "ADD", "COPY", "ENTRYPOINT", "VOLUME", "USER"),
    *("WORKDIR", "ARG", "STOPSIGNAL", "HEALTHCHECK", "SHELL"),
}
SECRET = re.compile(r"password|passwd|secret|token|api_?key|private", re.IGNORECASE)
BUILD_TOOLS = re.compile(r"apt(-get)? install|build-essential|\bgcc\b|\bgit\b|pip install")


class Instruction(NamedTuple):
    word: str
    rest: str


class Stage(NamedTuple):
    name: str
    instructions: list[Instruction]

    def all(self, word: str) -> list[str]:
        return [instruction.rest for instruction in self.instructions if instruction.word == word]


def parse_dockerfile(text: str) -> list[Stage]:
    """The stages; comments are left out and continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    stages: list[Stage] = []
    for line in joined.splitlines():
        if not line.strip():
            continue
        word, _, rest = line.strip().partition(" ")
        if word.upper() == "FROM":
            _, _, name = re.sub(r"--platform=\S+\s*", "", rest).partition(" AS ")
            stages.append(Stage(name.strip(), []))
        if not stages:
            stages.append(Stage("", []))
        stages[-1].instructions.append(Instruction(word, rest.strip()))
    return stages


def is_pinned(image: str) -> bool:
    """Whether an image's name says a whole version (1.2 or 1.2.3) or a digest."""
    tag = image.rpartition("/")[2].partition(":")[2]
    return "@sha256:" in image or re.match(r"\d+\.\d+", tag) is not None


def is_ignored(path: str, rules: list[str]) -> bool:
    """Whether `.dockerignore` keeps a path from the builder. The last rule that fits counts."""
    ignored = False
    for rule in rules:
        pattern = rule.removeprefix("!")
        parts = [path, *map(str, Path(path).parents)]
        if any(fnmatch(part, pattern) for part in parts if part != "."):
            ignored = not rule.startswith("!")
    return ignored


def dockerfile_problems(text: str, context: Path, ignore: str = "") -> Iterator[str]:
    """Everything that is wrong with a Dockerfile whose builder sees the folder `context`."""
    stages = parse_dockerfile(text)
    rules = [rule for line in ignore.splitlines() if (rule := line.strip()) and not rule.startswith("#")]
    for stage in stages:
        for word, rest in stage.instructions:
            if word not in KNOWN:
                yield f"{word}: there is no such instruction"
            if word == "FROM":
                image = rest.split()[0]
                if image not in {s.name for s in stages} and not is_pinned(image):
                    yield f"{image}: the base is not pinned"
            if word == "ADD":
                yield f"ADD {rest}: COPY does all that is needed"
            if word == "COPY":
                yield from _copy_problems(rest, stages, context, rules)
            if word in ("ENV", "ARG") and SECRET.search(rest):
                yield f"{word} {rest}: a secret would stay in the image"
            if word in ("CMD", "ENTRYPOINT") and not _is_list(rest):
                yield f"{word} {rest}: a shell would swallow the signal that stops the server"
    last = stages[-1]
    users = last.all("USER")
    if not users or users[-1].split(":")[0] in ("root", "0"):
        yield "USER: the server would run as root"
    if not any("CMD" in check for check in last.all("HEALTHCHECK")):
        yield "HEALTHCHECK is missing"
    for command in last.all("RUN"):
        if BUILD_TOOLS.search(command):
            yield f"RUN {command}: build tools stay in the image"


def _copy_problems(rest: str, stages: list[Stage], context: Path, rules: list[str]) -> Iterator[str]:
    words = shlex.split(rest)
    flags = [word for word in words if word.startswith("--")]
    sources = [word for word in words if not word.startswith("--")][:-1]
    origin = next((flag.removeprefix("--from=") for flag in flags if flag.startswith("--from=")), None)
    if origin is not None:
        if origin not in {stage.name for stage in stages}:
            yield f"COPY {rest}: there is no stage {origin!r}"
        return
    for source in sources:
        if not (context / source).exists():
            yield f"COPY {rest}: {source} is not there"
        elif is_ignored(source.removeprefix("./").rstrip("/"), rules):
            yield f"COPY {rest}: .dockerignore keeps {source} out"


def _is_list(rest: str) -> bool:
    try:
        return isinstance(json.loads(rest), list)
    except ValueError:
        return False
