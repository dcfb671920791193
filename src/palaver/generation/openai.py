"""Systems behind an OpenAI-compatible server: `POST {base_url}/chat/completions`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from palaver.generation.messages import chat_messages, prompt_fields
from palaver.generation.options import OpenAIOptions
from palaver.generation.streaming import Pieces
from palaver.generation.system import Notes, check_context, check_takes, cut_note, request_key
from palaver.http import JsonServer, Limits, TryAgain
from palaver.schema import Reply, Request, Say


class OpenAISystem:
    """A model that is asked over HTTP."""

    def __init__(self, name: str, options: OpenAIOptions, folder: Path = Path()) -> None:
        self.name = name
        self.takes = prompt_fields(options.system_prompt)
        self.notes = Notes()
        self._options = options
        self._server = JsonServer(
            name,
            options.base_url,
            key_variable=options.api_key_env,
            limits=Limits(
                timeout=options.timeout,
                retries=options.retries,
                max_wait=options.max_wait,
                requests_per_minute=options.requests_per_minute,
                connections=options.concurrency,
            ),
            hint="is the server there, and the model's name right? "
            "see timeout and retries in the systems file",
        )
        self._sampling = self._body_of(options.decoding.given())

    def __repr__(self) -> str:
        return f"OpenAISystem({self.name!r}, {self._options.model!r} at {self._options.base_url})"

    @property
    def settings(self) -> dict[str, Any]:
        kept = {"base_url", "model", "system_prompt", "examples", "send_seed", "extra"}
        return {"kind": "openai", **self._options.model_dump(include=kept), **self._sampling}

    def close(self) -> None:
        self._server.close()

    @property
    def chunk(self) -> int:
        return 4 * self._options.concurrency

    def reply(self, requests: Sequence[Request]) -> list[Reply]:
        """One reply per request, several under way at once; if one cannot be had, the others are given up."""
        bodies = [self._body(request) for request in requests]
        return self._server.post_all("chat/completions", bodies, self._reply_in)

    def stream(self, request: Request, say: Say) -> Reply:
        """The reply to one request as server-sent events; `say` is told each piece when it comes."""
        events = _Events(say, self._reply_in, self._heed_end)
        body = {**self._body(request), "stream": True}
        return self._server.post("chat/completions", body, events.reply, events.hear)

    def _reply_in(self, answer: bytes) -> Reply:
        choice, reply = _read_answer(answer)
        self._heed_end(choice)
        return reply

    def _heed_end(self, choice: Mapping[str, Any]) -> None:
        """Say that a reply was cut, as checkpoints do."""
        if choice.get("finish_reason") != "length":
            return
        longest = self._sampling.get("max_tokens")
        own_limit = f"{self.name}: the server stopped a reply before its end"
        own_limit += "; a larger max_length may let it go on"
        self.notes.add("cut", own_limit if longest is None else cut_note(self.name, longest))

    def _body(self, request: Request) -> dict[str, Any]:
        check_takes(self, request)
        check_context(request.dialogue)
        body = {
            "model": self._options.model,
            "messages": chat_messages(
                request, self._options.system_prompt, self.name, self._options.examples
            ),
            **self._sampling,
        }
        if self._options.send_seed:
            body["seed"] = request_key(request) & 0x7FFFFFFF  # servers take 31 or 32 bits
        return {**body, **self._options.extra}

    def _body_of(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Decoding options in the words of the protocol; what it has no word for is said."""
        body: dict[str, Any] = {}
        if given.get("method") == "greedy":
            body["temperature"] = 0
        for ours, theirs in (
            ("temperature", "temperature"),
            ("top_p", "top_p"),
            ("max_length", "max_tokens"),
        ):
            if ours in given:
                body[theirs] = given[ours]
        unsaid = [o for o in given if o not in ("method", "temperature", "top_p", "max_length", "seed")]
        if given.get("method") in ("beam", "stochastic-greedy"):
            unsaid.insert(0, f"method {given['method']}")
        if unsaid:
            self.notes.add("unsaid", f"{self.name}: the server is not told about {', '.join(unsaid)}")
        if self._options.logprobs:
            body["logprobs"] = True
        return body


class _Events:
    """Puts an answer together that comes as `data:` lines, each with the next piece of the message."""

    def __init__(
        self, say: Say, read_whole: Callable[[bytes], Reply], heed_end: Callable[[Mapping[str, Any]], None]
    ) -> None:
        self._pieces = Pieces(say)
        self._read_whole, self._heed_end = read_whole, heed_end
        self._rest = b""
        self._text = ""
        self._scores: list[float] = []
        self._n_tokens: int | None = None
        self._is_begun = False

    def hear(self, piece: bytes) -> None:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._hear_line(line)

    def _hear_line(self, line: bytes) -> None:
        data = line.strip().removeprefix(b"data:").strip()
        if not line.startswith(b"data:") or data in (b"", b"[DONE]"):
            return  # a comment, the name of an event, or the end
        try:
            event = json.loads(data)
            if "error" in event:
                error = event["error"]
                raise TryAgain(str(error.get("message", error) if isinstance(error, dict) else error))
            self._is_begun = True
            usage = event.get("usage")
            if isinstance(usage, dict) and isinstance(usage.get("completion_tokens"), int):
                self._n_tokens = usage["completion_tokens"]
            for choice in event.get("choices", [])[:1]:
                delta = choice.get("delta", {})
                self._text += delta.get("content") or delta.get("refusal") or ""
                self._scores += _logprobs(choice)
                self._heed_end(choice)
        except (ValueError, RecursionError, TypeError, AttributeError):
            raise TryAgain("an event is not part of a chat completion") from None
        self._pieces.grow(_readable(self._text))

    def reply(self, answer: bytes) -> Reply:
        """What was said. A server that knows no events answers whole."""
        self.hear(b"\n")
        if self._is_begun:
            scores = self._scores
            n_tokens = len(scores) or self._n_tokens
            reply = Reply(_readable(self._text), sum(scores) if scores else None, n_tokens)
        else:
            reply = self._read_whole(answer)
        self._pieces.finish(reply.text)
        return reply


def _readable(text: str) -> str:
    """JSON can spell half a character."""
    return text.encode(errors="replace").decode().strip()


def _read_answer(answer: bytes) -> tuple[dict[str, Any], Reply]:
    """The first choice of an answer, and the reply in it."""
    try:
        data = json.loads(answer)
        choice = data["choices"][0]
        message = choice["message"]
        content = message.get("content")
        if isinstance(content, list):  # in parts, as some servers give it
            content = "".join(part.get("text") or "" for part in content)
        if content is None:
            content = message.get("refusal")
    except (ValueError, RecursionError):
        raise TryAgain("the answer is not JSON") from None
    except IndexError:
        raise TryAgain("the answer has no choices") from None
    except (KeyError, TypeError, AttributeError):
        raise TryAgain("the answer is not a chat completion") from None
    if not isinstance(content, str):
        raise TryAgain("the answer's message has no text")
    scores = _logprobs(choice)
    usage = data.get("usage")
    n_tokens = usage.get("completion_tokens") if isinstance(usage, dict) else None
    if scores:
        n_tokens = len(scores)
    elif not isinstance(n_tokens, int):
        n_tokens = None
    return choice, Reply(_readable(content), sum(scores) if scores else None, n_tokens)


def _logprobs(choice: dict[str, Any]) -> list[float]:
    """The log-probability of each token, where the server gives all of them."""
    given = choice.get("logprobs")
    tokens = given.get("content") if isinstance(given, dict) else None
    if not isinstance(tokens, list):
        return []
    scores = [token.get("logprob") if isinstance(token, dict) else None for token in tokens]
    numbers = [float(score) for score in scores if isinstance(score, int | float)]
    return numbers if len(numbers) == len(scores) else []
