"""An OpenAI-compatible server that is slow, drops connections, refuses, and talks nonsense."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from palaver import http
from palaver.errors import UserError
from palaver.generation.openai import OpenAISystem
from palaver.generation.options import OpenAIOptions
from palaver.generation.system import stable_key
from palaver.schema import Dialogue, Request

Talk = Callable[..., Dialogue]
KEY = "sk-very-secret-0123"


def completion(text: str | None = "fine", **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": text}, **more}]}


class Server(ThreadingHTTPServer):
    """Answers from a script: (status, body, headers), or "drop", or seconds to dawdle; then always fine."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Any] = []
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()
        self.pause = 0.0

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        server = self.server
        with server.lock:
            server.asked.append(body)
            server.headers.append(dict(self.headers))
            server.times.append(time.monotonic())
            server.at_once += 1
            server.most_at_once = max(server.most_at_once, server.at_once)
            step = server.script.pop(0) if server.script else None
        time.sleep(server.pause)
        with server.lock:
            server.at_once -= 1
        if self.path != "/v1/chat/completions":
            return self.answer(404, b"no such page", {})
        if step == "drop":
            self.close_connection = True
            return self.connection.close()
        if isinstance(step, float):
            return self.dawdle(step)
        if step is None:
            last = body["messages"][-1]["content"]
            step = (200, completion(f"you said {last}"), {})
        status, content, headers = step
        return self.answer(
            status, content if isinstance(content, bytes) else json.dumps(content).encode(), headers
        )

    def answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"content-length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def dawdle(self, seconds: float) -> None:
        """A byte now and then: no single wait is long."""
        self.send_response(200)
        self.send_header("content-length", "1000")
        self.end_headers()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.wfile.write(b" ")
            self.wfile.flush()
            time.sleep(0.02)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(http, "_FIRST_PAUSE", 0.01)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    found = Server()
    thread = threading.Thread(target=found.serve_forever, args=(0.02,))
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def system(server: Server, **options: Any) -> OpenAISystem:
    given = {"kind": "openai", "base_url": server.url, "model": "m", "timeout": 5.0, **options}
    return OpenAISystem("api", OpenAIOptions.model_validate(given))


def test_a_question_and_its_answer(server: Server, talk: Talk) -> None:
    api = system(server, decoding={"temperature": 0.5, "max_length": 30}, extra={"user": "x"})
    dialogue = talk("hi", "hello", "how are you?")
    (reply,) = api.reply([Request(dialogue)])
    assert reply.text == "you said how are you?"
    (asked,) = server.asked
    assert asked == {
        "model": "m",
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "hello"},
            {"role": "user", "content": "how are you?"},
        ],
        "temperature": 0.5,
        "max_tokens": 30,
        "seed": stable_key("d", 3) & 0x7FFFFFFF,
        "user": "x",
    }
    assert "authorization" not in {name.lower() for name in server.headers[0]}


def test_nothing_is_sent_that_nobody_chose(server: Server, talk: Talk) -> None:
    system(server, send_seed=False).reply([Request(talk("hi"))])
    assert set(server.asked[0]) == {"model", "messages"}


def test_what_the_protocol_has_no_word_for_is_said(server: Server) -> None:
    api = system(server, decoding={"beam_size": 5, "no_repeat_ngram": 3, "method": "beam"})
    assert list(api.notes) == ["api: the server is not told about method beam, beam_size, no_repeat_ngram"]
    assert system(server, decoding={"method": "greedy"}).settings["temperature"] == 0


def test_prompt_fields(server: Server, talk: Talk) -> None:
    api = system(server, system_prompt="Be {speaker} ({ocean}). Know: {knowledge}. {{x}}")
    assert api.takes == {"speaker", "ocean", "knowledge"}
    api.reply(
        [Request(talk("hi"), speaker="Joey", ocean=(6.5, 1.0, 2.0, 3.0, 4.0), knowledge="Pizza is flat.")]
    )
    prompt = server.asked[0]["messages"][0]
    assert prompt["role"] == "system"
    assert prompt["content"].startswith("Be Joey (openness 6.5, conscientiousness 1, extraversion 2, ")
    assert prompt["content"].endswith("neuroticism 4). Know: Pizza is flat.. {x}")
    with pytest.raises(UserError, match="needs a speaker"):
        api.reply([Request(talk("hi"))])
    with pytest.raises(UserError, match="api takes no speaker"):
        system(server).reply([Request(talk("hi"), speaker="Joey")])


@pytest.mark.parametrize(
    "trouble",
    [
        (429, {"error": {"message": "slow down"}}, {}),
        (500, b"oops", {}),
        (503, b"", {}),
        "drop",
        (200, b"{not json", {}),
        (200, {"choices": []}, {}),
        (200, {"choices": [{"message": {}}]}, {}),
        (200, b"[]", {}),
        (200, {"choices": [3]}, {}),
    ],
    ids=str,
)
def test_trouble_that_passes(trouble: Any, server: Server, talk: Talk) -> None:
    server.script = [trouble, trouble]
    assert system(server).reply([Request(talk("hi"))])[0].text == "you said hi"
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ((429, {"error": {"message": "slow\ndown"}}, {}), "after 3 attempts: status 429: slow down"),
        ((500, b"<html>oops</html>", {}), "status 500: <html>oops</html>"),
        ("drop", "the connection failed"),
        ((200, b"{not json", {}), "the answer is not JSON"),
        ((200, {"choices": []}, {}), "the answer has no choices"),
        ((200, {"choices": [{"message": {"content": 3}}]}, {}), "has no text"),
    ],
    ids=str,
)
def test_trouble_that_stays(trouble: Any, said: str, server: Server, talk: Talk) -> None:
    server.script = [trouble] * 3
    with pytest.raises(UserError, match="no reply from") as caught:
        system(server, retries=2).reply([Request(talk("hi"))])
    assert said in caught.value.message
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("status", "word"), [(400, "no such model"), (404, "no such model"), (418, "no such")]
)
def test_refusals_are_not_repeated(status: int, word: str, server: Server, talk: Talk) -> None:
    server.script = [(status, {"error": {"message": "no such model"}}, {})]
    with pytest.raises(UserError, match=f"refuses: status {status}: {word}"):
        system(server).reply([Request(talk("hi"))])
    assert len(server.asked) == 1


def test_a_slow_answer_is_given_up(server: Server, talk: Talk) -> None:
    server.script = [1.5]
    began = time.monotonic()
    api = system(server, timeout=0.3)
    assert api.reply([Request(talk("hi"))])[0].text == "you said hi"
    assert 0.3 <= time.monotonic() - began < 1.2
    server.script = [1.5]
    with pytest.raises(UserError, match="no answer within 0.3 seconds"):
        system(server, timeout=0.3, retries=0).reply([Request(talk("hi"))])


def test_nobody_there(talk: Talk, server: Server) -> None:
    nowhere = system(server, base_url="http://127.0.0.1:9/v1", retries=1)
    with pytest.raises(UserError, match="after 2 attempts: the connection failed"):
        nowhere.reply([Request(talk("hi"))])


def test_retry_after_is_honoured(server: Server, talk: Talk) -> None:
    server.script = [(429, b"", {"retry-after": "0.3"})]
    system(server).reply([Request(talk("hi"))])
    assert 0.3 <= server.times[1] - server.times[0] < 1
    server.script = [(503, b"", {"retry-after": formatdate(time.time() - 60)})]  # a date, gone by
    system(server).reply([Request(talk("hi"))])
    server.script = [(503, b"", {"retry-after": "soon"})]
    system(server).reply([Request(talk("hi"))])
    for header in ("300", formatdate(time.time() + 400)):
        server.script = [(429, b"", {"retry-after": header})]
        with pytest.raises(UserError, match="asks to wait [34]"):
            system(server, max_wait=100.0).reply([Request(talk("hi"))])


def test_many_at_once_in_order(server: Server, talk: Talk) -> None:
    server.pause = 0.1
    requests = [Request(talk(str(i), id=str(i))) for i in range(9)]
    replies = system(server, concurrency=3).reply(requests)
    assert [r.text for r in replies] == [f"you said {i}" for i in range(9)]
    assert server.most_at_once == 3


def test_one_failure_ends_the_others(server: Server, talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_FIRST_PAUSE", 20.0)
    server.script = ["drop", (401, {"error": "bad key"}, {})]
    began = time.monotonic()
    with pytest.raises(UserError, match="refuses: status 401"):
        system(server, concurrency=2).reply([Request(talk(str(i), id=str(i))) for i in range(2)])
    assert time.monotonic() - began < 5


def test_the_rate_limit(server: Server, talk: Talk) -> None:
    api = system(server, requests_per_minute=600, concurrency=4)
    began = time.monotonic()
    api.reply([Request(talk(str(i), id=str(i))) for i in range(4)])
    assert all(at - began >= 0.1 * place for place, at in enumerate(sorted(server.times)))


def test_logprobs(server: Server, talk: Talk) -> None:
    tokens = {"content": [{"token": "a", "logprob": -0.5}, {"token": "b", "logprob": -1.25}]}
    server.script = [
        (200, completion("ab", logprobs=tokens), {}),
        (200, {**completion("ab", logprobs=None), "usage": {"completion_tokens": 7}}, {}),
        (200, completion("ab", logprobs={"content": [{"token": "a"}]}), {}),
    ]
    api = system(server, logprobs=True)
    found = [api.reply([Request(talk("hi"))])[0] for _ in range(3)]
    assert [(r.logprob, r.n_tokens) for r in found] == [(-1.75, 2), (None, 7), (None, None)]
    assert server.asked[0]["logprobs"] is True


def test_odd_contents(server: Server, talk: Talk) -> None:
    parts = [{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]
    refusal = {"choices": [{"message": {"content": None, "refusal": "no"}}]}
    server.script = [(200, completion(parts), {}), (200, refusal, {}), (200, completion("\ud800 x "), {})]  # type: ignore[arg-type]
    api = system(server)
    assert [api.reply([Request(talk("hi"))])[0].text for _ in range(3)] == ["in parts", "no", "? x"]


def test_the_key_is_sent_and_never_shown(
    server: Server, talk: Talk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    with pytest.raises(UserError, match="variable MY_KEY is not set"):
        system(server, api_key_env="MY_KEY")
    monkeypatch.setenv("MY_KEY", f" {KEY}\n")
    api = system(server, api_key_env="MY_KEY")
    server.script = [(401, {"error": {"message": f"Incorrect API key: {KEY}"}}, {})]
    with pytest.raises(UserError, match=r"Incorrect API key: \[key\]") as caught:
        api.reply([Request(talk("hi"))])
    assert "MY_KEY" in caught.value.hint
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    server.script = [(500, KEY.encode(), {})] * 5
    with pytest.raises(UserError) as again:
        api.reply([Request(talk("hi"))])
    shown = f"{api!r} {api.settings} {caught.value} {again.value} {again.value.__cause__} {caplog.text}"
    assert KEY not in shown
    with pytest.raises(TypeError, match="pickled"):
        __import__("pickle").dumps(api)
    monkeypatch.setenv("MY_KEY", "ключ")
    with pytest.raises(UserError, match="no header can carry") as odd:
        system(server, api_key_env="MY_KEY")
    assert "ключ" not in str(odd.value)


def events(*pieces: Any, end: bytes = b"data: [DONE]\n\n") -> tuple[int, bytes, dict[str, str]]:
    """An answer in server-sent events; a piece is text, or a whole event."""
    wrapped = [
        piece if not isinstance(piece, str) else {"choices": [{"delta": {"content": piece}}]}
        for piece in pieces
    ]
    content = b": hello\n\n" + b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in wrapped)
    return 200, content + end, {"content-type": "text/event-stream"}


def test_a_reply_in_events(server: Server, talk: Talk) -> None:
    scores = {"content": [{"token": "a", "logprob": -0.5}]}
    scored = {"choices": [{"delta": {"content": "a"}, "logprobs": scores}]}
    usage = {"choices": [], "usage": {"completion_tokens": 3}}
    server.script = [
        events({"choices": [{"delta": {"role": "assistant", "content": ""}}]}, " Oh, ", "a ", "café ", usage),
        events(scored, scored),
        (200, completion("whole"), {}),
        events("no end", end=b""),
    ]
    api = system(server)
    told: list[list[str]] = []
    replies = []
    for _ in range(4):
        told.append([])
        replies.append(api.stream(Request(talk("hi")), told[-1].append))
    assert told == [["Oh,", " a", " café"], ["a", "a"], ["whole"], ["no end"]]
    assert [reply.text for reply in replies] == ["Oh, a café", "aa", "whole", "no end"]
    assert [(r.logprob, r.n_tokens) for r in replies[:2]] == [(None, 3), (-1.0, 2)]
    assert server.asked[0]["stream"] is True


def test_events_that_break_off(server: Server, talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    api = system(server, api_key_env="MY_KEY")
    said: list[str] = []
    server.script = ["drop", (503, b"busy", {}), events("fine")]
    assert api.stream(Request(talk("hi")), said.append).text == "fine"  # nothing was heard before
    assert said == ["fine"]
    for event, why in [
        ({"error": {"message": f"no {KEY}"}}, r"broke off: no \[key\]"),
        ([1], "not part of a chat"),
    ]:
        server.script = [events("be", event)]
        with pytest.raises(UserError, match=why):
            api.stream(Request(talk("hi")), said.append)
    assert said == ["fine", "be", "be"]
    assert len(server.asked) == 5


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("decoding", "said"),
    [
        (
            {"max_length": 7},
            "api stops a reply after 7 tokens, whole or not; a larger max_length lets it go on",
        ),
        ({}, "api: the server stopped a reply before its end; a larger max_length may let it go on"),
    ],
)
def test_a_reply_that_was_cut_is_said_as_that_of_a_checkpoint(
    decoding: dict[str, Any], said: str, streamed: bool, server: Server, talk: Talk
) -> None:
    events = b"".join(
        b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
        for choice in (
            {"delta": {"content": "it goes"}, "finish_reason": None},
            {"delta": {}, "finish_reason": "length"},
        )
    )
    whole = completion("it goes", finish_reason="length")
    server.script = [(200, events if streamed else whole, {}), (200, completion(finish_reason="stop"), {})]
    api = system(server, decoding=decoding)
    request = Request(talk("hi"))
    reply = api.stream(request, lambda piece: None) if streamed else api.reply([request])[0]
    assert reply.text == "it goes"
    assert tuple(api.notes) == (said,)
    whole_one = system(server, decoding=decoding)
    whole_one.reply([request])
    assert not len(whole_one.notes)
