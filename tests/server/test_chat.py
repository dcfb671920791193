"""Conversations on the real server, by program: stored, replayed, refused, across processes, with bots."""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from chatting import ANNOTATED, PLAIN, WITH_BOT, Guest, is_my_turn, is_talking, meet
from sqlalchemy import func, select
from test_kill import Doomed
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from palaver.collection.settings import parse_collection
from palaver.errors import UserError
from palaver.generation.systems_file import load_systems
from palaver.knowledge.candidates import candidates_of
from palaver.schema import Reply
from palaver.server.bots import BotRunner
from palaver.server.chat import FRAMES_AT_ONCE
from palaver.server.chat_log import ChatLog, create_collection, read_events, read_plan
from palaver.server.chat_records import conversations_of, people_of, ratings_of
from palaver.server.database import Database
from palaver.server.migrations import migrate
from palaver.server.oversight import arm_token
from palaver.server.tables import chat_event, rater

Serve = Callable[..., Any]


def put(url: str, text: str) -> Database:
    """A database with a collection in it."""
    database = Database(url)
    migrate(database)
    create_collection(database, parse_collection(text, "collection.toml"), text, Path())
    return database


@pytest.fixture
def doomed(unused_port: int) -> Iterator[Callable[[str], Doomed]]:
    """`doomed(url)` serves from a process that can be killed and comes again fast."""
    running: list[Doomed] = []

    def start(url: str) -> Doomed:
        running.append(Doomed(url, unused_port))
        running[-1].start()
        return running[-1]

    yield start
    for server in running:
        server.close()


@pytest.fixture
def server(tmp_path: Path, chat_server: Callable[[str], Any]) -> Any:
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    put(url, ANNOTATED.format(fewest=4)).close()
    return chat_server(url)


def converse(first: Guest, second: Guest, turns: int, text: str = "message") -> None:
    for number in range(turns):
        speaker, listener = (first, second) if number % 2 == 0 else (second, first)
        speaker.wait(is_my_turn)
        assert speaker.say(f"{text} {number}")["type"] == "done"
        listener.wait(lambda view, number=number: view["n_turns"] > number)


def annotate(guest: Guest) -> None:
    """Answer all that is asked about the last messages."""
    for number in list(guest.view["ask"]):
        own = {"sentiment": "Happy", "knowledge_source": "FS1|Personal Knowledge"}
        for answers in (own, {"turn_rating": "4"}):
            guest.ask(type="answer", turn=number, answers=answers)


# --- from the first message to the records ------------------------------------------------------------------


def test_an_annotated_conversation_comes_out_whole(server: Any) -> None:
    ann, bob = meet(server.url)
    for number in range(4):
        speaker, listener = (ann, bob) if number % 2 == 0 else (bob, ann)
        annotate(speaker)
        speaker.wait(is_my_turn)
        assert speaker.say(f"message {number}")["type"] == "done"
        listener.wait(lambda view, number=number: view["n_turns"] > number)
    assert not ann.view["can_submit"]
    annotate(ann)
    annotate(bob)
    assert ann.ask(type="submit")["type"] == "done"
    for guest in (ann, bob):
        guest.wait(lambda view: view["state"] == "rating")
        assert guest.ask(type="answer", place="", answers={"rating": "5"})["type"] == "done"
        guest.wait(lambda view: view["state"] == "out")
        page = guest.http.get("/study").text
        assert "Your completion code:" in page
        assert "the conversation was submitted and rated" in page
    (held,) = conversations_of(server.database)
    assert [turn.text for turn in held.dialogue.turns] == [f"message {n}" for n in range(4)]
    assert held.dialogue.turns[0].knowledge == ("FS1", "Personal Knowledge")
    assert held.dialogue.turns[0].labels["sentiment"] == "Happy"
    assert held.dialogue.turns[0].labels["turn_rating"] == "Good"
    assert (held.ending, held.dialogue.labels["rating_agent_1"]) == ("complete", "Excellent")
    assert held.dialogue.labels["config"] == held.configuration
    assert [shelf.id for shelf in held.dialogue.knowledge or ()] == ["1-agent_1", "1-agent_2"]
    assert {(p.exit, p.pay) for p in people_of(server.database)} == {("finished", "full")}
    given = [(r.system, r.criterion, r.turn, r.value, r.kind) for r in ratings_of(server.database)]
    assert given.count(("person", "rating", None, 5.0, "user")) == 2
    assert len([row for row in given if row[1] == "turn_rating"]) == 4


def test_each_side_reads_its_own_set(server: Any) -> None:
    ann, bob = meet(server.url)
    shelves = [guest.http.get("/api/chat/reading").json() for guest in (ann, bob)]
    assert all([s["name"] for s in shelf["factual"]] == ["FS1", "FS2", "FS3"] for shelf in shelves)
    assert shelves[0] != shelves[1] or shelves[0]["article"] is None


def test_a_page_that_comes_again_is_sent_what_it_lacks(server: Any) -> None:
    ann, bob = meet(server.url)
    ann.say("one")
    bob.wait(lambda view: view["n_turns"] == 1)
    assert ann.socket is not None
    ann.socket.close()  # the page is reloaded: it has nothing
    ann.room = ann.turns = 0
    ann.said, ann.view = [], {}
    annotate(bob)
    bob.say("two")
    ann.connect().wait(lambda view: view.get("n_turns") == 2)
    assert ann.said == ["one", "two"]
    assert bob.socket is not None
    bob.socket.close()  # the network was away: it has what it had
    annotate(ann)
    ann.wait(is_my_turn)
    ann.say("three")
    bob.connect().wait(lambda view: view.get("n_turns") == 3)
    assert bob.said == ["one", "two", "three"]


# --- refusals -----------------------------------------------------------------------------------------------


def test_other_origins_and_other_people_s_tokens_are_refused(server: Any) -> None:
    ann, bob = Guest(server.url), Guest(server.url)
    with pytest.raises(InvalidStatus):
        ann.connect(origin="https://evil.example")
    ann.connect(token=bob.token)
    with pytest.raises(ConnectionClosed):
        ann.receive()
    ann.http.cookies.clear()
    with pytest.raises(InvalidStatus):
        ann.connect()
    assert bob.connect().receive()["state"] == "waiting"


def test_what_is_no_message_is_refused_in_words_and_the_rest_goes_on(server: Any) -> None:
    ann, bob = meet(server.url)
    assert ann.say("x" * 100_000)["why"] == "a message has at most 2,000 characters, this one has 100,000"
    assert ann.say("a\0b")["why"] == "the message contains a NUL character, which cannot be stored"
    for frame in (
        "[1",
        "3",
        '{"type": "jump"}',
        '{"type": "answer", "answers": 3}',
        '{"type": "say", "id": 3}',
    ):
        assert ann.socket is not None
        ann.socket.send(frame)
        assert ann.receive()["type"] == "refused", frame
    assert ann.ask(type="answer", turn=7, answers={})["why"] == "there is no message 8"
    assert ann.ask(type="answer", place="", answers={"rating": "5"})["type"] == "refused"
    assert ann.ask(type="submit")["why"] == "0 of at least 4 messages were written"
    assert ann.ask(type="choose", option="bot")["type"] == "refused"
    assert ann.say("hello")["type"] == "done"
    bob.wait(lambda view: view["n_turns"] == 1)


def test_a_flood_ends_one_connection_and_nobody_else_s(server: Any) -> None:
    ann, bob = meet(server.url)
    assert ann.socket is not None
    frame = json.dumps({"type": "say", "id": "a", "text": "flood"})
    with pytest.raises(ConnectionClosed) as caught:
        for _ in range(1000):
            ann.socket.send(frame)
        for _ in range(10 * FRAMES_AT_ONCE):
            ann.receive()
    assert caught.value.rcvd is not None
    assert "more than anybody can type" in caught.value.rcvd.reason
    bob.wait(lambda view: view["n_turns"] == 1)
    assert bob.said == ["flood"]


def test_a_frame_that_is_much_too_long_ends_the_connection(server: Any) -> None:
    ann, _ = meet(server.url)
    with pytest.raises(ConnectionClosed):
        ann.say("x" * 1_000_000)


def test_leaving_is_paid_or_explained(server: Any) -> None:
    ann, bob = meet(server.url)
    ann.say("one")
    bob.wait(lambda view: view["n_turns"] == 1)
    assert "you get a code" in ann.http.get("/study/leave").text
    page = ann.http.post("/study/leave", data={"csrf": ann.token}).text
    assert "Your completion code:" in page
    assert "left after 1 message." in page
    bob.wait(lambda view: view["state"] == "alone")
    assert bob.ask(type="choose", option="stop")["type"] == "done"
    page = bob.http.get("/study").text
    assert "the partner left before anything was written in return" in page
    somebody = Guest(server.url)
    assert "You have left the study" in somebody.http.post("/study/leave", data={"csrf": somebody.token}).text


def test_a_changed_file_needs_another_database(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    put(url, PLAIN.format(fewest=4)).close()
    with pytest.raises(UserError, match="the file has changed since"):
        put(url, PLAIN.format(fewest=6))


# --- several processes --------------------------------------------------------------------------------------


def test_two_processes_pair_people_through_the_database(
    database_url: str, chat_server: Callable[[str], Any]
) -> None:
    put(database_url, PLAIN.format(fewest=4)).close()
    first, second = chat_server(database_url), chat_server(database_url)
    ann, bob = Guest(first.url).connect(), Guest(first.url)
    bob.url = second.url  # the same cookie, another process
    bob.connect()
    ann.wait(lambda view: view["state"] in ("invited", "talking"))
    bob.wait(is_talking)
    ann.wait(is_talking)
    converse(ann, bob, 4)
    assert ann.said == bob.said == [f"message {n}" for n in range(4)]
    ann.ask(type="submit")
    bob.wait(lambda view: view["state"] == "out")
    events = read_events_of(first.database)
    assert [event.number for event in events] == list(range(1, len(events) + 1))


def read_events_of(database: Database) -> list[Any]:
    with database.reading() as connection:
        return read_events(connection)


def test_what_was_acknowledged_survives_a_killed_server(
    tmp_path: Path, doomed: Callable[[str], Doomed]
) -> None:
    """Pairs talk while the server is killed again and again; nothing is lost, doubled or out of order."""
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    database = put(url, PLAIN.format(fewest=1000))
    server = doomed(url)
    over = threading.Event()
    pairs = [Stubborn(f"http://127.0.0.1:{server.port}", over) for _ in range(4)]
    for guest in pairs:
        guest.start()
    rng = random.Random(1)
    for _ in range(3):
        time.sleep(rng.uniform(0.8, 1.6))
        server.kill()
        server.start()
    time.sleep(1.0)
    over.set()
    for guest in pairs:
        guest.join(30)
    assert not [problem for guest in pairs for problem in guest.problems]
    turns = [turn for held in conversations_of(database) for turn in held.dialogue.turns]
    texts = [turn.text for turn in turns]
    acknowledged = [text for guest in pairs for text in guest.acknowledged]
    assert len(acknowledged) > 8
    assert len(texts) == len(set(texts))
    assert set(acknowledged) <= set(texts)
    for guest in pairs:
        mine = [text for text in texts if text.startswith(guest.name)]
        assert mine == sorted(mine)
    database.close()


class Stubborn(threading.Thread):
    """A page that sends a message again, under the same id, until it is acknowledged."""

    def __init__(self, url: str, over: threading.Event) -> None:
        super().__init__(daemon=True, name=uuid.uuid4().hex[:8])
        self.guest, self.over = Guest(url), over
        self.acknowledged: list[str] = []
        self.problems: list[str] = []

    def run(self) -> None:
        number, sent = 0, None
        while not self.over.is_set():
            try:
                self.guest.view = {}
                self.guest.connect()
                while not self.over.is_set():
                    if sent is None:
                        self.guest.wait(is_my_turn, timeout=1)
                        number += 1
                        sent = {"type": "say", "id": uuid.uuid4().hex, "text": f"{self.name} {number:04d}"}
                    reply = self.guest.ask(**{**sent, "mark": uuid.uuid4().hex})
                    if reply["type"] != "done":
                        self.problems.append(str(reply))
                        return
                    self.acknowledged.append(str(sent["text"]))
                    self.guest.view = {**self.guest.view, "can_say": False}
                    sent = None
            except (OSError, WebSocketException, TimeoutError, EOFError):
                self.over.wait(0.05)  # the server is down


# --- bots ---------------------------------------------------------------------------------------------------


class Parrot(BaseHTTPRequestHandler):
    """A chat API that says what was said last, backwards."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = body["messages"][-1]["content"][::-1]
        if "crash" in body["messages"][-1]["content"]:
            self.send_error(400, "no")
            return
        reply = json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def parrot(tmp_path: Path) -> Iterator[Path]:
    """A systems file whose one system is a chat API over real HTTP."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Parrot)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    file = tmp_path / "systems.toml"
    file.write_text(
        '[systems.parrot]\nkind = "openai"\nmodel = "parrot"\n'
        f'base_url = "http://127.0.0.1:{server.server_port}/v1"\n',
        encoding="utf-8",
    )
    yield file
    server.shutdown()


@pytest.fixture
def bots() -> Iterator[Callable[[Database, Path], None]]:
    """Lets the bots of a systems file speak, in a thread, until the test ends."""
    stopping = threading.Event()
    threads = []

    def start(database: Database, file: Path) -> None:
        systems = {name: spec() for name, spec in load_systems(file).items()}
        runner = BotRunner(ChatLog(database), systems)
        threads.append(threading.Thread(target=runner.run, args=(stopping,), daemon=True))
        threads[-1].start()

    yield start
    stopping.set()
    for thread in threads:
        thread.join(10)


@pytest.mark.parametrize("word", ["hello", "crash"])
def test_a_bot_over_http(
    word: str, tmp_path: Path, chat_server: Callable[[str], Any], parrot: Path, bots: Callable[..., None]
) -> None:
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    database = put(url, WITH_BOT.format(fewest=2))
    bots(database, parrot)
    server = chat_server(url)
    ann = Guest(server.url).connect()
    ann.wait(is_talking)
    ann.say(word)
    if word == "crash":
        ann.wait(lambda view: view["state"] == "out")
        page = ann.http.get("/study").text
        assert "because the bot could not go on" in page
        assert "Your completion code:" in page
        (held,) = conversations_of(server.database)
        assert (held.ending, held.bots[0].exit) == ("failed", "bot failed")
        return
    ann.wait(is_my_turn)
    assert ann.said == ["hello", "olleh"]
    assert ann.view["partner"]["is_bot"]
    ann.ask(type="submit")
    ann.ask(type="answer", place="", answers={"rating": "4"})
    (held,) = conversations_of(server.database)
    assert held.dialogue.speakers == ("user", "parrot")
    assert {k: held.dialogue.labels[k] for k in ("system", "rating")} == {"system": "parrot", "rating": 4.0}
    (row,) = ratings_of(server.database)
    assert (row.system, row.value, row.kind, row.item) == ("parrot", 4.0, "user", "1")


def test_nothing_about_a_system_leaves_the_server(tmp_path: Path, chat_server: Callable[[str], Any]) -> None:
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    text = WITH_BOT.format(fewest=3).replace('["parrot"]', '["parrot", "magpie"]\ncompare = "side by side"')
    database = put(url, text)
    server = chat_server(url)
    ann = Guest(server.url).connect()
    ann.wait(is_talking)
    ann.say("hello")
    log = ChatLog(database)
    for bot in log.host.lobby.rooms[1].bots:
        log.run([lambda host, now, bot=bot: host.reply(1, bot, 1, f"I am number {len(bot)}", now)])
    ann.wait(lambda view: view["n_turns"] == 3)
    assert [turn["side"] for turn in ann.view["turns"]] in ([1], [0], [0, 1])
    shown = ann.http.get("/study").text + json.dumps(ann.view)
    assert "parrot" not in shown
    assert "magpie" not in shown
    assert len(list(conversations_of(database))) == 2
    database.close()


def test_the_rater_s_row_follows_the_log(server: Any) -> None:
    ann, bob = meet(server.url)
    ann.say("one")
    bob.http.post("/study/leave", data={"csrf": bob.token})
    with server.database.reading() as connection:
        states = set(connection.execute(select(rater.c.state)).scalars())
        n_events = connection.execute(select(func.count()).select_from(chat_event)).scalar_one()
    assert states == {"working", "withdrawn"}
    assert n_events >= 8


def test_the_admin_sees_conversations_and_pay(server: Any) -> None:
    ann, bob = meet(server.url)
    ann.say("one")
    bob.wait(lambda view: view["n_turns"] == 1)
    ann.http.post("/study/leave", data={"csrf": ann.token})
    with httpx.Client(base_url=server.url, follow_redirects=True, timeout=30) as admin:
        assert admin.get("/admin/conversations").status_code == 401
        assert admin.get("/admin/people.jsonl").status_code == 401
        token = arm_token(server.database)
        page = admin.post("/admin/login", data={"token": token}).text
        assert "Conversations, verdicts and pay" in page
        page = admin.get("/admin/conversations").text
        assert "left after 1 message" in page
        lines = admin.get("/admin/people.jsonl").text.splitlines()
        assert sorted(json.loads(line)["pay"] for line in lines) == ["open", "partial"]
        assert len(admin.get("/admin/conversations.jsonl").text.splitlines()) == 1


# --- what is told and not kept ------------------------------------------------------------------------------


class Slow:
    """A system that says one word at a time, when it is told to go on."""

    name = "parrot"

    def __init__(self) -> None:
        self.go_on = threading.Semaphore(0)

    def reply(self, requests: Any) -> list[Reply]:
        raise AssertionError("it can stream")

    def stream(self, request: Any, say: Callable[[str], None]) -> Reply:
        for piece in ("one", " two", " three"):
            say(piece)
            assert self.go_on.acquire(timeout=20)
        return Reply("one two three")


def test_a_bot_s_words_reach_the_page_before_its_message_does(
    database_url: str, chat_server: Callable[[str], Any]
) -> None:
    database = put(database_url, WITH_BOT.format(fewest=2))
    server, system, stopping = chat_server(database_url), Slow(), threading.Event()
    runner = threading.Thread(target=BotRunner(ChatLog(database), {"parrot": system}).run, args=(stopping,))
    runner.start()
    try:
        ann = Guest(server.url).connect()
        ann.wait(is_talking)
        ann.say("hello")
        seen = [ann.receive_kind("piece")]
        system.go_on.release()
        seen.append(ann.receive_kind("piece"))
        assert [(piece["text"], piece["turns"], piece["side"]) for piece in seen] == [
            ("one", 1, 0),
            ("one two", 1, 0),
        ]
        assert ann.view["n_turns"] == 1
        ann.room = ann.turns = 0  # a reload in the middle: the bot is still typing
        ann.view = {}
        ann.connect().wait(is_talking)
        assert ann.view["partner"]["is_typing"]
        assert ann.view["n_turns"] == 1
        system.go_on.release(5)
        ann.wait(is_my_turn)
        assert ann.said[-1] == "one two three"
        assert [event.body["text"] for event in read_events_of(database) if event.kind == "said"] == [
            "hello",
            "one two three",
        ]
    finally:
        stopping.set()
        system.go_on.release(100)
        runner.join(10)
        database.close()


def test_typing_and_delivered_marks_cross_processes(
    database_url: str, chat_server: Callable[[str], Any]
) -> None:
    put(database_url, PLAIN.format(fewest=4)).close()
    first, second = chat_server(database_url), chat_server(database_url)
    ann, bob = Guest(first.url).connect(), Guest(first.url)
    bob.url = second.url
    bob.connect()
    ann.wait(lambda view: view["state"] in ("invited", "talking"))
    bob.wait(is_talking)
    ann.wait(is_talking)
    ann.send(type="typing", turns=0)
    assert bob.receive_kind("typing")["turns"] == 0
    ann.say("hello")
    bob.wait(is_my_turn)
    bob.send(type="got", turns=1)
    assert ann.receive_kind("got")["turns"] == 1


def test_a_bot_that_passes_for_a_person_types_unseen(tmp_path: Path) -> None:
    text = WITH_BOT.format(fewest=2).replace("[partners]\n", "[partners]\ndisclosed = false\n")
    database = put(f"sqlite:///{tmp_path / 'chat.db'}", text)
    log = ChatLog(database)
    start = [lambda host, now: host.join("ann", now), lambda host, now: host.say_ready("ann", now)]
    log.run([*start, lambda host, now: host.say("ann", "1", "hello", now)])
    system = Slow()
    runner = BotRunner(ChatLog(database), {"parrot": system})
    for _ in range(5):
        runner.step()
    log.look()
    assert log.take_signals() == []
    system.go_on.release(10)
    database.close()


class Reader:
    """A system that says the sentence it was given."""

    name = "parrot"
    takes = frozenset({"knowledge"})

    def reply(self, requests: Any) -> list[Reply]:
        return [Reply(f"I read: {request.knowledge}") for request in requests]


def test_a_bot_is_given_its_side_of_the_reading_set(tmp_path: Path) -> None:
    database = put(
        f"sqlite:///{tmp_path / 'chat.db'}", WITH_BOT.format(fewest=2) + '[knowledge]\nbase = "sample"\n'
    )
    log = ChatLog(database)
    plan = read_plan(database, 0)
    own = candidates_of(next(s for s in plan.knowledge or () if s.id.endswith("-agent_2"))).sentences
    start = [lambda host, now: host.join("ann", now), lambda host, now: host.say_ready("ann", now)]
    log.run([*start, lambda host, now: host.say("ann", "1", own[5], now)])
    runner = BotRunner(ChatLog(database), {"parrot": Reader()}, clock=lambda: log.clock() + 1000)
    while len(next(conversations_of(database)).dialogue.turns) < 2:
        runner.step()
    (held,) = conversations_of(database)
    reply = held.dialogue.turns[1]
    assert reply.knowledge == (own[5],)
    assert reply.text == f"I read: {own[5]}"
    database.close()


def test_why_a_bot_failed_is_for_the_owner_alone(tmp_path: Path) -> None:
    database = put(f"sqlite:///{tmp_path / 'chat.db'}", WITH_BOT.format(fewest=2))
    log = ChatLog(database)
    start = [lambda host, now: host.join("ann", now), lambda host, now: host.say_ready("ann", now)]
    log.run([*start, lambda host, now: host.fail(1, "parrot", "parrot-7b is out of memory", now)])
    assert log.host.lobby.visitors["ann"].reason == "the conversation ended because the bot could not go on"
    (held,) = conversations_of(database)
    assert held.dialogue.labels["failure"] == "parrot-7b is out of memory"
    database.close()
