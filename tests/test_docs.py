"""The documentation holds: commands and examples run, page by page, in an empty folder.

What a block's first line says is what becomes of it:

```sh                 its commands run; a ```text block right after it shows lines that they print
```python             runs
```LANGUAGE FILE      is that file
```console needs …    cannot run here; its `palaver` commands are parsed by the real parser
```toml               is read by the reader of such files; json, csv, yaml and bash are parsed

A model's address on a page is that of `Model`.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import runpy
import shlex
import subprocess
import sys
import threading
import tomllib
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import typer.main
from tests.documentation import DOCS, PAGES, ROOT, Block, blocks, name_of

from palaver.cli.lazy import LazyGroup
from palaver.cli.main import app
from palaver.collection.settings import load_collection
from palaver.generation.systems_file import load_systems
from palaver.server.answers import RawAnswer
from palaver.server.database import Database
from palaver.server.migrations import migrate
from palaver.server.study_state import StudyState
from palaver.studies.design import load_study

NOT_RUN = {
    "people to take part": "a server that runs until it is stopped, or what people answered there",
    "your files": "files that only the reader has",
    "a corpus": "data that may not come along",
    "the network": "downloads",
    "smollm2": "a language model of 100 MB and minutes to answer",
    "a GPU": "hours without one",
    "several machines": "a cluster",
    "root": "a server of one's own; tests/server/test_go_public.py goes the same way",
}
"""Why a block cannot run in this test: the only reasons there are."""

RUN_BY = {
    "index.md": "tests/cli/test_demo.py",
    "how-to/evaluate.md": "tests/cli/test_demo.py",
    "how-to/plug-in.md": "tests/test_plug_in.py",
    "reference/python.md": "tests/test_python_page.py",
    "tutorials/collect-conversations.md": "tests/cli/test_collect.py",
    "tutorials/let-people-rate-your-bot.md": "tests/cli/test_collect.py",
    "tutorials/can-i-use-a-judge.md": "tests/test_docs.py",
    "tutorials/how-many-people-do-i-need.md": "tests/test_trust_tutorial.py",
}
"""Pages with blocks that another test runs."""

AFTER_PEOPLE = [
    "tutorials/first-study.md",
    "tutorials/which-bot-is-better.md",
    "how-to/put-a-study-online.md",
    "how-to/run-a-study-with-others.md",
]
"""Pages about a served study: people answer it here, then the commands run."""

WAYS = {
    "I have ratings, and reviewers to convince": ["first-analysis", "how-many-people-do-i-need"],
    "I have logs full of stars": ["clean-user-ratings", "which-bot-is-better"],
    "I have raters to pay": ["first-study", "let-people-rate-your-bot"],
    "I have a model to build": ["train-a-persona-bot", "probe-an-encoder", "collect-conversations"],
}
"""Sections of the front page, and the tutorials that each leads to."""

SHOWN = {"how-to/own-ratings.md": "csv", "how-to/go-public.md": "nginx ini text"}
"""Languages of pages whose blocks tests/readers/test_any_ratings.py and tests/test_deploy.py read."""

FRAGMENT_OF_STUDY = """
[[items]]
id = "one"
context = "Hi"
outputs = [{ system = "a", text = "Hello" }, { system = "broken", text = "Go" }]
"""
DIALOGUE = 'dialogue = { id = "d", turns = [{ speaker = "system", text = "Hello" }] }'
QUESTION = '[[questions]]\ncriterion = "quality"\ntext = "How good?"\nscale = { kind = "likert" }\n'


class Model(BaseHTTPRequestHandler):
    """A chat model behind an OpenAI-compatible address, which repeats what it hears. As a judge it gives the
    first answer that it may."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = f"You say: {asked['messages'][-1]['content']}"
        if "response_format" in asked:
            answers = asked["response_format"]["json_schema"]["schema"]["properties"]
            text = json.dumps({name: answer["enum"][0] for name, answer in answers.items()})
        body = json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def model_address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> None:
    """For such small models a second thread costs more than it brings."""
    with contextlib.suppress(ImportError):
        import torch

        torch.set_num_threads(1)


# --- what runs ----------------------------------------------------------------------------------------------


def runs(block: Block) -> bool:
    if block.needs or block.file:
        return False
    return block.language == "sh" or (block.language == "python" and block.page not in RUN_BY)


@pytest.mark.parametrize("page", [p for p in PAGES if any(map(runs, blocks(p)))], ids=name_of)
def test_what_can_run_runs(
    page: Path,
    tmp_path: Path,
    palaver: Callable[..., Any],
    model_address: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    names: dict[str, Any] = {"__name__": "a page"}
    printed, before = "", None
    for block in blocks(page):
        if block.file:
            text = block.text.replace("http://localhost:8080/v1", model_address)
            (tmp_path / block.file).write_text(text, encoding="utf-8")
        elif runs(block) and block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block.text, str(block), "exec"), names)
        elif runs(block):
            for line in block.lines:
                printed += run_line(line, palaver, monkeypatch)
        elif block.language == "text" and before is not None and before.language == "sh":
            said = " ".join(printed.split())
            for line in block.text.splitlines():
                assert " ".join(line.split()) in said, f"{block}: it prints no such line: {line}\n{printed}"
        before = block
    for file in [block.file for block in blocks(page) if block.file.endswith(".py")]:
        sys.modules.pop(file.removesuffix(".py"), None)


def split(line: str) -> list[str]:
    """The words of a line, without its comment; a # inside a word is none."""
    return shlex.split(re.sub(r"(^|\s)# .*$", "", line.removeprefix("$ ")))


def run_line(line: str, palaver: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> str:
    """Run one line as a shell would; what it prints."""
    words = split(line)
    if words[:1] == ["make"]:
        return ""  # this test is part of it
    if words[:1] == ["printf"] and words[2] == "|":
        monkeypatch.setattr(sys, "stdin", io.StringIO(words[1].replace("\\n", "\n")))
        words = words[3:]
    out = io.StringIO()
    if words[:2] == ["python", "-c"]:
        with contextlib.redirect_stdout(out):
            exec(compile(words[2], line, "exec"), {})
        if words[3:4] == [">"]:
            Path(words[4]).write_text(out.getvalue(), encoding="utf-8")
        return out.getvalue()
    if words[:1] == ["python"]:
        with contextlib.redirect_stdout(out):
            runpy.run_path(words[1], run_name="__main__")
        return out.getvalue()
    assert words[:1] == ["palaver"], f"this test cannot run: {line}"
    ran = palaver(*words[1:])
    assert ran.code == 0, f"{line}\n{ran.out}\n{ran.err}"
    return str(ran.out)


def answer(study_file: Path) -> None:
    """Two people answer a study as its server would let them, in the database beside its file."""
    database = Database(f"sqlite:///{study_file.with_suffix('.db')}")
    migrate(database)
    text = study_file.read_text(encoding="utf-8")
    state = StudyState.create(database, load_study(study_file), text)
    for person in range(2):
        rater = state.enter()
        state.agree(rater)
        state.begin(rater)
        while (task := state.visit(rater).task) is not None:
            answers = []
            for question in task.questions:
                for place in range(len(task.order)):
                    value = ["ok"] if question.scale.kind == "checkboxes" else 100.0 + 10 * place
                    answers.append(RawAnswer(uuid.uuid4().hex, question.criterion, place, value, 8.0))
            state.submit(rater, task.assignment, answers)
        assert person == 0 or state.visit(rater).task is None
    database.close()


@pytest.mark.parametrize("name", AFTER_PEOPLE)
def test_what_comes_after_people_have_answered_runs(
    name: str, tmp_path: Path, palaver: Callable[..., Any]
) -> None:
    assert palaver("study", "new", "--preset", "rankme", "--out", "study.toml").code == 0
    answer(tmp_path / "study.toml")
    page = next(page for page in PAGES if name_of(page) == name)
    shown = [block for block in blocks(page) if block.needs == "people to take part"]
    lines = [line for block in shown for line in block.lines if " serve " not in line]
    for line in sorted(lines, key=lambda line: " reset " in line):  # which leaves nothing to export
        words = split(line)[1:]
        if "--decisions" in words:
            continue  # on the admin's page; tests/server/test_admin_raters.py decides there
        if "reset" in words:
            words.append("--yes")
        if words[1] == "admin" and words[2] in ("add", "link"):  # a server would have left its address
            words += ["--public-url", "http://localhost:8000"]
        ran = palaver(*words)
        assert ran.code == 0, f"{line}\n{ran.out}\n{ran.err}"
    if name == "tutorials/first-study.md":
        assert "Agreement" in (tmp_path / "results" / "report.html").read_text(encoding="utf-8")


def test_the_ways_from_the_front_page_go_to_their_end() -> None:
    """Every section leads to its tutorials, and every command of those runs in some test."""
    front = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for title, tutorials in WAYS.items():
        section = front.partition(f"## {title}\n")[2].partition("\n## ")[0]
        for tutorial in tutorials:
            assert f"tutorials/{tutorial}.md" in section, f"{title} does not lead to {tutorial}"
            name = f"tutorials/{tutorial}.md"
            for block in blocks(ROOT / "docs" / name):
                followed = runs(block) or block.file or name in RUN_BY or name in AFTER_PEOPLE
                assert followed or block.language in ("text", "toml"), f"nothing runs {block}"


WITH_FILES = ["how-to/judge-responses.md", "how-to/responses-to-study.md", "how-to/plug-in.md"]
WITH_FILES += ["how-to/compare-dialogues.md", "reference/metrics.md", "reference/recogniser.md"]
"""Pages whose commands run with made-up files in the place of the reader's."""
LEFT_OUT = re.compile(
    "smollm2|LIWC|study[.]db|compare (score|pair|rank|audit|evaluate|train|clean)|palaver chat|:ocean"
    "|probe run|knowledge agreement|--system default|--by comparator"
)
"""Commands that take too long, or that other pages run."""


def write_files_like_yours(folder: Path, model_address: str) -> None:
    """Responses of two systems, what people said about them, a bot, a letter; under the pages' names."""
    rows, ratings = [], ["item,system,rater,criterion,value"]
    for n in range(8):
        for k, system in enumerate(("alpha", "beta")):
            said = f"I would go there, please, on day {n}." + " It is nice." * ((n + k) % 3)
            row = {"id": f"q{n}", "system": system, "context": f"Where to on day {n}?", "response": said}
            rows.append({**row, "reference": f"Go to the sea on day {n}.", "conversation": f"c{n}"})
            ratings += [f"q{n},{system},{who},quality,{1 + (n + k + r) % 5}" for r, who in enumerate("xyz")]
    for name, system in (("said", ""), ("responses", ""), ("bot-a", "alpha"), ("bot-b", "beta")):
        lines = [json.dumps(row) for row in rows if system in ("", row["system"])]
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    texts = "".join(f"{row['response']}\n" for row in rows)
    for name in ("letter", "notes", "mine", "theirs", "true", "questions", "contexts"):
        (folder / f"{name}.txt").write_text(texts, encoding="utf-8")
    turns = [{"speaker": "user" if n % 2 == 0 else "system", "text": texts} for n in range(4)]
    chats = [{"id": f"c{n}", "rater": "x", "rating": 1 + n, "turns": turns} for n in range(5)]
    for name in ("chat", "chats"):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, chats)), encoding="utf-8")
    (folder / "people.csv").write_text("\n".join(ratings), encoding="utf-8")
    (folder / "bots.py").write_text("def reply(text):\n    return text.upper()\n", encoding="utf-8")
    systems = f'kind = "openai"\nbase_url = "{model_address}"\nmodel = "small"\n'
    systems = f'[systems.mini]\n{systems}[systems.mine]\nkind = "python"\nfunction = "bots:reply"\n'
    (folder / "systems.toml").write_text(systems, encoding="utf-8")


@pytest.mark.parametrize("name", WITH_FILES)
def test_what_needs_your_files_runs_with_files_like_yours(
    name: str,
    tmp_path: Path,
    palaver: Callable[..., Any],
    model_address: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    write_files_like_yours(tmp_path, model_address)
    assert (
        palaver("study", "new", "--from", "said.jsonl", "--preset", "pairwise", "--out", "study.toml").code
        == 0
    )
    assert palaver("judge", "said.jsonl", "--by", "words", "--out", "judged.parquet").code == 0
    code = "".join(block.text for block in blocks(DOCS / name) if block.file == "mine.py")
    (tmp_path / "mine.py").write_text(f"from bots import reply\n{code}", encoding="utf-8")
    ran = 0
    for block in [block for block in blocks(DOCS / name) if block.needs == "your files"]:
        for line in block.lines if block.language == "console" else []:
            words = split(line)
            if LEFT_OUT.search(line):
                continue
            if "--out" in words and Path(words[words.index("--out") + 1]).exists():
                line = " ".join([*words, "--force"])
            run_line(line, palaver, monkeypatch)
            ran += 1
    assert ran
    for module in ("mine", "bots"):
        sys.modules.pop(module, None)


def test_a_judge_is_put_beside_people_as_the_tutorial_says(
    tmp_path: Path, palaver: Callable[..., Any], model_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a server in the place of SmolLM2, whose habit it shares: it takes what stands first."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    page = blocks(DOCS / "tutorials" / "can-i-use-a-judge.md")
    (systems,) = [block.text for block in page if block.language == "toml"]
    systems = systems.replace("https://api.openai.com/v1", model_address)
    (tmp_path / "systems.toml").write_text(systems, encoding="utf-8")
    questions = "".join(f"What do you do on day {n}?\n" for n in range(12))
    (tmp_path / "questions.txt").write_text(questions, encoding="utf-8")
    printed = ""
    for block in [block for block in page if block.needs == "smollm2"]:
        text = block.text.replace(" --by llm:smollm2 --cost-limit", " --force --cost-limit")
        for line in text.replace("smollm2", "mini").splitlines():
            if block.language == "console":
                printed += run_line(line, palaver, monkeypatch)
            else:
                assert " ".join(line.split()) in " ".join(printed.split()), printed


def test_a_tutorial_quotes_what_was_measured() -> None:
    tutorial = (DOCS / "tutorials" / "clean-user-ratings.md").read_text(encoding="utf-8")
    measured = json.loads((DOCS / "results" / "comparator.json").read_text(encoding="utf-8"))
    areas = measured["failed_raters"]["auc"]
    assert f"in {areas['rater model']:.0%} of such pairs" in tutorial
    assert f"in {areas['rater model, care']:.0%} the `suspicion` in" in tutorial
    own_spread = areas["trivial: the rater's own spread"]
    assert f"tells it in {own_spread:.0%}" in tutorial


# --- what is parsed -----------------------------------------------------------------------------------------


def problems(block: Block, folder: Path) -> Iterator[str]:
    """What is wrong with a block that does not run, or that it has no reason not to."""
    if block.language == "console":
        if not block.needs and block.page not in RUN_BY:
            yield f"say what it needs ({', '.join(NOT_RUN)}), or make it ```sh"
        for line in block.lines:
            yield from command_problems(line)
    elif block.language == "python":
        compile(block.text, str(block), "exec")
        for module, names in re.findall(r"^from (palaver[\w.]*) import ([^(\n]+)$", block.text, flags=re.M):
            scope: dict[str, Any] = {}
            exec(f"from {module} import {names}", scope)
    elif block.language == "toml":
        read_toml_block(block.text, folder)
    elif block.language == "json":
        try:
            json.loads(block.text)
        except ValueError:
            for line in block.text.splitlines():
                json.loads(line)
    elif block.language == "csv" and block.page not in SHOWN:
        widths = Counter(len(row) for row in csv.reader(io.StringIO(block.text)))
        if len(widths) != 1:
            yield f"its rows have {sorted(widths)} columns"
    elif block.language == "yaml":
        yaml = pytest.importorskip("yaml")
        yaml.safe_load(block.text)
    elif block.language == "bash":
        ran = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True)
        if ran.returncode:
            yield ran.stderr
    elif block.language not in ("sh", "text", *SHOWN.get(block.page, "").split()) and not re.fullmatch(
        r"(dialogues|responses)\.\w+",  # tests/readers/test_formats_page.py reads these
        block.language,
    ):
        yield "this language is not known here"


def command_problems(line: str) -> Iterator[str]:
    """What the parser says about each `palaver` of a line."""
    try:
        words = split(line)
    except ValueError as error:
        yield f"{line}: {error}"
        return
    while words:
        end = next((n for n, word in enumerate(words) if word in ("|", ">", "&&")), len(words))
        command, words = words[:end], words[end + 1 :]
        place = next((n for n, w in enumerate(command) if w.rpartition("/")[2] == "palaver"), None)
        if place is None or place == len(command) - 1 > 0 or "install" in command:
            continue  # no command, or the name of a folder or a package
        arguments = [word.strip("[]") for word in command[place + 1 :]]
        try:
            parse(arguments)
        except Exception as error:  # the parser has many
            message = str(error)
            if "does not exist" not in message and "no such file" not in message:
                yield f"{line}: {message}"


def parse(arguments: list[str]) -> None:
    command: Any = typer.main.get_command(app)
    context = command.make_context("palaver", arguments)
    while isinstance(command, LazyGroup):
        name, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, arguments, parent=context)


def read_toml_block(text: str, folder: Path) -> None:
    """By the reader of the files that such a block stands in."""
    tables = tomllib.loads(text)
    path = folder / "example.toml"
    if "project" in tables:  # a pyproject.toml
        return
    if "systems" in tables and "parrot" not in text:
        path.write_text(text, encoding="utf-8")
        load_systems(path)
    elif "partners" in tables:
        preset = (ROOT / "src/palaver/collection/presets/talk-and-rate.toml").read_text(encoding="utf-8")
        path.write_text(re.sub(r"\[partners\]\n.*?(?=\n\[)", text, preset, flags=re.S), encoding="utf-8")
        load_collection(path)
    elif "data" in tables:
        from palaver.training.experiment_file import load_experiment

        (folder / "dialogues.jsonl").write_text("", encoding="utf-8")
        path.write_text(text, encoding="utf-8")
        load_experiment(path)
    elif "systems" not in tables:
        questions = [question["criterion"] for question in tables.get("questions", ())]
        tail = ("" if "quality" in questions else QUESTION) + ("" if "items" in tables else FRAGMENT_OF_STUDY)
        if "per =" in text:  # about the turns of dialogues
            tail = re.sub('text = "(Hello|Go)"', DIALOGUE, tail)
        path.write_text(f'name = "example"\nlayout = "joint"\n{text}\n{tail}', encoding="utf-8")
        if "media" in tables or "nl.toml" in text:
            return  # files beside it: tests/cli/test_study.py and tests/server/test_media.py have them
        load_study(path)


def test_every_block_runs_or_is_parsed_or_has_a_reason(tmp_path: Path) -> None:
    wrong = []
    for page in PAGES:
        for block in blocks(page):
            if block.needs and block.needs not in NOT_RUN:
                wrong.append(f"{block}: 'needs {block.needs}' is no reason that NOT_RUN has")
            if runs(block) or (block.file and any(map(runs, blocks(page)))):
                continue  # a file of a page that runs is read there
            try:
                wrong += [f"{block}: {problem}" for problem in problems(block, tmp_path)]
            except Exception as error:
                wrong.append(f"{block}: {error}")
    assert not wrong, "\n".join(wrong)


def test_every_reason_is_used_and_most_pages_run() -> None:
    every = [block for page in PAGES for block in blocks(page)]
    assert {block.needs for block in every} - {""} == set(NOT_RUN)
    fences = sum(len(re.findall(r"^```", page.read_text(encoding="utf-8"), flags=re.M)) for page in PAGES)
    assert fences == 2 * len(every), "a block that this test does not see"
    for page, test in RUN_BY.items():
        assert Path(page).stem in (ROOT / test).read_text(encoding="utf-8") or "demo" in test, page


# --- links --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", PAGES, ids=name_of)
def test_links_lead_somewhere(document: Path) -> None:
    code = r"^```.*?^```|``.*?``|`[^`\n]*`"  # Markdown that is shown is no link
    text = re.sub(code, "", document.read_text(encoding="utf-8"), flags=re.M | re.S)
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    local = [t for t in targets if not t.startswith(("http:", "https:"))]
    missing = [t for t in local if not (document.parent / t).exists()]
    assert not missing


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    named = set(re.findall(r"- (\S+\.md)$", navigation, flags=re.M))
    generated = {"reference/commands.md", "reference/api.md", "changes.md"}
    assert named == {name_of(page) for page in PAGES if page.is_relative_to(DOCS)} | generated
    results = navigation.partition("- Results:\n")[2].split()
    assert results[1] == "results/index.md", "what the papers said and what we measured comes first"


def test_every_picture_is_used_and_a_script_makes_it() -> None:
    shown: dict[str, str] = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for words, file in re.findall(r"!\[([^]]*)\]\((?:\.\./)*(?:docs/)?images/([^)]+)\)", text):
            assert len(words.split()) >= 4, f"{name_of(page)} does not say what {file} shows"
            shown[file] = words
    files = {path.name: path for path in (DOCS / "images").iterdir()}
    assert set(shown) == set(files)
    pictures = runpy.run_path(str(DOCS / "pictures.py"))
    assert {*pictures["MAKERS"], *pictures["ELSEWHERE"]} == set(files)
    for script in pictures["ELSEWHERE"].values():
        assert (ROOT / script).is_file()
    assert {name for name, path in files.items() if path.stat().st_size > 300_000} == set()


def test_readme_table_names_real_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = [line for line in readme.splitlines() if line.startswith("| ") and "`palaver " in line]
    assert len(rows) >= 30
    lines = [line for row in rows for line in re.findall(r"`(palaver [^`]+)`", row)]
    wrong = [problem for line in lines for problem in command_problems(line)]
    assert not wrong, "\n".join(wrong)
