"""Rich items as raters meet them: Markdown, images and sounds on real pages, and what cannot happen there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import select
from starlette.testclient import TestClient
from visits import accessible, click_go, here, no_sideways_scroll, turned

from palaver.errors import UserError
from palaver.schema import Study
from palaver.server.app import create_app
from palaver.server.backup import backup, restore
from palaver.server.database import Database
from palaver.server.media import PIECE, keep_files
from palaver.server.preview import create_preview
from palaver.server.reset import reset_study
from palaver.server.settings import Settings
from palaver.server.study_state import StudyState
from palaver.server.tables import answer, media_file, media_piece
from palaver.studies.design import load_study

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "rich-items" / "study.toml"
ATTACKS = json.loads((ROOT / "tests" / "text" / "markdown_attacks.json").read_text(encoding="utf-8"))
NOTE = (EXAMPLE.parent / "media" / "note.wav").read_bytes()


@pytest.fixture(scope="module")
def example() -> Study:
    return load_study(EXAMPLE)


def hash_of(study: Study, name: str) -> str:
    assert study.media is not None
    file = study.media.file(name)
    assert file is not None
    return file.hash


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """The example behind a public address with a path."""
    url = f"sqlite:///{tmp_path_factory.mktemp('media') / 'study.db'}"
    settings = Settings(study_file=EXAMPLE, database=url, public_url="https://lab.example.org/study-1")
    with TestClient(create_app(settings), base_url="https://lab.example.org") as client:
        yield client


def test_a_file_has_a_policy_of_its_own_and_is_kept_for_ever(client: TestClient, example: Study) -> None:
    path = f"/study-1/media/{hash_of(example, 'beach.png')}"
    reply = client.get(path)
    assert reply.status_code == 200
    assert reply.content == (EXAMPLE.parent / "media" / "beach.png").read_bytes()
    assert reply.headers["content-type"] == "image/png"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["content-security-policy"].startswith("default-src 'none'")
    assert "sandbox" in reply.headers["content-security-policy"]
    assert "immutable" in reply.headers["cache-control"]
    assert client.get(path, headers={"if-none-match": reply.headers["etag"]}).status_code == 304
    assert client.head(path).headers["content-length"] == str(len(reply.content))
    assert client.get("/study-1/media/" + "0" * 64).status_code == 404
    assert client.get("/study-1/media/..%2f..%2fetc%2fpasswd").status_code == 404


@pytest.mark.parametrize(
    ("wanted", "status", "start", "end"),
    [
        ("bytes=0-", 206, 0, len(NOTE)),
        ("bytes=0-1", 206, 0, 2),
        ("bytes=100-199", 206, 100, 200),
        ("bytes=-10", 206, len(NOTE) - 10, len(NOTE)),
        ("bytes=16000-99999", 206, 16000, len(NOTE)),
        ("bytes=99999-", 416, 0, 0),
        ("bytes=5-2", 416, 0, 0),
        ("bytes=0-1,4-5", 200, 0, len(NOTE)),
        ("bytes=-", 200, 0, len(NOTE)),
        ("lines=1-2", 200, 0, len(NOTE)),
    ],
)
def test_part_of_a_sound(
    client: TestClient, example: Study, wanted: str, status: int, start: int, end: int
) -> None:
    path = f"/study-1/media/{hash_of(example, 'note.wav')}"
    reply = client.get(path, headers={"range": wanted})
    assert (reply.status_code, reply.content) == (status, NOTE[start:end])
    if status == 206:
        assert reply.headers["content-range"] == f"bytes {start}-{end - 1}/{len(NOTE)}"
    if status == 416:
        assert reply.headers["content-range"] == f"bytes */{len(NOTE)}"
    old = client.get(path, headers={"range": wanted, "if-range": '"another"'})
    assert (old.status_code, old.content) == (200, NOTE)


def test_pages_show_files_under_the_public_path(client: TestClient, example: Study) -> None:
    page = client.get("/study-1/?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&workerId=w").text
    assert f'src="/study-1/media/{hash_of(example, "beach.png")}"' in page
    assert "beach.png" not in page, "a name could name the system"


def test_files_are_in_pieces_and_in_backups(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    (tmp_path / "media").mkdir()
    sound = NOTE + bytes(range(256)) * 600
    (tmp_path / "media" / "long.wav").write_bytes(sound)
    text = (
        EXAMPLE.read_text(encoding="utf-8").replace("beach.png", "long.wav").replace("note.wav", "long.wav")
    )
    file.write_text(text.replace("clouds.png", "long.wav"), encoding="utf-8")
    study = load_study(file)
    StudyState.create(database, study, text, folder=tmp_path)
    with database.reading() as connection:
        pieces = (
            connection.execute(select(media_piece.c.content).order_by(media_piece.c.number)).scalars().all()
        )
    assert len(pieces) == -(-len(sound) // PIECE) > 2
    assert b"".join(pieces) == sound
    backup(database, tmp_path / "saved.gz")
    other = Database(f"sqlite:///{tmp_path / 'other.db'}")
    try:
        restore(tmp_path / "saved.gz", other)
        with other.reading() as connection:
            assert b"".join(connection.execute(select(media_piece.c.content)).scalars()) == sound
        app = create_app(Settings(database=f"sqlite:///{tmp_path / 'other.db'}"))
        with TestClient(app, base_url="http://127.0.0.1") as client:
            piece = client.get(
                f"/media/{hash_of(study, 'long.wav')}", headers={"range": f"bytes={PIECE - 1}-{2 * PIECE}"}
            )
        assert piece.content == sound[PIECE - 1 : 2 * PIECE + 1]
    finally:
        other.close()


def test_a_file_that_changes_on_disk_is_not_served(sqlite: Database, tmp_path: Path) -> None:
    folder = tmp_path / "media"
    shutil.copytree(EXAMPLE.parent / "media", folder)
    path = tmp_path / "study.toml"
    path.write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    study = load_study(path)
    (folder / "note.wav").write_bytes(NOTE[:-2])
    with pytest.raises(UserError, match=r"note\.wav has changed while the study was read"):
        StudyState.create(sqlite, study, "", folder=tmp_path)
    (folder / "note.wav").write_bytes(NOTE)
    state = StudyState.create(sqlite, study, "", folder=tmp_path)
    (folder / "note.wav").write_bytes(NOTE[:-2])
    changed = load_study(path)
    with pytest.raises(UserError, match="the file has changed since"):
        StudyState.create(sqlite, changed, "", folder=tmp_path)
    with pytest.raises(UserError, match="would make answers incomparable") as error:
        state.amend(changed, "", folder=tmp_path)
    assert "note.wav in sound" in error.value.problems[0]
    with sqlite.reading() as connection:
        assert len(connection.execute(select(media_file)).all()) == 3
    with sqlite.writing() as connection, pytest.raises(UserError, match="not in the database"):
        keep_files(connection, changed, None)


def test_previews_and_resets_have_the_files(sqlite: Database, example: Study, tmp_path: Path) -> None:
    StudyState.create(sqlite, example, "", folder=EXAMPLE.parent)
    from_served = create_preview(tmp_path, example, "", "served", sqlite)
    assert create_preview(tmp_path, example, "", "served", sqlite) == from_served  # twice is once
    from_file = create_preview(tmp_path, example, "", "file", EXAMPLE.parent)
    reset_study(sqlite, example, "", tmp_path / "saved.gz")
    for database in (Database(from_served), Database(from_file), sqlite):
        with database.reading() as connection:
            note = select(media_piece.c.content).where(media_piece.c.hash == hash_of(example, "note.wav"))
            assert b"".join(connection.execute(note).scalars()) == NOTE
        database.close()


# --- in a browser -------------------------------------------------------------------------------------------


def toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=True)


@pytest.mark.parametrize("place", ["owner", "items"])
def test_attacks_run_nothing_and_load_nothing(
    serve: Callable[..., Any], browser: Browser, place: str
) -> None:
    everything = "\n\n".join(ATTACKS)
    instructions = everything if place == "owner" else "Read."
    text = everything if place == "items" else "hello"
    server = serve(
        f"""
name = "attacked"
markdown = true
instructions = {toml(instructions)}
consent = {toml(instructions)}
[[questions]]
criterion = "quality"
text = "Good?"
scale = {{ kind = "likert" }}
[[items]]
id = "i"
knowledge = {toml(text)}
context = {{ id = "d", turns = [{{ speaker = "user", text = {toml(text)} }}] }}
outputs = [{{ system = "a", text = {toml(text)} }}]
"""
    )
    context = browser.new_context()
    requests: list[str] = []
    problems: list[str] = []
    context.on("request", lambda request: requests.append(request.url))
    context.on("dialog", lambda dialog: problems.append(dialog.message))
    page = context.new_page()
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    page.goto(server.url)
    click_go(page)
    if place == "owner":
        assert "<script>alert(1)</script>" in page.locator(".md").inner_text()
    click_go(page)
    page.wait_for_load_state("networkidle")
    if place == "items":
        assert "<script>alert(1)</script>" in page.locator(".judged .md").inner_text()
        assert page.locator(".md :is(a, img, iframe, form, svg)").count() == 0
    assert problems == []
    assert [url for url in requests if not url.startswith(server.url)] == []
    assert page.evaluate("document.scripts.length") == 1
    context.close()


def answer_all(page: Page) -> None:
    before = here(page)
    page.locator(".choice").first.click()
    page.locator("#go").click()
    turned(page, before)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_example_is_walked(
    browser: Browser, tmp_path: Path, serve: Callable[..., Any], width: int
) -> None:
    shutil.copytree(EXAMPLE.parent / "media", tmp_path / "media")
    server = serve(EXAMPLE.read_text(encoding="utf-8"))
    scheme = "dark" if width < 500 else "light"
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, has_touch=width < 500
    )
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    page.goto(server.url)
    link = page.locator(".md a")
    assert link.get_attribute("rel") == "noopener noreferrer"
    click_go(page)
    _zoom(page)
    accessible(page)
    click_go(page)
    seen = {"img": 0, "audio": 0, "table": 0, "pre": 0}
    for _ in range(6):
        for tag in seen:
            place = page.locator(f"main .md {tag}")
            seen[tag] += place.count()
            if place.count() and seen[tag] == place.count():  # the first page that has one
                no_sideways_scroll(page)
                accessible(page)
        for sound in page.locator("audio").all():
            page.wait_for_function("sound => sound.readyState > 0", arg=sound.element_handle())
            assert sound.get_attribute("aria-label") == "A note of one second"
            sound.focus()
            page.keyboard.press("Enter")  # plays, and does not send the page
            assert page.locator("#state").inner_text() == ""
        for image in page.locator("main .md img").all():
            assert image.bounding_box()["width"] <= width  # type: ignore[index]
        answer_all(page)
    assert min(seen.values()) > 0
    assert problems == []
    assert page.locator(".code").count() == 1
    with server.database.reading() as connection:
        assert len(connection.execute(select(answer)).all()) == 6
    context.close()


def _zoom(page: Page) -> None:
    """An image is enlarged from the keyboard, and Escape leads back to it."""
    link = page.locator("a.picture")
    small = link.locator("img").bounding_box()
    link.focus()
    page.keyboard.press("Enter")
    large = page.locator("#zoom img")
    expect(large).to_be_visible()
    assert large.bounding_box()["width"] > small["width"]  # type: ignore[index]
    assert page.locator("#zoom").get_attribute("aria-label") == "A beach under a blue sky, with a yellow sun"
    accessible(page)
    page.keyboard.press("5")
    page.keyboard.press("Escape")
    expect(large).to_be_hidden()
    expect(link).to_be_focused()
