"""Any Python function from a response to a number, as a judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from palaver.errors import UserError
from palaver.files import sha256_of
from palaver.registry import Named, call_plugin, source_file
from palaver.schema import Criterion, Dialogue, Rating, Response
from palaver.schema.judge import Judged, Need
from palaver.schema.rating import Kind
from palaver.schema.scale import Real


class FunctionJudge(Named):
    """Its criterion is the function's name; None means that the function cannot judge a response."""

    kind: Kind = "metric"
    looks_at: frozenset[Judged] = frozenset({"responses"})
    needs: frozenset[Need] = frozenset()

    def __init__(self, function: Callable[[Response], Any], name: str) -> None:
        self.function = function
        self.name = name.partition(":")[2] or name
        file = source_file(function)
        # Our own version is not in it: what somebody else's function says does not depend on it.
        self.signature = f"{name}|{sha256_of(file)[:10]}" if file is not None else name
        self.criteria: tuple[Criterion, ...] = (Criterion(name=self.name, scale=Real()),)

    def judge(self, batch: Sequence[Response] | Sequence[Dialogue]) -> Iterator[Rating]:
        for response in batch:
            if isinstance(response, Response):
                value = self._value(response)
                if value is not None:
                    yield Rating(
                        item=response.id, system=response.judged_system, rater=self.name,
                        criterion=self.name, value=value, kind=self.kind, signature=self.signature,
                    )  # fmt: skip

    def _value(self, response: Response) -> float | None:
        value = call_plugin(f"{self.name} (response {response.id!r})", self.function, response)
        if value is None:
            return None
        try:
            return Real().parse(float(value))
        except (TypeError, ValueError):
            raise UserError(
                f"{self.name} should return a finite number, returned {value!r} for response {response.id!r}"
            ) from None
