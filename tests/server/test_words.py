"""Languages: every text that raters see is in every catalogue, and pages are in the rater's language."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest
from jinja2 import Environment, nodes
from markupsafe import Markup
from starlette.testclient import TestClient

import palaver
from palaver.collection.records import Exit
from palaver.errors import Sentence, UserError
from palaver.schema import SCALES
from palaver.server.app import create_app
from palaver.server.chat_records import people_of
from palaver.server.database import Database
from palaver.server.settings import Settings
from palaver.server.words import choose_language, languages, words_of
from palaver.studies.design import preset_text

SOURCE = Path(palaver.__file__).parent
TEMPLATES = sorted(p for p in (SOURCE / "server/templates").glob("*.j2") if not p.name.startswith("admin"))
SCRIPTS = sorted(p for p in (SOURCE / "server/static").glob("*.js") if p.name not in ("admin.js", "words.js"))
FOR_ADMINS = ("admin", "amendment_page", "backup", "dashboard", "decisions", "oversight", "preview")
FOR_ADMINS += ("rater_record",)
CODE = [
    SOURCE / "errors.py",
    *sorted(p for p in (SOURCE / "server").glob("*.py") if not p.name.startswith(FOR_ADMINS)),
    *sorted((SOURCE / "collection").glob("*.py")),
    *sorted((SOURCE / "schema/scale").glob("*.py")),
]
SAYING = ("t", "words", "Sentence", "Refusal", "NotNow")
"""What takes a text that people see as its first argument."""
STORED = sorted(set(get_args(Exit)) - {"here"})
"""How people leave a collection; the reasons of their pay name it."""
_SCRIPT_TEXT = re.compile(r'\bt\("((?:[^"\\]|\\.)*)"')


def texts_of_template(path: Path) -> Iterator[str]:
    for call in Environment().parse(path.read_text(encoding="utf-8")).find_all(nodes.Call):
        if (
            isinstance(call.node, nodes.Name)
            and call.node.name == "t"
            and isinstance(call.args[0], nodes.Const)
        ):
            yield call.args[0].value


def texts_of_code(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        text = node.args[0]
        if name in SAYING and isinstance(text, ast.Constant) and isinstance(text.value, str):
            yield text.value


def texts_of_scales() -> Iterator[str]:
    for kind in SCALES:
        for name in ("labels", "options", "tie_label"):
            field = SCALES.get(kind).model_fields.get(name)
            if field is not None:
                yield from (field.default,) if isinstance(field.default, str) else field.default


def used() -> dict[str, str]:
    """Every text that people see -> where it stands."""
    found: dict[str, str] = {}
    for path in TEMPLATES:
        found |= dict.fromkeys(texts_of_template(path), path.name)
    for path in SCRIPTS:
        found |= dict.fromkeys(_SCRIPT_TEXT.findall(path.read_text(encoding="utf-8")), path.name)
    for path in CODE:
        found |= dict.fromkeys(texts_of_code(path), path.name)
    return found | dict.fromkeys(texts_of_scales(), "scales") | dict.fromkeys(STORED, "payment.py")


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def texts_in(language: str) -> dict[str, str]:
    return {key: text for group in words_of(language).groups.values() for key, text in group.items()}


# --- the catalogues -----------------------------------------------------------------------------------------


def test_english_has_every_text_that_people_see_and_no_other() -> None:
    english, texts = texts_in("en"), used()
    missing = [
        f"languages/en.toml lacks {key!r} ({place})" for key, place in texts.items() if key not in english
    ]
    unused = [f"languages/en.toml has {key!r}, which nothing says" for key in english if key not in texts]
    assert missing + unused == []
    assert {key: text for key, text in english.items() if key != text} == {}


@pytest.mark.parametrize("language", languages())
def test_every_language_says_everything(language: str) -> None:
    problems = []
    for group, texts in words_of("en").groups.items():
        said = words_of(language).groups.get(group, {})
        problems += [
            f"languages/{language}.toml, [{group}] lacks {key!r}" for key in texts if key not in said
        ]
        problems += [
            f"languages/{language}.toml, [{group}] has {key!r} alone" for key in said if key not in texts
        ]
        for key, text in said.items():
            if placeholders(key) != placeholders(text):
                problems.append(f"languages/{language}.toml: other placeholders than {key!r}")
            if not text.strip():
                problems.append(f"languages/{language}.toml: nothing for {key!r}")
    problems += [
        f"{language}.toml has [{g}] alone"
        for g in words_of(language).groups
        if g not in words_of("en").groups
    ]
    assert problems == []


def test_a_text_stands_once_in_a_catalogue() -> None:
    keys = [key for group in words_of("en").groups.values() for key in group]
    assert sorted(set(keys)) == sorted(keys)


def test_scripts_find_their_words_in_the_group_that_their_page_brings() -> None:
    groups = words_of("en").groups
    for path in SCRIPTS:
        group = (
            "chat.js"
            if path.name.startswith("chat")
            else "waiting.js"
            if path.name == "waiting.js"
            else "rate.js"
        )
        for text in _SCRIPT_TEXT.findall(path.read_text(encoding="utf-8")):
            assert text in groups[group], f'{path.name} says {text!r}, which belongs under ["{group}"]'


class _BareText(HTMLParser):
    """Texts, and attributes that people read, that a template does not say by `t(…)`."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.texts += [
            value for name, value in attrs if name in READ and value and re.search("[A-Za-z]{2}", value)
        ]

    def handle_data(self, data: str) -> None:
        if re.search("[A-Za-z]{2}", data):
            self.texts.append(data.strip())


READ = ("aria-label", "title", "placeholder", "alt", "aria-description", "aria-valuetext")


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_template_says_anything_of_its_own(path: Path) -> None:
    text = re.sub(r"\{% block kind %\}.*?\{% endblock %\}", "", path.read_text(encoding="utf-8"))  # a class
    text = re.sub(r"\{#.*?#\}|\{%.*?%\}", "", text, flags=re.DOTALL)
    reader = _BareText()
    reader.feed(re.sub(r"\{\{.*?\}\}", "", text, flags=re.DOTALL))
    assert reader.texts == [], 'say it by {{ t("…") }}, and add it to server/languages/*.toml'


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_expression_of_a_template_says_english(path: Path) -> None:
    spoken = set(texts_of_template(path))
    for constant in Environment().parse(path.read_text(encoding="utf-8")).find_all(nodes.Const):
        text = constant.value
        if isinstance(text, str) and text not in spoken and "<" not in text:
            assert not re.search(r"[A-Z][a-z]+ [a-z]|^[A-Z][a-z]+[.!:]?$|[a-z] [a-z]+ [a-z]", text), text


# --- saying it ----------------------------------------------------------------------------------------------


def test_a_sentence_is_english_and_can_be_said_otherwise() -> None:
    wanted = Sentence("{number} from {low:g} to {high:g}", number=Sentence("a whole number"), low=1, high=6)
    problem = Sentence("expected {wanted}, found {found!r}", wanted=wanted, found="a number")
    assert problem == "expected a whole number from 1 to 6, found 'a number'"
    assert words_of("en")(problem) == problem
    assert words_of("de")(problem) == "erwartet: eine ganze Zahl von 1 bis 6, gefunden: 'a number'"


def test_what_has_no_translation_is_said_in_english() -> None:
    assert words_of("de")("something that nobody wrote {down}") == "something that nobody wrote {down}"


def test_markup_stays_and_the_rest_is_escaped() -> None:
    said = words_of("en")("You wait at most {time} more.", time=Markup("<b>5</b>"))
    assert said == "You wait at most <b>5</b> more."
    assert words_of("en")("Questions? Write to {contact}.", contact="<b>") == "Questions? Write to <b>."


def test_a_stored_reason_is_recognised() -> None:
    t = words_of("de")
    assert t.recognise("left after 3 messages") == t("{exit} after {n} messages", exit=t("left"), n="3")
    assert t.recognise("by hand") == "by hand"


@pytest.mark.parametrize(
    ("accepted", "chosen"),
    [
        ("", "en"),
        ("de", "de"),
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("en;q=0.3, de;q=0.7", "de"),
        ("nl, de;q=0.5, en;q=0.4", "de"),
        ("de;q=0, en", "en"),
        ("de;q=0", "en"),
        ("tlh", "en"),
        ("*", "en"),
        ("DE-de", "de"),
        ("de;q=zzz", "de"),
        (";;;,,,q=", "en"),
        ("x" * 5000, "en"),
    ],
)
def test_the_browser_is_asked(accepted: str, chosen: str) -> None:
    assert choose_language(accepted, ("en", "de")) == chosen


# --- pages --------------------------------------------------------------------------------------------------


@pytest.fixture
def visit(tmp_path: Path) -> Callable[..., TestClient]:
    """A browser at a study served in this process."""

    def begin(head: str, accepts: str = "") -> TestClient:
        file = tmp_path / "study.toml"
        file.write_text(f"{head}\n{preset_text('complete')}", encoding="utf-8")
        app = create_app(Settings(study_file=file, database=f"sqlite:///{tmp_path / 'study.db'}"))
        return TestClient(app, base_url="http://localhost", headers={"accept-language": accepts})

    return begin


def test_a_study_has_its_language_whatever_the_browser_asks_for(visit: Callable[..., TestClient]) -> None:
    with visit('language = "de"', "en") as browser:
        page = browser.get("/").text
        assert '<html lang="de">' in page
        assert "Bevor Sie beginnen" in page
        assert "You will read short conversations" in page, "what the owner wrote stays"
        csrf = re.findall('name="csrf" value="([^"]+)', page)[0]
        browser.post("/study/consent", data={"csrf": csrf})
        page = browser.post("/study/begin", data={"csrf": csrf}).text
        assert "<span>ja <kbd" in page
        assert '"Saved": "Gespeichert"' in page
        wrong = {"id": "1234567890", "criterion": "quality", "position": 0, "value": "9"}
        answer = {"assignment": 1, "answers": [wrong]}
        reply = browser.post("/api/answers", json=answer, headers={"x-csrf-token": csrf})
        assert reply.json()["error"] == "quality: erwartet: eine ganze Zahl von 1 bis 5, gefunden: '9'"
        assert "Diese Seite gibt es nicht" in browser.get("/nothing").text
        assert "This page does not exist" in browser.get("/admin/nothing").text, (
            "the admin's pages are English"
        )


def test_the_browser_decides_and_the_choice_stays(visit: Callable[..., TestClient]) -> None:
    with visit('language = "browser"', "de-AT, en;q=0.5") as browser:
        assert '<html lang="de">' in browser.get("/").text
        browser.headers["accept-language"] = "en"
        assert '<html lang="de">' in browser.get("/study").text
        browser.cookies.clear()
        assert '<html lang="en">' in browser.get("/").text
        browser.cookies.clear()
        assert '<html lang="de">' in browser.get("/?language=de").text
        browser.cookies.clear()
        assert '<html lang="en">' in browser.get("/?language=../../etc").text


def test_a_language_without_a_catalogue_is_refused_before_anybody_comes(
    visit: Callable[..., TestClient],
) -> None:
    with pytest.raises(UserError, match="there is no catalogue 'browsr' \\(did you mean 'browser'\\?\\)"):
        visit('language = "browsr"')


def test_people_who_talk_read_their_language(tmp_path: Path) -> None:
    file = tmp_path / "collection.toml"
    text = """
        name = "talk"
        instructions = "Talk."
        [[about_partner]]
        criterion = "good"
        text = "Good?"
        scale = { kind = "binary" }
        [translations.de]
        instructions = "Sprechen Sie."
        questions.good = { text = "Gut?" }
    """
    file.write_text(text, encoding="utf-8")
    app = create_app(Settings(collection_file=file, database=f"sqlite:///{tmp_path / 'talk.db'}"))
    with TestClient(app, base_url="http://localhost", headers={"accept-language": "de"}) as browser:
        csrf = re.findall('name="csrf" value="([^"]+)', browser.get("/").text)[0]
        page = browser.post("/study/begin", data={"csrf": csrf}).text
        for said in (
            "Warten auf ein Gegenüber",
            "Sprechen Sie.",
            "Gut?",
            "<span>ja",
            "Die Verbindung ist unterbrochen",
        ):
            assert said in page
        with browser.websocket_connect(
            "ws://localhost/chat/socket", headers={"origin": "http://localhost"}
        ) as socket:
            socket.send_json({"type": "hello", "token": csrf})
            socket.receive_json()
            socket.send_json({"type": "say", "id": "1", "text": "hallo", "mark": "m"})
            replies = iter(socket.receive_json, None)
            refused = next(reply for reply in replies if reply["type"] == "refused")
            assert refused["why"] == "Sie sind in keinem Gespräch"
    assert [person.language for person in people_of(Database(f"sqlite:///{tmp_path / 'talk.db'}"))] == ["de"]
