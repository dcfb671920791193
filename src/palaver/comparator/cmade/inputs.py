"""Dialogues as the encoder reads them (Liang et al. 2020, section 6, "Model Details").

`[CLS] turn [SEP] turn [SEP] …` with a role for every token: 0 for [CLS] and padding, 1 for what the user
said, 2 for what the system said; a turn's [SEP] has the turn's role. Of a dialogue longer than the encoder
the end is kept, behind [CLS]: that is where people decide what they think of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palaver.comparator.training_data import SYSTEM, USER
from palaver.errors import DataError, UserError
from palaver.schema import Dialogue

ROLES = {USER: 1, SYSTEM: 2}
N_ROLES = 3


@dataclass(frozen=True)
class Inputs:
    """Tokens and roles of many dialogues, end to end; dialogue i is `[bounds[i]:bounds[i + 1]]`."""

    tokens: NDArray[np.int32]
    roles: NDArray[np.int8]
    bounds: NDArray[np.int64]
    pad: int
    n_cut: int = 0
    """Dialogues that were too long and lost their beginning."""
    states: NDArray[np.float16] | None = None
    """(tokens, C) what the frozen layers of a network make of each token, where that is kept."""

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.bounds)

    def padded(
        self, rows: NDArray[np.int64], multiple: int = 1
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """ids, mask, roles of these dialogues, each (B, T), T rounded up to a `multiple`."""
        lengths = self.lengths[rows]
        width = -(-int(lengths.max(initial=1)) // multiple) * multiple
        ids = np.full((len(rows), width), self.pad, np.int64)
        mask, roles = np.zeros_like(ids), np.zeros_like(ids)
        for place, (row, length) in enumerate(zip(rows, lengths, strict=True)):
            begin = self.bounds[row]
            ids[place, :length] = self.tokens[begin : begin + length]
            roles[place, :length] = self.roles[begin : begin + length]
            mask[place, :length] = 1
        return ids, mask, roles

    def padded_states(self, rows: NDArray[np.int64], width: int) -> NDArray[np.float32]:
        """The states of these dialogues, (B, width, C); 0 where there is no token."""
        assert self.states is not None
        states = np.zeros((len(rows), width, self.states.shape[1]), np.float32)
        for place, row in enumerate(rows):
            begin, end = self.bounds[row], self.bounds[row + 1]
            states[place, : end - begin] = self.states[begin:end]
        return states

    def joined(self, other: Inputs) -> Inputs:
        """These, then the others."""
        if self.states is None or other.states is None:
            states = None
        else:
            states = np.concatenate([self.states, other.states])
        return Inputs(
            np.concatenate([self.tokens, other.tokens]),
            np.concatenate([self.roles, other.roles]),
            np.concatenate([self.bounds, other.bounds[1:] + self.bounds[-1]]),
            self.pad,
            self.n_cut + other.n_cut,
            states,
        )


def make_inputs(dialogues: Sequence[Dialogue], tokenizer: Any, max_tokens: int = 512) -> Inputs:
    """All dialogues cut into tokens, the last `max_tokens` of each kept."""
    cls, sep, pad = special_tokens(tokenizer)
    if max_tokens < 2:
        raise UserError(f"max_tokens must be 2 or more, found {max_tokens}")
    strangers = {t.speaker for d in dialogues for t in d.turns} - set(ROLES)
    if strangers:
        raise DataError(f"speakers should be user and system, found {', '.join(sorted(strangers)[:5])}")
    texts = [turn.text for dialogue in dialogues for turn in dialogue.turns]
    tokens_of_turns = iter(
        tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"] if texts else []
    )
    tokens: list[int] = []
    roles: list[int] = []
    bounds = [0]
    n_cut, room = 0, max_tokens - 1
    for dialogue in dialogues:
        own_tokens: list[int] = []
        own_roles: list[int] = []
        for turn in dialogue.turns:
            said = [*next(tokens_of_turns), sep]
            own_tokens += said
            own_roles += [ROLES[turn.speaker]] * len(said)
        if len(own_tokens) > room:
            n_cut += 1
        tokens += [cls, *own_tokens[-room:]]
        roles += [0, *own_roles[-room:]]
        bounds.append(len(tokens))
    return Inputs(
        np.array(tokens, np.int32), np.array(roles, np.int8), np.array(bounds, np.int64), pad, n_cut
    )


def special_tokens(tokenizer: Any) -> tuple[int, int, int]:
    """Ids of [CLS], [SEP] and padding, or what stands for them in another encoder."""
    cls = tokenizer.cls_token_id if tokenizer.cls_token_id is not None else tokenizer.bos_token_id
    sep = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
    if cls is None or sep is None:
        raise UserError("this encoder's tokenizer has no [CLS] and [SEP]", "use an encoder such as BERT")
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else sep
    return int(cls), int(sep), int(pad)


def cut_by_tokens(lengths: NDArray[np.int64], budget: int) -> Iterator[NDArray[np.int64]]:
    """Places in order of length, in pieces whose padded size stays within `budget` tokens."""
    order = np.argsort(-lengths, kind="stable")
    begins = [0]
    for place in range(len(order)):
        if place > begins[-1] and int(lengths[order[begins[-1]]]) * (place - begins[-1] + 1) > budget:
            begins.append(place)
    for begin, end in pairwise([*begins, len(order)]):
        if end > begin:
            yield order[begin:end]
