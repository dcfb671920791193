"""Signatures, cookies, origins, limits and headers, each by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from palaver.server.refusal import Refusal, clean
from palaver.server.security import (
    RateLimit,
    Signer,
    check_origin,
    client_address,
    cookie,
    is_own_name,
    mturk_submit,
    security_headers,
)
from palaver.server.settings import Settings

SIGNER = Signer("a" * 64)
PLAIN = Settings(database="sqlite://")
TLS = Settings(database="sqlite://", public_url="https://h/study-1/")


@given(st.text(min_size=1).filter(lambda t: t.isascii()), st.sampled_from(["rater", "admin"]))
def test_a_signed_text_is_read_back_and_only_for_its_purpose(text: str, purpose: str) -> None:
    token = SIGNER.sign(purpose, text)
    assert SIGNER.read(purpose, token) == text
    assert SIGNER.read("other", token) is None
    assert Signer("b" * 64).read(purpose, token) is None


@given(st.text())
def test_no_made_up_token_is_read(token: str) -> None:
    assert SIGNER.read("rater", token) is None


def test_a_changed_token_is_not_read() -> None:
    token = SIGNER.sign("rater", "abc")
    for place in range(len(token)):
        other = "0" if token[place] != "0" else "1"
        assert SIGNER.read("rater", token[:place] + other + token[place + 1 :]) is None


def test_a_form_token_belongs_to_one_session() -> None:
    SIGNER.check_csrf("me", SIGNER.csrf("me"))
    for token in (None, "", "ü", SIGNER.csrf("you"), SIGNER.mac("rater", "me")):
        with pytest.raises(Refusal) as refused:
            SIGNER.check_csrf("me", token)
        assert refused.value.status == 403


def test_cookies_say_how_careful_they_are() -> None:
    assert cookie("c", "v", PLAIN) == "c=v; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax"
    assert cookie("c", "v", PLAIN, framed=True).endswith("SameSite=Lax"), "None needs TLS"
    assert cookie("c", "v", TLS).endswith("Path=/study-1; Max-Age=2592000; HttpOnly; SameSite=Lax; Secure")
    assert cookie("c", "v", TLS, framed=True).endswith("SameSite=None; Secure; Partitioned")


def request(**headers: str) -> Request:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "scheme": "http", "path": "/", "headers": raw, "query_string": b""}
    return Request({**scope, "server": ("h", 80)})


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "https://h:8000",
        "http://h",
        "http://h:8000.evil.example",
        "null",
        "http://h:80000",
    ],
)
def test_another_origin_is_refused(origin: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_origin(request(host="h:8000", origin=origin), PLAIN)
    assert refused.value.status == 403


def test_our_own_origin_is_accepted() -> None:
    check_origin(request(host="h:8000", origin="http://h:8000"), PLAIN)
    check_origin(request(host="h", origin="https://h"), TLS)
    check_origin(request(host="127.0.0.1:8000", origin="https://h"), TLS)  # a proxy's own name for us
    check_origin(request(host="h"), PLAIN)
    with pytest.raises(Refusal):
        check_origin(request(host="h", origin="http://h"), TLS)
    with pytest.raises(Refusal):
        check_origin(request(host="h", sec_fetch_site="cross-site"), PLAIN)


@pytest.mark.parametrize(
    ("name", "is_ours"),
    [
        ("h", True),
        ("h:8000", True),
        ("H", True),
        ("localhost:8000", True),
        ("127.0.0.1", True),
        ("[::1]:8000", True),
        ("192.168.1.7:8000", True),
        ("evil.example", False),
        ("h.evil.example", False),
        ("localhost@evil.example", False),
        ("evil.example/localhost", False),
        ("h:x", False),
        ("[", False),
        ("", False),
    ],
)
def test_names_of_our_own(name: str, is_ours: bool) -> None:
    assert is_own_name(name, TLS) is is_ours


def forwarded(peer: str, **headers: str) -> str:
    coming = request(**headers)
    coming.scope["client"] = (peer, 5)
    return client_address(coming, TLS)


def test_only_a_proxy_that_was_set_up_for_us_names_addresses() -> None:
    said = {"x_forwarded_for": "6.6.6.6, 8.8.4.4"}
    assert forwarded("127.0.0.1", host="h", **said) == "8.8.4.4", "the last one is the proxy's own"
    assert forwarded("127.0.0.1", host="127.0.0.1:8000", **said) == "", (
        "nginx as it comes: the client's words"
    )
    assert forwarded("127.0.0.1", host="h", x_forwarded_for="nonsense") == ""
    assert forwarded("8.8.8.8", host="h", **said) == "8.8.8.8", "no proxy of ours"
    coming = request(host="h", **said)
    coming.scope["client"] = ("127.0.0.1", 5)
    assert client_address(coming, PLAIN) == "127.0.0.1", "no proxy was spoken of"


@pytest.mark.parametrize(
    "url",
    ["h", "ftp://h", "https://", "https://h/a b", "https://u@h", "https://h/?q", "https://h:99999", "//h"],
)
def test_public_addresses_are_checked(url: str) -> None:
    with pytest.raises(ValueError, match="expected an address"):
        Settings(database="sqlite://", public_url=url)


def test_all_follows_from_the_public_address() -> None:
    assert (TLS.public_url, TLS.origin, TLS.root_path, TLS.is_secure) == (
        "https://h/study-1",
        "https://h",
        "/study-1",
        True,
    )
    odd = Settings(database="sqlite://", public_url="http://[2001:DB8::1]:80/")
    assert (odd.origin, odd.root_path, odd.is_secure) == ("http://[2001:db8::1]", "", False)


def test_the_limit_slides() -> None:
    now = 0.0
    limit = RateLimit(2, 10, lambda: now)
    assert [limit.allow("a") for _ in range(3)] == [True, True, False]
    assert limit.allow("b"), "others are not meant"
    now = 9.9
    assert not limit.allow("a")
    now = 10.0
    assert limit.allow("a")


def test_the_limit_forgets_addresses_rather_than_fill_the_memory() -> None:
    limit = RateLimit(1, 10, lambda: 0.0)
    for n in range(20_001):
        limit.allow(str(n))
    assert len(limit._seen) <= RateLimit._MOST_KEYS


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_no_database_takes_is_refused(text: str) -> None:
    with pytest.raises(Refusal) as refused:
        clean(text)
    assert refused.value.status == 422


@pytest.mark.parametrize(
    ("address", "target"),
    [
        ("https://www.mturk.com", "https://www.mturk.com/mturk/externalSubmit"),
        ("https://workersandbox.mturk.com/", "https://workersandbox.mturk.com/mturk/externalSubmit"),
        ("http://www.mturk.com", None),
        ("https://www.mturk.com.evil.example", None),
        ("https://evilmturk.com", None),
        ("https://www.mturk.com@evil.example", None),
        ("https://evil.example\\.mturk.com", None),
        ("https://www.mturk.com:8443", None),
        ("https://www.mturk.com:99999999", None),
        ("https://[", None),
        ("javascript:alert(1)//.mturk.com", None),
        ("", None),
    ],
)
def test_answers_go_back_to_mturk_only(address: str, target: str | None) -> None:
    assert mturk_submit({"turkSubmitTo": address}) == target


def test_the_policy_allows_nothing_inline_and_no_frame() -> None:
    policy = security_headers()["content-security-policy"]
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "mturk" not in policy
    framed = security_headers(framed=True)
    assert "frame-ancestors https://*.mturk.com" in framed["content-security-policy"]
    assert "form-action 'self' https://*.mturk.com" in framed["content-security-policy"]
    assert "x-frame-options" not in framed
    assert "strict-transport-security" not in framed
    assert "max-age=" in security_headers(secure=True)["strict-transport-security"]
