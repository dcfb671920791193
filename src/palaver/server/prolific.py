"""Prolific's secured links: they carry a token that says who comes, signed with one of Prolific's keys.

The token is a JSON Web Token (RFC 7515, 7519; RS256). Prolific publishes the public keys as a JSON Web Key
Set. A token is good if its signature is, if it has not expired, if its audience is our domain, and if its
claim `prolific` agrees with the parameters of the link (their API reference, "Retrieve JSON Web Key Set").
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from palaver.errors import UserError
from palaver.server.refusal import Refusal

PARAMETERS = ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")
TOKEN = "prolific_token"
_LONGEST = 8000
_FEWEST_BITS = 2048
_CLOCKS = 60
"""Seconds by which two clocks may differ."""
_SHA256 = bytes.fromhex("3031300d060960864801650304020105000420")
"""What stands before the digest in a signature, so that it says how it was made (RFC 8017, section 9.2)."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public RSA key."""

    modulus: int
    exponent: int

    def verifies(self, message: bytes, signature: bytes) -> bool:
        """Whether the signature (RSASSA-PKCS1-v1_5 with SHA-256) is one of this message."""
        length = (self.modulus.bit_length() + 7) // 8
        number = int.from_bytes(signature)
        if len(signature) != length or number >= self.modulus:
            return False
        digest = _SHA256 + hashlib.sha256(message).digest()
        padding = b"\xff" * (length - len(digest) - 3)
        expected = b"\x00\x01" + padding + b"\x00" + digest
        return hmac.compare_digest(pow(number, self.exponent, self.modulus).to_bytes(length), expected)


class ProlificKeys:
    """Prolific's public keys, in a file that the owner keeps up to date; a newer file is read by itself."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._keys = _read_keys(path)
        self._read_at = path.stat().st_mtime_ns

    def identify(self, link: Mapping[str, str], host: str, now: float) -> dict[str, str]:
        """The parameters that Prolific has signed for this link."""
        claims = self._claims(link.get(TOKEN, ""))
        expires, audience, signed = claims.get("exp"), claims.get("aud"), claims.get("prolific")
        if not isinstance(expires, int | float) or expires < now - _CLOCKS:
            raise Refusal("this link is too old: open the study on Prolific again", 403)
        audiences = audience if isinstance(audience, list) else [audience]
        if host not in [_host(name) for name in audiences]:
            raise Refusal("Prolific signed this link for another site", 403)
        if not isinstance(signed, dict):
            signed = {}
        known = {name: signed[name] for name in PARAMETERS if name in signed}
        if not known.get("PROLIFIC_PID") or not all(isinstance(value, str) for value in known.values()):
            raise Refusal("Prolific's signature does not say who you are", 403)
        if any(link[name] != known.get(name) for name in PARAMETERS if name in link):
            raise Refusal("this link was changed after Prolific had signed it", 403)
        return known

    def _claims(self, token: str) -> dict[str, Any]:
        """What a token says whose signature is Prolific's."""
        try:
            head, claims, signature = token[:_LONGEST].encode("ascii").split(b".")
            header = json.loads(_decode(head))
            is_ours = isinstance(header, dict) and header.get("alg") == "RS256"
            key = self._key(str(header.get("kid"))) if is_ours else None
            if key is None or not key.verifies(head + b"." + claims, _decode(signature)):
                raise ValueError
            content = json.loads(_decode(claims))
        except (ValueError, RecursionError):
            raise Refusal("this study takes people from Prolific: open it there", 403) from None
        return content if isinstance(content, dict) else {}

    def _key(self, name: str) -> PublicKey | None:
        try:
            written_at = self._path.stat().st_mtime_ns
            if written_at != self._read_at:
                self._keys, self._read_at = _read_keys(self._path), written_at
        except (OSError, UserError) as error:  # a file that is just being written: the old keys still hold
            logging.getLogger("palaver.server").warning("Prolific's keys were not read again: %s", error)
        return self._keys.get(name)


def _read_keys(path: Path) -> dict[str, PublicKey]:
    try:
        entries = json.loads(path.read_bytes())["keys"]
        usable = [key for key in entries if key["kty"] == "RSA" and key.get("alg", "RS256") == "RS256"]
        keys = {str(key["kid"]): PublicKey(_number(key["n"]), _number(key["e"])) for key in usable}
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        keys = {}
    if not keys or any(key.modulus.bit_length() < _FEWEST_BITS or key.exponent < 3 for key in keys.values()):
        raise UserError(
            f"{path} holds no keys of Prolific's",
            "get them with: curl -o FILE https://api.prolific.com/.well-known/study/jwks.json",
        )
    return keys


def _number(text: str) -> int:
    return int.from_bytes(_decode(text.encode("ascii")))


def _decode(part: bytes) -> bytes:
    """Base64 with the letters that addresses take, and without its padding (RFC 7515, section 2)."""
    return base64.b64decode(part + b"=" * (-len(part) % 4), altchars=b"-_", validate=True)


def _host(audience: object) -> str:
    """The domain of an audience, which may be written as an address."""
    text = str(audience)
    try:
        return (urlsplit(text if "//" in text else f"//{text}").hostname or "").lower()
    except ValueError:
        return ""
