"""Who may do what from where: signed cookies, form tokens, origins, limits, and the headers of a response.

Signatures are HMAC-SHA256 under the study's own secret with a purpose in front, so that a token made for one
use is worth nothing in another.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from palaver.errors import Sentence
from palaver.server.refusal import Refusal
from palaver.server.settings import Settings

BODY_SECONDS = 30.0
"""Seconds without a piece of a request's body after which it is given up."""
MAX_BODY = 1_000_000
"""Bytes of one request; a page of answers takes a few thousand."""
ANSWER_HEAD = ("/", "/study")
"""Pages whose GET changes something, so that HEAD is not the same without the body."""
MTURK = "https://*.mturk.com"
_MONTH = 30 * 24 * 3600


class Signer:
    """Signs short texts with the study's secret."""

    def __init__(self, secret: str) -> None:
        self._key = secret.encode()

    def mac(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose}\x1f{text}".encode(), hashlib.sha256).hexdigest()

    def sign(self, purpose: str, text: str) -> str:
        """`text` with its signature behind it."""
        return f"{text}.{self.mac(purpose, text)}"

    def read(self, purpose: str, token: str) -> str | None:
        """The text of a token that was signed for this purpose; None for any other."""
        text, _, mac = token.rpartition(".")
        if not text or not token.isascii() or not hmac.compare_digest(mac, self.mac(purpose, text)):
            return None
        return text

    def cookie_name(self, what: str) -> str:
        """The name of a cookie. Studies on one host share cookies, so the name says which study's it is."""
        return f"palaver_{what}_{self.mac('cookie name', what)[:8]}"

    def csrf(self, session: str) -> str:
        """The token that forms of this session carry."""
        return self.mac("csrf", session)

    def check_csrf(self, session: str, token: str | None) -> None:
        if not token or not token.isascii() or not hmac.compare_digest(token, self.csrf(session)):
            raise Refusal("this page has grown old: reload it and try again", 403)


def cookie(
    name: str, value: str, settings: Settings, *, framed: bool = False, max_age: int = _MONTH, path: str = ""
) -> str:
    """A `Set-Cookie` header. `framed`: the page stands in MTurk's frame, where Lax cookies are not sent."""
    cross_site = framed and settings.is_secure
    parts = [f"{name}={value}", f"Path={path or settings.root_path or '/'}", f"Max-Age={max_age}", "HttpOnly"]
    parts += ["SameSite=None" if cross_site else "SameSite=Lax"]
    if settings.is_secure:
        parts.append("Secure")
    if cross_site:
        parts.append("Partitioned")
    return "; ".join(parts)


def check_origin(request: Request, settings: Settings) -> None:
    """A POST comes from a page of this very server.

    Browsers always name the origin of a POST. Programs may leave it out: what they lack is the form token.
    """
    origin = request.headers.get("origin")
    if origin is None:
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise Refusal("this request comes from another site", 403)
        return
    if origin != own_origin(request, settings):
        raise Refusal("this request comes from another site", 403)


def check_socket_origin(socket: WebSocket, settings: Settings) -> None:
    """A WebSocket is opened by a page of this very server. Browsers always name the origin of one."""
    own = settings.origin
    if not own:
        scheme = "https" if socket.url.scheme == "wss" else "http"
        own = f"{scheme}://{socket.headers.get('host', '')}"
    if socket.headers.get("origin") != own:
        raise Refusal("this connection comes from another site", 403)


def own_origin(request: Request, settings: Settings) -> str:
    """The origin of our pages: of the public address, or else what the request calls us.

    The guard has refused requests that call us by a name that is not ours.
    """
    return settings.origin or f"{request.url.scheme}://{request.headers.get('host', '')}"


def is_own_name(host: str, settings: Settings) -> bool:
    """Whether a `Host` header may mean us: the public address's name, `localhost`, or an IP address.

    A name of somebody else's that points here (DNS rebinding) would make our pages theirs.
    """
    try:
        parts = urlsplit(f"//{host}")
        name, has_sound_port = (parts.hostname or "").lower(), parts.port != 0
    except ValueError:
        return False
    if not has_sound_port or "@" in host or "/" in host:
        return False
    return name in ("localhost", urlsplit(settings.public_url).hostname) or is_address(name)


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def client_address(request: HTTPConnection, settings: Settings) -> str:
    """Who sent a request; empty where a proxy does not say so in a way that can be believed.

    A proxy's `X-Forwarded-For` counts only with a public address, from a machine of our own network, and if
    the proxy passes the public name on as `Host`: one that was not set up for us hands on whatever the
    client wrote. The last entry is the proxy's own.
    """
    peer = request.client.host if request.client else ""
    if not settings.public_url or not is_address(peer) or not ipaddress.ip_address(peer).is_private:
        return peer
    forwarded = request.headers.getlist("x-forwarded-for")
    if not forwarded or request.headers.get("host") != urlsplit(settings.origin).netloc:
        return ""
    last = forwarded[-1].rpartition(",")[2].strip()
    return last if is_address(last) else ""


class RateLimit:
    """At most `limit` events per key within `window` seconds, counted in this process's memory.

    With several workers each counts its own share, so the limit of the whole server is up to `workers` times
    as high; it exists to stop floods, not to keep accounts.
    """

    _MOST_KEYS = 10_000

    def __init__(self, limit: int, window: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit, self.window, self._clock = limit, window, clock
        self._seen: dict[str, deque[float]] = {}
        """The key seen last stands last."""

    def allow(self, key: str) -> bool:
        """Count an event; False if there were too many."""
        now = self._clock()
        times = self._seen.pop(key, None) or deque()
        if len(self._seen) >= self._MOST_KEYS:
            self._seen.pop(next(iter(self._seen)))
        self._seen[key] = times
        while times and times[0] <= now - self.window:
            times.popleft()
        if len(times) >= self.limit:
            return False
        times.append(now)
        return True

    def check(self, key: str) -> None:
        if not self.allow(key):
            raise Refusal("too many requests: wait a minute and try again", 429)


def mturk_submit(parameters: Mapping[str, str]) -> str | None:
    """Where MTurk wants its form: the submit address if it is MTurk's own, else nowhere."""
    try:
        host = urlsplit(parameters.get("turkSubmitTo", ""))
        port = host.port
    except ValueError:
        return None
    name = (host.hostname or "").lower()
    if host.scheme != "https" or port not in (None, 443) or host.username is not None:
        return None
    if not re.fullmatch(r"([a-z0-9-]+\.)+mturk\.com", name):
        return None
    return f"https://{name}/mturk/externalSubmit"


def security_headers(*, framed: bool = False, secure: bool = False) -> dict[str, str]:
    """What every response carries. Only a rater who came through MTurk may see it in a frame, MTurk's."""
    target, frames = (f" {MTURK}", MTURK) if framed else ("", "'none'")
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "media-src 'self'; "
        f"form-action 'self'{target}; base-uri 'none'; frame-ancestors {frames}"
    )
    headers = {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "same-origin",  # "no-referrer" would turn the Origin of our own forms into null
        "cross-origin-opener-policy": "same-origin",
    }
    if not framed:
        headers["x-frame-options"] = "DENY"
    if secure:
        headers["strict-transport-security"] = "max-age=31536000"
    return headers


class Guard:
    """Around the whole app: our name and the size limit going in, the security headers coming out.

    A proxy may leave the root path on or take it off (and uvicorn may put it on again): routes never see it.
    Of several studies behind one address each has its path taken off before.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self._settings = app, settings
        self._root = "" if settings.study_path else settings.root_path
        self._headers = {f: security_headers(framed=f, secure=settings.is_secure) for f in (False, True)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._pass_socket(scope, receive, send)
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        path, method = self._inner(scope["path"]), scope["method"]
        is_head = method == "HEAD" and path not in ANSWER_HEAD
        scope = {
            **scope,
            "method": "GET" if is_head else method,
            "root_path": "",
            "path": path,
            "state": scope.get("state", {}),
        }

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                framed = scope.get("state", {}).get("framed", False)
                headers = MutableHeaders(scope=message)
                for name, value in self._headers[framed].items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            elif is_head:
                message = {**message, "body": b""}
            await send(message)

        headers = Headers(scope=scope)
        if not is_own_name(headers.get("host", ""), self._settings):
            problem = {"error": "this server is not known by that name: start it with --public-url"}
            await JSONResponse(problem, 421)(scope, receive, send_guarded)
            return
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > MAX_BODY:
            problem = {"error": f"the request is larger than {MAX_BODY} bytes"}
            await JSONResponse(problem, 413, {"connection": "close"})(scope, receive, send_guarded)
            return
        await self.app(scope, _limited(receive), send_guarded)

    async def _pass_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not is_own_name(Headers(scope=scope).get("host", ""), self._settings):
            await send({"type": "websocket.close", "code": 1008, "reason": "not known by that name"})
            return
        inner = {**scope, "root_path": "", "path": self._inner(scope["path"]), "state": {}}
        await self.app(inner, receive, send)

    def _inner(self, path: str) -> str:
        while self._root and (path == self._root or path.startswith(f"{self._root}/")):
            path = path[len(self._root) :] or "/"
        return path


def _limited(receive: Receive) -> Callable[[], Awaitable[Message]]:
    """Bodies that do not say how long they are get counted as they come, and they have to come."""
    taken = 0
    is_whole = False

    async def receive_limited() -> Message:
        nonlocal taken, is_whole
        try:
            async with asyncio.timeout(None if is_whole else BODY_SECONDS):
                message = await receive()
        except TimeoutError:
            raise Refusal("the request took too long to arrive", 408) from None
        is_whole = not message.get("more_body", False)
        taken += len(message.get("body", b""))
        if taken > MAX_BODY:
            raise Refusal(Sentence("the request is larger than {n} bytes", n=MAX_BODY), 413)
        return message

    return receive_limited
