"""A JSON server: who is asked again, who is refused, and the key that nobody sees. See also test_openai."""

from __future__ import annotations

import functools
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from palaver import http
from palaver.errors import UserError
from palaver.http import JsonServer, Limits, TryAgain, read_key

httpx = pytest.importorskip("httpx")
Server = Callable[..., JsonServer]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server that answers with the given statuses, then with what it was asked."""
    monkeypatch.setattr(http, "_FIRST_PAUSE", 0.001)
    monkeypatch.setenv("SECRET_KEY", "sesame")

    def build(*statuses: int, **options: Any) -> JsonServer:
        left = list(statuses)

        def answer(request: Any) -> Any:
            if left:
                return httpx.Response(left.pop(0), json={"error": {"message": "sesame is tired"}})
            return httpx.Response(200, content=request.content)

        client = functools.partial(httpx.Client, transport=httpx.MockTransport(answer))
        monkeypatch.setattr(httpx, "Client", client)
        return JsonServer("s", "http://test/v1/", key_variable="SECRET_KEY", **options)

    return build


def number(answer: bytes) -> int:
    return int(json.loads(answer)["n"])


def test_what_may_mend_is_tried_again(server: Server) -> None:
    assert server(429, 503).post("x", {"n": 3}, number) == 3
    with pytest.raises(UserError, match=r"no reply from http://test/v1 after 2 attempts: .*\[key\]"):
        server(500, 500, limits=Limits(retries=1)).post("x", {"n": 3}, number)
    with pytest.raises(UserError, match=r"refuses: status 401: \[key\] is tired") as caught:
        server(401).post("x", {"n": 3}, number)
    assert "SECRET_KEY" in caught.value.hint


def test_an_answer_that_is_none_is_asked_for_again(server: Server) -> None:
    seen: list[bytes] = []

    def moody(answer: bytes) -> int:
        seen.append(answer)
        if len(seen) < 3:
            raise TryAgain("not now")
        return number(answer)

    assert server().post("x", {"n": 1}, moody) == 1
    assert len(seen) == 3


def test_many_come_in_their_order(server: Server) -> None:
    bodies = [{"n": n} for n in range(20)]
    assert server(limits=Limits(connections=3)).post_all("x", bodies, number) == list(range(20))
    with pytest.raises(UserError, match="refuses"):
        server(404).post_all("x", bodies, number)


def test_keys(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_key("s", None) == ""
    assert read_key("s", "SECRET_KEY") == "sesame"
    monkeypatch.delenv("SECRET_KEY")
    assert read_key("s", "SECRET_KEY", needed=False) == ""
    with pytest.raises(UserError, match="SECRET_KEY is not set"):
        read_key("s", "SECRET_KEY")
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(server(key_needed=False))


def test_turns_are_evenly_spaced(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 50.0
    monkeypatch.setattr(http.time, "monotonic", lambda: now)
    spacing = http._Spacing(600)
    assert [spacing.turn() for _ in range(4)] == pytest.approx([0, 0.1, 0.2, 0.3])
    now = 50.35  # the fifth turn is at 50.4
    assert spacing.turn() == pytest.approx(0.05)
    now = 99.0
    assert spacing.turn() == 0, "what was not used is not saved up"
    assert spacing.turn() == pytest.approx(0.1)
    assert http._Spacing(0).turn() == 0
