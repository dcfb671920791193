"""Prolific's secured links: only what Prolific has signed comes in, and it needs nobody's leave to go on."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from palaver.errors import UserError
from palaver.server.app import create_app
from palaver.server.prolific import ProlificKeys, PublicKey
from palaver.server.refusal import Refusal
from palaver.server.settings import Settings
from palaver.server.tables import rater
from palaver.studies.design import preset_text

NOW = 1_700_000_000.0
WHO = {"PROLIFIC_PID": "p1", "STUDY_ID": "st", "SESSION_ID": "s1"}
MODULUS_BY_OPENSSL = (
    "u4Dy_y1nnFyRFPK-arh3PfS__8-UbnBaaeC34FGhnSMVC92aSceTrDqgMo80j0s_FqvymkMT-tX5EcPsO46Av53uCL-I5ISp"
    "S6Et2QUyGVGACKdvRbXHJqNCMXvcTAH16MBrFz3d_NtXKeOtOuyYQEjQ_yNUyXsNFiuJe5JlwbjF55sPpH-6krWGckajxCnK"
    "ThSzqeWyViMdxsBpFoAdHZY_yVnM90_6hIQ3JVcwgGZrvTSAk-duyMLGNyh4JzsWgcBd6DCs_MxRSdlLvWPKeD9hXrVN6z4f"
    "ea8KbvOlaA_iXV16r4VhU4O-Oj9Bx0aX3yhcv3NyA47cQ444_Q37Zw"
)
TOKEN_BY_OPENSSL = (
    "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImJ5LW9wZW5zc2wifQ.eyJpc3MiOiJodHRwczovL3d3dy5wcm9sa"
    "WZpYy5jb20iLCJhdWQiOiJodHRwczovL2xhYi5leGFtcGxlLm9yZy9zdHVkeS0xLyIsInN1YiI6InMxIiwiZXhwIjoxNzAwM"
    "DAwMzAwLCJwcm9saWZpYyI6eyJQUk9MSUZJQ19QSUQiOiJwMSIsIlNUVURZX0lEIjoic3QiLCJTRVNTSU9OX0lEIjoiczEiL"
    "CJ3b3Jrc3BhY2VfaWQiOiJ3In19.jWYl26-ADt2IZy1f5a6O1isU0p6SvC-mgTMjuqS92PY1-kiwYU_oi23eku0fvVK_J_Bn"
    "SIHUrDfi1AkGOh7LN-8BBzD6tWB2wLoWCgvArzRElb_cJwWDhSO7BZEJ4uZS1fNedycgpG1y9-z6MVKcDJtAHKMS14Bq-qk6"
    "Lq1tlY0ipQ3I3QOf5VEDQhOY_jT07dct9be5u0RJhVfQl0Uh22S2tjwQ8Hb0PiB7RXtip1zF7iS5p_1vPvJ9W6fcrmGyh9Er"
    "XF2P0OMhelWq3hpA1BthFCvM-94BTKH7F3iup93GrO9lpsdVr39oNHoJF4RN497nHkUj4m2DuuNLmJhlPQ"
)
"""Signed with `openssl dgst -sha256 -sign`; for `WHO`, lab.example.org, until 300 seconds after `NOW`."""

P, Q, E = 2**1279 - 1, 2**2203 - 1, 65537
"""Two Mersenne primes: a key that needs no search, and protects nothing."""
KEY = PublicKey(P * Q, E)


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value: int) -> str:
    return encode(value.to_bytes((value.bit_length() + 7) // 8))


def root(value: int) -> int:
    """The `E`th root modulo `P * Q`: one modulo each prime, put together (four times as fast as at once)."""
    of_p, of_q = (pow(value, pow(E, -1, prime - 1), prime) for prime in (P, Q))
    return of_q + Q * ((of_p - of_q) * pow(Q, -1, P) % P)


def sign(message: bytes) -> bytes:
    length = (KEY.modulus.bit_length() + 7) // 8
    digest = bytes.fromhex("3031300d060960864801650304020105000420") + hashlib.sha256(message).digest()
    padded = b"\x00\x01" + b"\xff" * (length - len(digest) - 3) + b"\x00" + digest
    return root(int.from_bytes(padded)).to_bytes(length)


def token(header: dict[str, Any] | None = None, **claims: Any) -> str:
    content = {"aud": "lab.example.org", "exp": NOW + 300, "prolific": WHO, **claims}
    head = {"alg": "RS256", "kid": "ours", **(header or {})}
    signed = ".".join(encode(json.dumps(part).encode()) for part in (head, content))
    return f"{signed}.{encode(sign(signed.encode()))}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "keys.json"
    ours = {
        "kty": "RSA",
        "kid": "ours",
        "alg": "RS256",
        "use": "sig",
        "n": number(KEY.modulus),
        "e": number(E),
    }
    path.write_text(
        json.dumps({"keys": [ours, {**ours, "kid": "by-openssl", "n": MODULUS_BY_OPENSSL}, {"kty": "EC"}]})
    )
    return path


@pytest.fixture
def keys(file: Path) -> ProlificKeys:
    return ProlificKeys(file)


def test_a_token_of_another_program(keys: ProlificKeys) -> None:
    for link in ({}, WHO):
        assert keys.identify({**link, "prolific_token": TOKEN_BY_OPENSSL}, "lab.example.org", NOW) == WHO


@pytest.mark.parametrize(
    "audience",
    ["lab.example.org", "https://LAB.example.org/s/?a=1", ["other.org", "http://lab.example.org:80"]],
)
def test_audiences(keys: ProlificKeys, audience: Any) -> None:
    assert keys.identify({"prolific_token": token(aud=audience)}, "lab.example.org", NOW) == WHO


GOOD = token()
HEAD, CLAIMS, SIGNATURE = GOOD.split(".")


@pytest.mark.parametrize(
    ("link", "says"),
    [
        (WHO, "takes people from Prolific"),
        ({"prolific_token": ""}, "takes people"),
        ({"prolific_token": "ü.ü.ü"}, "takes people"),
        ({"prolific_token": "x" * 100_000}, "takes people"),
        ({"prolific_token": f"{encode(b'[' * 3000)}.{CLAIMS}.{SIGNATURE}"}, "takes people"),
        ({"prolific_token": f"{HEAD}.{CLAIMS}"}, "takes people"),
        ({"prolific_token": f"{HEAD}.{CLAIMS}."}, "takes people"),
        ({"prolific_token": f"{HEAD}.{CLAIMS}.{SIGNATURE[:-8]}"}, "takes people"),
        ({"prolific_token": f"{HEAD}.{CLAIMS}.{number(KEY.modulus + 1)}"}, "takes people"),
        (
            {"prolific_token": f"{HEAD}.{encode(json.dumps({'exp': 9e9}).encode())}.{SIGNATURE}"},
            "takes people",
        ),
        ({"prolific_token": token({"alg": "none"})}, "takes people"),
        ({"prolific_token": token({"alg": "HS256"})}, "takes people"),
        ({"prolific_token": token({"kid": "by-openssl"})}, "takes people"),
        ({"prolific_token": token({"kid": "unknown"})}, "takes people"),
        ({"prolific_token": token(exp=NOW - 61)}, "too old"),
        ({"prolific_token": token(exp=None)}, "too old"),
        ({"prolific_token": token(aud="evil.example")}, "another site"),
        ({"prolific_token": token(aud="https://[")}, "another site"),
        ({"prolific_token": token(aud=None)}, "another site"),
        ({"prolific_token": token(prolific={"STUDY_ID": "st"})}, "does not say who"),
        ({"prolific_token": token(prolific={"PROLIFIC_PID": ["p1"]})}, "does not say who"),
        ({"prolific_token": token(prolific="p1")}, "does not say who"),
        ({"prolific_token": GOOD, "PROLIFIC_PID": "p2"}, "was changed"),
        ({"prolific_token": GOOD, **WHO, "SESSION_ID": "s2"}, "was changed"),
        ({"prolific_token": token(prolific={"PROLIFIC_PID": "p1"}), **WHO}, "was changed"),
    ],
)
def test_what_is_not_signed_is_refused(keys: ProlificKeys, link: dict[str, str], says: str) -> None:
    with pytest.raises(Refusal, match=says) as refused:
        keys.identify(link, "lab.example.org", NOW)
    assert refused.value.status == 403


def test_every_bit_of_a_signature_counts(keys: ProlificKeys) -> None:
    signature = sign(b"message")
    assert KEY.verifies(b"message", signature)
    assert not KEY.verifies(b"Message", signature)
    for place in range(0, len(signature), 61):
        changed = bytearray(signature)
        changed[place] ^= 1
        assert not KEY.verifies(b"message", bytes(changed))


def test_new_keys_are_read_while_the_study_runs(file: Path, keys: ProlificKeys) -> None:
    text = file.read_text()
    for number_of_write, content in enumerate((text.replace('"ours"', '"newer"'), "{ half a fi"), start=1):
        file.write_text(content)
        os.utime(file, ns=(0, number_of_write))
        with pytest.raises(Refusal):
            keys.identify({"prolific_token": token()}, "lab.example.org", NOW)
        assert keys.identify({"prolific_token": token({"kid": "newer"})}, "lab.example.org", NOW) == WHO


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"keys": []}', '{"keys": [{"kty": "RSA", "kid": "k", "n": "AQAB", "e": "AQAB"}]}'],
)
def test_a_file_without_keys(content: str, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    with pytest.raises(UserError, match="cannot be read"):
        ProlificKeys(path)
    path.write_text(content)
    with pytest.raises(UserError, match="no keys of Prolific's"):
        ProlificKeys(path)


# --- at the door --------------------------------------------------------------------------------------------


@pytest.fixture
def door(file: Path, tmp_path: Path) -> Iterator[TestClient]:
    study = tmp_path / "study.toml"
    study.write_text(preset_text("likert"))
    settings = Settings(
        study_file=study,
        database=f"sqlite:///{tmp_path / 'study.db'}",
        public_url="https://lab.example.org",
        prolific_keys=file,
    )
    app = create_app(settings)
    app.state.site.study_state.clock = lambda: NOW
    with TestClient(app, base_url="https://lab.example.org") as client:
        yield client


def people(client: TestClient) -> list[str | None]:
    with client.app.state.site.study_state.database.reading() as connection:  # type: ignore[attr-defined]
        return list(connection.execute(select(rater.c.external)).scalars())


def test_only_signed_people_come_in(door: TestClient) -> None:
    for link in ("/", "/?PROLIFIC_PID=p1", "/?workerId=w", f"/?PROLIFIC_PID=p2&prolific_token={GOOD}"):
        reply = door.get(link)
        assert (reply.status_code, "Prolific" in reply.text) == (403, True)
    assert people(door) == []
    assert door.get("/", params={**WHO, "prolific_token": GOOD}).status_code == 200
    assert people(door) == ["p1"]
    assert "token" not in str(door.get("/study").url)
    assert door.get("/").status_code == 200, "the cookie is enough to look again"


def test_a_signature_opens_the_session_in_another_browser(door: TestClient) -> None:
    door.get(f"/?prolific_token={GOOD}")
    other = TestClient(door.app, base_url="https://lab.example.org")
    assert other.get(f"/?prolific_token={GOOD}").status_code == 200
    assert other.get("/study").status_code == 200
    somebody = token(prolific={**WHO, "PROLIFIC_PID": "p2"})
    other.get(f"/?prolific_token={somebody}")
    assert people(door) == ["p1", "p2"], "a token counts more than the session that is there"
