"""The files of deploy/ are what the how-to shows, and each is right in the eyes of the program that reads it.

The image is built where a Docker daemon is there, and read by `dockerfile.py` everywhere. With
PALAVER_REQUIRE_PROXY=1 (CI) nginx and Caddy have to be there.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.dockerfile import dockerfile_problems, is_pinned, parse_dockerfile
from tests.programs import needed
from typer.main import get_command

from palaver.cli.main import app

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
GUIDE = (ROOT / "docs/how-to/go-public.md").read_text(encoding="utf-8")
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
IGNORE = (DEPLOY / "Dockerfile.dockerignore").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
UNITS = ("study-1.service", "study-1-backup.service", "study-1-backup.timer")
SOUND = """FROM python:3.11.11-slim AS build
COPY src ./src
FROM python:3.11.11-slim
COPY --from=build /opt /opt
USER 10001
HEALTHCHECK CMD ["true"]
CMD ["palaver"]
"""


def call(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [str(word) for word in words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)


def has_docker() -> bool:
    return shutil.which("docker") is not None and call("docker", "version").returncode == 0


# --- the how-to ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nginx.conf", "Caddyfile", *UNITS])
def test_the_guide_shows_the_file(name: str) -> None:
    text = (DEPLOY / name).read_text()
    assert re.search(rf"^```\w*\n{re.escape(text)}```$", GUIDE, flags=re.M), (
        f"go-public.md shows another {name}"
    )


def test_the_guide_names_every_file() -> None:
    missing = [file.name for file in DEPLOY.iterdir() if f"deploy/{file.name}" not in GUIDE]
    assert missing in ([], ["Dockerfile.dockerignore"])


# --- Docker -------------------------------------------------------------------------------------------------


def test_dockerfile() -> None:
    assert list(dockerfile_problems(DOCKERFILE, ROOT, IGNORE)) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("FROM python:3.11.11-slim\n", "FROM python\n", "not pinned"),
        ("FROM python:3.11.11-slim\n", "FROM python:latest\n", "not pinned"),
        ("COPY src ./src", "COPY sources ./src", "is not there"),
        ("COPY src ./src", "COPY tests ./src", "keeps tests out"),
        ("COPY src ./src", "ADD src ./src", "COPY does"),
        ("--from=build", "--from=builder", "no stage"),
        ("USER 10001", "USER root", "as root"),
        ("USER 10001\n", "", "as root"),
        ("USER 10001", "ENV PALAVER_ADMIN_TOKEN=0123456789abcdef\nUSER 10001", "secret"),
        ("USER 10001", "RUN apt-get install -y gcc\nUSER 10001", "build tools"),
        ('HEALTHCHECK CMD ["true"]\n', "", "HEALTHCHECK"),
        ('CMD ["palaver"]\n', "CMD palaver\n", "signal"),
        ("USER 10001", "USSER 10001", "no such instruction"),
    ],
)
def test_the_lint_finds(old: str, new: str, problem: str) -> None:
    assert list(dockerfile_problems(SOUND, ROOT, IGNORE)) == []
    assert old in SOUND
    problems = list(dockerfile_problems(SOUND.replace(old, new), ROOT, IGNORE))
    assert any(problem in text for text in problems), problems


def test_the_image_is_built() -> None:
    if not has_docker():
        pytest.skip("there is no Docker daemon")
    built = call("docker", "build", "--quiet", "--file", DEPLOY / "Dockerfile", ROOT)
    assert built.returncode == 0, built.stderr
    said = call("docker", "run", "--rm", built.stdout.strip(), "study", "--help")
    assert said.returncode == 0, said.stderr


def test_compose() -> None:
    services = COMPOSE["services"]
    assert set(services) == {"app", "database", "proxy"}
    for name, service in services.items():
        assert "build" in service or is_pinned(service["image"]), name
        assert set(service.get("depends_on", {})) <= set(services)
        for value in service.get("environment", {}).values():
            is_asked_for = value.startswith("${") and ":?" in value
            assert is_asked_for or not re.search(r"[0-9a-f]{16}|\$", value), "no secret stands in the file"
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            is_there = source in COMPOSE["volumes"] or (DEPLOY / source).exists() or source == "./study"
            assert is_there, volume
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    build = services["app"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    assert services["proxy"]["environment"]["PALAVER_APP"] == "app:8000"
    if shutil.which("docker") and call("docker", "compose", "version").returncode == 0:
        known = {**os.environ, "PALAVER_HOST": "lab.example.org", "POSTGRES_PASSWORD": "p"}
        said = call("docker", "compose", "--file", DEPLOY / "compose.yaml", "config", "--quiet", env=known)
        assert said.returncode == 0, said.stderr


def command_lines() -> dict[str, list[str]]:
    """Every command line of ours in deploy/."""
    image = parse_dockerfile(DOCKERFILE)[-1]
    units = {name: (DEPLOY / name).read_text().replace("\\\n", "") for name in UNITS[:2]}
    found = {name: re.findall(r"bin/palaver ([^'\n]*)", text)[0] for name, text in units.items()}
    lines = {name: shlex.split(line) for name, line in found.items()}
    return {
        **lines,
        "image": yaml.safe_load(image.all("CMD")[0]),
        "compose": COMPOSE["services"]["app"]["command"],
    }


@pytest.mark.parametrize("name", ["study-1.service", "study-1-backup.service", "image", "compose"])
def test_the_options_exist(name: str) -> None:
    words = command_lines()[name]
    group: Any = get_command(app)
    while hasattr(group, "get_command"):
        group = group.get_command(None, words.pop(0))
    known = {option for parameter in group.params for option in (*parameter.opts, *parameter.secondary_opts)}
    used = {word.split("=")[0] for word in words if word.startswith("--")}
    assert used
    assert used <= known


# --- systemd and proxies ------------------------------------------------------------------------------------


def test_units(tmp_path: Path) -> None:
    analyze = needed("systemd-analyze")
    for name in UNITS:  # it looks whether the command is there
        text = (DEPLOY / name).read_text()
        (tmp_path / name).write_text(text.replace("/opt/palaver/bin/palaver", sys.executable))
    said = call(analyze, "verify", *(tmp_path / name for name in UNITS))
    about_ours = [line for line in said.stderr.splitlines() if "study-1" in line]
    assert about_ours == []
    if said.returncode != 0:
        pytest.skip(f"systemd-analyze cannot work here: {said.stderr[:200]}")


def test_caddyfile(tmp_path: Path) -> None:
    for host in ({}, {"PALAVER_HOST": "lab.example.org", "PALAVER_APP": "app:8000"}):
        environment = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), **host}
        said = call(
            *(needed("caddy"), "validate", "--config", DEPLOY / "Caddyfile", "--adapter", "caddyfile"),
            env=environment,
        )
        assert said.returncode == 0, said.stderr
        assert "not formatted" not in said.stderr
