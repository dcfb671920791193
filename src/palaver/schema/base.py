"""What every noun shares: frozen, strict about unknown fields, finite numbers only (JSON has no NaN)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NoReturn

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainSerializer, StringConstraints


class Noun(BaseModel):
    """A frozen value. Collections are tuples or read-only mappings, so nothing inside can change either."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Name = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
"""An identifier as its source gave it: any text, but not empty."""


def _check_encodable(text: str) -> str:
    """Half a surrogate pair is no text: no file, page or database would take it later."""
    if not text.isascii():
        text.encode()
    return text


Text = Annotated[str, AfterValidator(_check_encodable)]
"""What people wrote."""

Scalar = str | bool | int | float | None


class FrozenDict(dict[str, Scalar]):
    """A read-only dict. (`MappingProxyType` can be neither pickled nor copied, which workers need.)"""

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("this mapping is part of a frozen value and cannot be changed")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[str, Scalar]]]:
        return type(self), (dict(self),)


def _freeze(labels: Mapping[str, Scalar]) -> FrozenDict:
    for text in (*labels, *labels.values()):
        if isinstance(text, str):
            _check_encodable(text)
    return FrozenDict(labels)


Labels = Annotated[Mapping[str, Scalar], AfterValidator(_freeze), PlainSerializer(dict)]
"""Free annotations: name -> text, number, truth value or nothing."""
