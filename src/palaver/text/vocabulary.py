"""Text into token ids and back: whole words (Xing & Fernández 2018) or byte-level BPE.

Both are `tokenizers.Tokenizer`s kept as `tokenizer.json`, which also opens in `transformers`. A word
vocabulary sees the tokens of `palaver.text.words` and has one id for all the words it does not know; a BPE
vocabulary spells any text. Ids 0 to 4 mean the same in every vocabulary: those of a tokenizer that came with
a language model are moved up by five.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from palaver.artefacts import digest
from palaver.errors import DataError, UserError, require
from palaver.files import write_atomically
from palaver.text.words import join_words, words

PAD, BOS, EOS, UNK, SEP = 0, 1, 2, 3, 4
SPECIALS = ("<pad>", "<s>", "</s>", "<unk>", "<sep>")
"""`<sep>` stands between the turns of a history."""

Kind = Literal["word", "bpe"]
_FILE = "tokenizer.json"


class Vocabulary:
    """A fixed set of tokens. Made by `train` or `load`; never changes afterwards."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        tokenizer.encode_special_tokens = True  # "</s>" typed by somebody is text, not an end
        self.moved = 0 if _is_own(tokenizer) else len(SPECIALS)
        """What is added to the ids of the tokenizer itself."""
        is_words = type(tokenizer.model).__name__ == "WordLevel" and not self.moved
        self.kind: Kind = "word" if is_words else "bpe"
        self._size: int = tokenizer.get_vocab_size() + self.moved
        self._tokens: list[str] = []
        self._shown: list[str] = []
        self.signature: str = digest(tokenizer.to_str().encode())

    @classmethod
    def train(
        cls, texts: Iterable[str], *, kind: Kind = "bpe", size: int = 8000, lowercase: bool = False
    ) -> Vocabulary:
        """The `size` most useful tokens of `texts`, which are read once. Words are always lower-cased."""
        tokenizers = require("tokenizers", "models")
        smallest = len(SPECIALS) + (256 if kind == "bpe" else 1)
        if size < smallest:
            raise UserError(f"a {kind} vocabulary needs room for {smallest} tokens or more, found {size}")
        if kind == "bpe":
            tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
            if lowercase:
                tokenizer.normalizer = tokenizers.normalizers.Lowercase()
            tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
            tokenizer.decoder = tokenizers.decoders.ByteLevel()
            trainer = tokenizers.trainers.BpeTrainer(
                vocab_size=size,
                special_tokens=list(SPECIALS),
                initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
                show_progress=False,
            )
            tokenizer.train_from_iterator(texts, trainer)
        elif kind == "word":
            tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(unk_token="<unk>"))
            tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
            trainer = tokenizers.trainers.WordLevelTrainer(
                vocab_size=size, special_tokens=list(SPECIALS), show_progress=False
            )
            tokenizer.train_from_iterator(_spaced(texts), trainer)
        else:
            raise UserError(f"there is no vocabulary of kind {kind!r}", "known: word, bpe")
        if tokenizer.get_vocab_size() <= smallest:
            raise DataError("there is not enough text to make a vocabulary of")
        return cls(tokenizer)

    @classmethod
    def load(cls, folder: str | Path, *, foreign: bool = False) -> Vocabulary:
        """The vocabulary that `save` wrote into `folder`; `foreign`: or that came with a language model."""
        path = Path(folder) / _FILE
        if not path.is_file():
            raise DataError(f"there is no vocabulary in {folder}", f"expected the file {_FILE}")
        tokenizers = require("tokenizers", "models")
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise DataError(f"{path} is not a vocabulary, or is cut short: {error}") from None
        if not foreign and not _is_own(tokenizer):
            raise DataError(f"{path} was not made by Palaver", f"its first tokens should be {SPECIALS}")
        return cls(tokenizer)

    def save(self, folder: str | Path) -> None:
        """Write `tokenizer.json`, or leave the one that is there as it was."""
        with write_atomically(Path(folder) / _FILE) as file:
            file.write(self._tokenizer.to_str())

    def __len__(self) -> int:
        return self._size

    @property
    def tokens(self) -> list[str]:
        """All of them, in the order of their ids."""
        if not self._tokens:
            own = [self._tokenizer.id_to_token(i) for i in range(self._size - self.moved)]
            self._tokens = [*SPECIALS, *own] if self.moved else own
        return self._tokens

    def encode(self, text: str) -> list[int]:
        """Token ids without marks of beginning or end."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The same for many texts, on all cores."""
        ready = list(texts) if self.kind == "bpe" else list(_spaced(texts))
        encoded = self._tokenizer.encode_batch_fast(ready, add_special_tokens=False)
        if self.moved:
            return [[i + self.moved for i in e.ids] for e in encoded]
        return [e.ids for e in encoded]

    def decode(self, ids: Iterable[int]) -> str:
        """Readable text without marks of beginning, end, padding and turns; unknown words stay `<unk>`."""
        return self.decode_batch([ids])[0]

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """The same for many responses."""
        if self.kind == "word":
            if not self._shown:
                marks = (PAD, BOS, EOS, SEP)
                self._shown = ["" if i in marks else token for i, token in enumerate(self.tokens)]
            return [join_words([self._shown[i] for i in ids]) for ids in batch]
        kept = [[i - self.moved for i in map(int, ids) if i > SEP] for ids in batch]
        own = not self.moved  # a language model's own marks are no words either
        return [text.strip() for text in self._tokenizer.decode_batch(kept, skip_special_tokens=not own)]


def _is_own(tokenizer: Any) -> bool:
    return [tokenizer.id_to_token(i) for i in range(len(SPECIALS))] == list(SPECIALS)


def _spaced(texts: Iterable[str]) -> Iterator[str]:
    return (" ".join(words(text)) for text in texts)
