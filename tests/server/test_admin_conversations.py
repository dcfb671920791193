"""The owner of a collection while it runs: verdicts, decisions and amendments."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from chatting import PLAIN, Guest, is_my_turn, is_talking, meet
from playwright.sync_api import Browser, expect
from test_chat import converse, put
from visits import accessible, no_sideways_scroll

from palaver.collection.settings import parse_collection
from palaver.errors import UserError
from palaver.server.chat_log import ChatLog, amend_collection
from palaver.server.chat_records import read_records
from palaver.server.oversight import arm_token


def test_the_owner_reads_and_decides(
    browser: Browser, tmp_path: Path, chat_server: Callable[[str], Any]
) -> None:
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    database = put(url, PLAIN.format(fewest=4))
    server = chat_server(url)
    ann, bob = meet(server.url)
    converse(ann, bob, 4, "<b>a message</b>")
    ann.ask(type="submit")
    token = arm_token(database)
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.goto(f"{server.url}/admin/login?token={token}")
    page.locator("button").first.click()
    page.get_by_role("link", name="Conversations, verdicts and pay").click()
    accessible(page)
    page.get_by_role("link", name="1", exact=True).click()
    expect(page.locator("table")).to_contain_text("<b>a message</b> 3")
    accessible(page)
    page.get_by_label("Reason").first.fill("copied & pasted")
    page.keyboard.press("Enter")  # decides nothing: the first button would accept
    expect(page.locator("main")).not_to_contain_text("You decided")
    assert read_records(database).decisions == {}
    page.get_by_role("button", name="Reject the conversation").click()
    expect(page.locator("h2").first).to_have_text("Verdict: rejected")
    expect(page.locator("main")).to_contain_text("You decided: rejected (copied & pasted)")
    page.set_viewport_size({"width": 390, "height": 844})
    no_sideways_scroll(page)
    page.get_by_role("button", name="Accept agent_1").click()
    expect(page.locator("main")).to_contain_text("You decided: accepted")
    made = read_records(database).decisions
    assert made.pop(("1", "")) == ("rejected", "copied & pasted")
    assert [decision.verdict for decision in made.values()] == ["accepted"]
    page.goto(f"{server.url}/admin/conversations")
    accessible(page)
    no_sideways_scroll(page)
    database.close()


def test_nobody_else_decides(tmp_path: Path, chat_server: Callable[[str], Any]) -> None:
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    database = put(url, PLAIN.format(fewest=4))
    server = chat_server(url)
    meet(server.url)
    with httpx.Client(base_url=server.url, follow_redirects=True, timeout=30) as client:
        assert client.get("/admin/conversations/1").status_code == 401
        assert client.post("/admin/conversations/1", data={"decision": "accept"}).status_code == 401
        page = client.post("/admin/login", data={"token": arm_token(database)})
        assert client.get("/admin/conversations/7").status_code == 404
        assert client.get("/admin/amend").status_code == 404
        assert client.post("/admin/conversations/1", data={"decision": "accept"}).status_code == 403
        csrf = re.findall(r'name="csrf" value="([^"]+)"', page.text)[0]
        wrong = {"decision": "accept", "csrf": csrf}  # it goes on: there is nothing to decide
        assert client.post("/admin/conversations/1", data=wrong).status_code == 422
    assert read_records(database).decisions == {}
    database.close()


def test_whoever_is_blocked_leaves_at_once(tmp_path: Path, chat_server: Callable[[str], Any]) -> None:
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    database = put(url, PLAIN.format(fewest=4))
    server = chat_server(url)
    ann, bob = meet(server.url)
    converse(ann, bob, 2)
    rude = read_records(database).conversations[0].participants[1].id
    with httpx.Client(base_url=server.url, follow_redirects=True, timeout=30) as admin:
        page = admin.post("/admin/login", data={"token": arm_token(database)}).text
        assert ">Exclude<" not in page  # nothing in a collection goes by it
        assert "With the rest" not in page
        token = re.search(r'name="csrf" value="([^"]+)"', page)
        assert token is not None
        admin.post(f"/admin/raters/{rude}/block", data={"csrf": token[1]})
        assert "Block" not in admin.get(f"/admin/raters/{rude}").text
    bob.wait(lambda view: view["state"] == "out")
    ann.wait(lambda view: view["state"] == "alone")
    bob.connect().wait(lambda view: view["state"] == "out")  # and cannot come back
    database.close()


def test_an_amendment_reaches_a_server_that_runs(tmp_path: Path, chat_server: Callable[[str], Any]) -> None:
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    text = PLAIN.format(fewest=4) + "longest_message = 5\n"
    database = put(url, text)
    server = chat_server(url)
    ann, bob = meet(server.url)
    assert ann.say("a long message")["type"] == "refused"
    amended = text.replace("= 5\n", "= 50\n").replace("[conv", 'instructions = "Be kind."\n[conv')
    changes = amend_collection(database, parse_collection(amended, "collection.toml"), amended).changes
    assert changes == ("instructions is changed", "conversation.longest_message: 5 becomes 50")
    assert ann.say("a long message")["type"] == "done"
    assert "Be kind." in ann.http.get("/study").text
    bob.wait(is_my_turn)
    put(url, amended).close()  # it is served again as it is now
    with pytest.raises(UserError, match="incomparable"):
        other = amended.replace("fewest_turns = 4", "fewest_turns = 8")
        amend_collection(database, parse_collection(other, "collection.toml"), other)
    assert ChatLog(database).collection.conversation.fewest_turns == 4
    assert Guest(server.url).connect().receive()["state"] == "waiting"
    assert is_talking(bob.view)
    database.close()


def test_groups_of_people_meet_as_the_file_says(tmp_path: Path, chat_server: Callable[[str], Any]) -> None:
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    rule = '[partners]\nmeetings = [["teacher", "student"]]\n[conv'
    put(url, PLAIN.format(fewest=4).replace("[conv", rule)).close()
    server = chat_server(url)
    assert httpx.get(f"{server.url}/").status_code == 400
    assert httpx.get(f"{server.url}/?group=parent").status_code == 400
    first, second = (Guest(server.url, group="student").connect() for _ in range(2))
    for student in (first, second):
        student.wait(lambda view: view["state"] == "waiting")
    teacher = Guest(server.url, group="teacher").connect()
    first.wait(lambda view: view["state"] in ("invited", "talking"))  # who came first
    teacher.wait(is_talking)
    first.wait(is_talking)
    assert second.view["state"] == "waiting"
