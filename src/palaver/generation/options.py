"""What may be said about a system in `systems.toml`, kind by kind; the reference page has the same words.

A key never stands in the file: `api_key_env` names the environment variable that holds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from palaver.config import Location, dotted
from palaver.errors import UserError, explain_mistake
from palaver.generation.messages import prompt_mistakes
from palaver.generation.system import check_ocean

Dtype = Literal["auto", "float32", "bfloat16", "float16", "float64"]


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


_ONLY_FOR = {
    "temperature": "sample",
    "top_k": "sample",
    "top_p": "sample",
    "k": "stochastic-greedy",
    "beam_size": "beam",
    "length_penalty": "beam",
}
"""Options that mean something to one method alone; giving one chooses the method."""


class DecodingOptions(Strict):
    """The fields of `palaver.generation.decode.Decoding`, each of which may be left to its default."""

    method: Literal["greedy", "beam", "sample", "stochastic-greedy"] | None = Field(
        None, description="how the next token is chosen"
    )
    temperature: float | None = Field(None, gt=0, le=100, description="below 1 sharpens, above 1 flattens")
    top_k: int | None = Field(None, ge=0, description="sample among the k most probable tokens; 0 among all")
    top_p: float | None = Field(None, gt=0, le=1, description="sample among the fewest that reach this share")
    k: int | None = Field(None, ge=1, description="k of stochastic greedy sampling")
    beam_size: int | None = Field(None, ge=1, le=1000, description="hypotheses kept by beam search")
    length_penalty: float | None = Field(None, ge=-10, le=10, description="exponent of the length")
    no_repeat_ngram: int | None = Field(None, ge=0, description="no n-gram of this size twice; 0: allowed")
    repetition_penalty: float | None = Field(
        None, ge=1, le=10, description="above 1 repeats fewer tokens of the reply; not for beam search"
    )
    guidance: float | None = Field(
        None,
        ge=0,
        le=100,
        description="how much more a checkpoint's reply depends on who speaks and on its knowledge; 0: as "
        "trained, 1: twice; not for beam search",
    )
    min_length: int | None = Field(None, ge=0, description="fewest tokens")
    max_length: int | None = Field(None, ge=1, le=100_000, description="most tokens")
    seed: int | None = Field(None, ge=0, description="same seed, same replies")

    @field_validator("temperature")
    @classmethod
    def _not_nearly_zero(cls, value: float | None) -> float | None:
        if value is not None and value < 1e-3:  # dividing by less leaves the range of float32
            raise ValueError(f"expected at least 0.001, or method greedy, found {value:g}")
        return value

    @model_validator(mode="after")
    def _of_one_method(self) -> Self:
        given = self.model_dump(exclude_none=True)
        wanted = {option: method for option, method in _ONLY_FOR.items() if option in given}
        methods = sorted({*wanted.values(), *([self.method] if self.method else [])})
        if len(methods) > 1:
            each = ", ".join(f"{option} belongs to {method}" for option, method in wanted.items())
            chosen = f"method is {self.method}, but " if self.method else ""
            raise ValueError(f"these options do not go together: {chosen}{each}")
        if self.min_length is not None and self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"min_length is {self.min_length}, more than max_length, {self.max_length}")
        return self

    def given(self) -> dict[str, Any]:
        """The options somebody chose, with the method they imply."""
        options = self.model_dump(exclude_none=True)
        implied = [_ONLY_FOR[option] for option in options if option in _ONLY_FOR]
        return {"method": implied[0], **options} if implied else options


def layered(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Decoding options of which later layers win; what belongs to another method than theirs falls away."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged |= layer
    method = merged.get("method")
    return {o: v for o, v in merged.items() if _ONLY_FOR.get(o, method) == method}


def decoding_options(given: Mapping[str, Any]) -> DecodingOptions:
    """Options that somebody typed, checked."""
    try:
        return DecodingOptions.model_validate(dict(given))
    except ValidationError as error:
        mistakes = explain(error, DecodingOptions)
        problems = [f"{dotted(place) or 'decoding'}: {text}" for place, text in mistakes]
        raise UserError("these decoding options are not possible:", problems=problems) from None


def explain(error: ValidationError, model: type[Strict]) -> Iterator[tuple[Location, str]]:
    """The place and the words of each mistake."""
    for mistake in error.errors():
        place, kind = mistake["loc"], mistake["type"]
        fields = DecodingOptions.model_fields if "decoding" in place[:-1] else model.model_fields
        text = explain_mistake(mistake, list(fields))
        if kind == "extra_forbidden" and "key" in str(place[-1]).casefold():
            text = "keys do not belong into this file; api_key_env names the variable that holds one"
        elif kind == "string_pattern_mismatch":  # it may be the key itself, so it is not repeated
            text = "expected the name of an environment variable, such as OPENAI_API_KEY"
        elif kind == "greater_than" and place[-1] == "temperature":
            text = text.replace(",", " (method greedy always takes the most probable token),", 1)
        yield place, text


class _Conditions(Strict):
    speaker: str | None = Field(None, min_length=1, description="who speaks unless a request says otherwise")
    ocean: list[float] | None = Field(None, description="five OCEAN scores, the same way")

    @field_validator("ocean")
    @classmethod
    def _five_scores(cls, scores: list[float] | None) -> list[float] | None:
        if scores is not None:
            try:
                check_ocean(scores)
            except UserError as error:
                raise ValueError("; ".join(error.problems)) from None
        return scores


class _Options(_Conditions):
    decoding: DecodingOptions = Field(DecodingOptions(), description="see below")


class _Prompted(_Options):
    system_prompt: str = Field("", description="may have {speaker}, {ocean} and {knowledge}")
    examples: tuple[tuple[str, str], ...] = Field(
        (), description='exchanges before every conversation: [["Hi!", "Hello, how are you?"]]'
    )

    @field_validator("system_prompt")
    @classmethod
    def _known_fields(cls, template: str) -> str:
        if mistakes := prompt_mistakes(template):
            raise ValueError("; ".join(mistakes))
        return template


class CheckpointOptions(_Options):
    kind: Literal["checkpoint"]
    path: str = Field(
        min_length=1, description="a checkpoint folder, or a shipped one such as default-speaker"
    )
    device: str = Field("auto", description="auto, cpu, cuda, cuda:1")
    dtype: Dtype | Literal["int16"] = Field(
        "auto",
        description="auto: bfloat16 on a GPU, float32 otherwise; int16: on a CPU, weights of 16 bits, which "
        "make single replies of a language model faster",
    )
    batch_size: int = Field(0, ge=0, description="replies decoded together; 0: chosen by the decoder")


class HuggingFaceOptions(_Prompted):
    kind: Literal["huggingface"]
    model: str = Field(min_length=1, description="a name on the hub, or a folder")
    task: Literal["auto", "causal", "seq2seq"] = Field(
        "auto", description="auto: by the model's configuration"
    )
    revision: str | None = Field(None, description="branch, tag or commit on the hub")
    local_files_only: bool = Field(False, description="never ask the hub")
    device: str = Field("auto", description="auto, cpu, cuda, cuda:1")
    dtype: Dtype = Field("auto", description="auto: bfloat16 on a GPU, float32 otherwise")
    batch_size: int = Field(8, ge=1, description="replies generated together")
    max_context: int = Field(0, ge=0, description="most tokens of context; 0: as many as the model takes")
    separator: str | None = Field(
        None,
        description="between turns, for models without a chat template; default: the end mark, or a new line",
    )


class OpenAIOptions(_Prompted):
    kind: Literal["openai"]
    base_url: str = Field(description='such as "https://api.openai.com/v1"')
    model: str = Field(min_length=1, description="the model's name at that server")
    api_key_env: str | None = Field(
        None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="environment variable that holds the key"
    )
    timeout: float = Field(60.0, gt=0, le=3600, description="seconds for one answer, all of it")
    retries: int = Field(
        4, ge=0, le=100, description="further attempts after 429, 5xx, timeouts, lost connections"
    )
    max_wait: float = Field(120.0, ge=0, description="longest wait in seconds that a server may ask for")
    requests_per_minute: float = Field(0, ge=0, description="0: no limit")
    concurrency: int = Field(4, ge=1, le=256, description="requests under way at once")
    logprobs: bool = Field(False, description="ask for log-probabilities; some servers refuse")
    send_seed: bool = Field(True, description="send each request's seed")
    extra: dict[str, Any] = Field({}, description="further fields of the request's body")

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, url: str) -> str:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"expected an address that begins with http:// or https://, found {url!r}")
        if "@" in url.split("//", 1)[1].split("/", 1)[0] or "?" in url:
            raise ValueError("names and keys do not belong into the address; use api_key_env")
        return url.rstrip("/")

    @field_validator("extra")
    @classmethod
    def _not_ours(cls, extra: dict[str, Any]) -> dict[str, Any]:
        ours = sorted(set(extra) & {"messages", "model", "n", "stream"})
        if ours:
            raise ValueError(f"cannot set {', '.join(ours)} here")
        return extra


class ReplayOptions(Strict):
    kind: Literal["replay"]
    path: str = Field(min_length=1, description="a dialogue file, or a file of responses")
    system: str | None = Field(
        None,
        min_length=1,
        description="of responses of several systems: whose; default: those under the table's own name",
    )
    missing: Literal["error", "skip"] = Field(
        "error", description="when the log has no next turn: stop, or leave that reply out and say so"
    )


class WrittenOptions(Strict):
    kind: Literal["written"]
    path: str = Field(
        "", description="a file of exchanges, or a folder of such; default: those for everyday talk"
    )
    encoder: str = Field("minilm", min_length=1, description="the sentence encoder that compares lines")
    near: float = Field(
        0.55,
        ge=-1,
        le=1,
        description="least nearness to written lines; what is farther away gets a general reply",
    )


class PluginOptions(_Conditions):
    """A kind that an installed package adds: the fields that it does not share go to its function."""

    model_config = ConfigDict(extra="allow")
    kind: str

    @property
    def own(self) -> dict[str, Any]:
        return dict(self.model_extra or {})

    @model_validator(mode="after")
    def _no_keys(self) -> Self:
        secret = [name for name in self.own if name.casefold().endswith(("key", "token", "password"))]
        if secret:  # options are written into the records of runs
            raise ValueError(
                f"keys do not belong into this file ({', '.join(secret)}); read them in the function"
            )
        return self


class PythonOptions(PluginOptions):
    kind: Literal["python"]
    function: str = Field(min_length=1, description="MODULE:FUNCTION; further fields are handed to it")


KINDS: dict[str, type[Strict]] = {
    "checkpoint": CheckpointOptions,
    "huggingface": HuggingFaceOptions,
    "openai": OpenAIOptions,
    "replay": ReplayOptions,
    "written": WrittenOptions,
    "python": PythonOptions,
}
