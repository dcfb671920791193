"""A first experiment file from three answers: which systems, which contexts, who judges."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

from palaver.config import toml_value
from palaver.errors import UserError
from palaver.generation.systems_file import EVERYDAY
from palaver.models.catalogue import PREFIX
from palaver.models.causal_base import SMOLLM2
from palaver.readers import read_responses
from palaver.readers.responses import is_responses
from palaver.registry import is_object_name

STUDY, SIMULATE = "study", "simulate"
NO_MODEL = "NAME"
"""Stands where the name of a server's model belongs, which only its owner knows."""
_LOOK = 2000
"""Responses of a file that are looked at for the names of its systems."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What a person says about the evaluation to come."""

    systems: Sequence[str]
    """Files of replies, addresses, MODULE:FUNCTION, or names as `palaver generate --system` takes them."""
    contexts: str
    judges: Sequence[str]
    people: str | None = None
    """A rating file, "study", "simulate", or nobody."""
    title: str = ""


def responses_in(name: str) -> Path | None:
    """The file of responses that `name` is, if it is one."""
    path = Path(name)
    return path if path.is_file() and not name.endswith(".txt") and is_responses(path) else None


def usual_judges(systems: Sequence[str], contexts: str) -> list[str]:
    """Judges that can rate these contexts here."""
    judges = []
    for name in (contexts, *systems):
        path = responses_in(name)
        if path is not None and any(
            r.references for r in islice(read_responses(path, skip_repeats=True), 20)
        ):
            judges += ["unigram_f1", "rouge_l"]
            break
    if find_spec("torch") is not None and find_spec("transformers") is not None:
        judges.append("comparator")
    return judges or ["diversity_1"]


def draft_experiment(answers: Answers, folder: Path = Path()) -> str:
    """The text of an experiment file, with comments, for people to go on with. Paths start from `folder`."""
    if not answers.systems:
        raise UserError("name at least one system")
    head = [
        "# `palaver evaluate FILE` lets the systems answer and the judges rate, and writes a report.",
        f"title = {toml_value(answers.title or 'Which system is better?')}",
        "seed = 0        # of replies, samples and statistics",
        "",
        "[test]",
        f"contexts = {toml_value(_from(folder, answers.contexts))}        # what the systems answer",
        "# limit = 100        # a first look",
        "# every_turn = true        # of dialogues: every turn but the first is a reference",
        "",
    ]
    tables = [line for said in answers.systems for line in _system_lines(said, folder)]
    names = [line for line in tables if line.startswith("[systems.")]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise UserError(f"two systems would be called {min(repeated)[len('[systems.') : -1]}")
    judges = ["[judges]        # `palaver judge --list` names them; MODULE:FUNCTION takes your own"]
    if answers.judges:
        judges.append(f"by = {toml_value(list(answers.judges))}")
    else:
        judges = ["# [judges]", '# by = ["unigram_f1"]        # `palaver judge --list` names them']
    judges += [
        "",
        "# [[judges.llm]]        # a language model that answers a study as people would",
        '# name = "smollm2"',
        '# preset = "likert"',
        "",
    ]
    report = ["[report]", "confidence = 0.95", f"# reference = {_first_name(names)}        # compare with it"]
    return "\n".join([*head, *tables, *judges, *_people_lines(answers.people, folder), "", *report, ""])


def _first_name(names: Sequence[str]) -> str:
    return toml_value(names[0][len("[systems.") : -1].strip('"'))


def _from(folder: Path, name: str) -> str:
    """A path as the experiment file has to say it; anything else as it is."""
    path = Path(name)
    if not path.exists() or folder.resolve() == Path.cwd():
        return name
    return str(path.resolve())


def _system_lines(said: str, folder: Path) -> Iterator[str]:
    """The table of one system, or of each system in a file of responses."""
    path = Path(said)
    responses = responses_in(said)
    if responses is not None:
        read = islice(read_responses(responses, skip_repeats=True), _LOOK)
        for system in dict.fromkeys(response.judged_system for response in read):
            yield from _table(system, "replay", path=_from(folder, said), system=system)
    elif path.is_file():
        yield from _table(path.name.partition(".")[0], "replay", path=_from(folder, said))
    elif said.startswith(("http://", "https://")):
        host = urlsplit(said).hostname or "server"
        name = host.split(".")[-2] if "." in host and not host[-1].isdigit() else "server"
        yield from _table(name, "openai", base_url=said, model=NO_MODEL)
        lines = ['# api_key_env = "OPENAI_API_KEY"        # the variable that holds the key', ""]
        yield from lines
    elif is_object_name(said):
        yield from _table(said.rpartition(":")[2], "python", function=said)
    elif said == SMOLLM2:
        yield from _table(said, "huggingface", model=said, local_files_only=True)
    elif said == EVERYDAY:
        yield from _table(said, "written")
    elif said.startswith(PREFIX) or path.is_dir():
        name = "shipped" + said.removeprefix(PREFIX) if said.startswith(PREFIX) else path.name
        where = said if said.startswith(PREFIX) else _from(folder, said)
        yield from _table(name, "checkpoint", path=where)
    else:
        raise UserError(
            f"{said!r} is no file, address, folder, MODULE:FUNCTION or shipped system",
            "give a file of replies, http://…, my_module:my_function, or default",
        )


def _table(name: str, kind: str, **fields: object) -> Iterator[str]:
    plain = name if re.fullmatch("[A-Za-z0-9_-]+", name) else toml_value(name)
    yield f"[systems.{plain}]"
    for field, value in {"kind": kind, **fields}.items():
        yield f"{field} = {toml_value(value)}"
    yield ""


def _people_lines(people: str | None, folder: Path) -> list[str]:
    if people == STUDY:
        return [
            "[people.study]        # the run writes study.toml, says how to serve it, and goes on afterwards",
            'preset = "likert"        # or pairwise, rankme, snippet',
            "sample = 50        # contexts that people see",
        ]
    if people == SIMULATE:
        return [
            "[people.simulate]        # for trials: raters with a truth that you set, which prove nothing",
            "raters = 20",
            "sample = 50",
        ]
    if people is not None:
        return ["[people]", f"ratings = {toml_value(_from(folder, people))}        # in any usual shape"]
    return [
        "# [people.study]        # let people rate: the run writes study.toml and waits",
        '# preset = "likert"',
        "# sample = 50",
    ]
