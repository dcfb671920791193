"""Text to ids and back, and vocabularies that are damaged or too small."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import DataError, UserError
from palaver.text.vocabulary import BOS, EOS, PAD, SEP, SPECIALS, UNK, Vocabulary
from palaver.text.words import words

TEXTS = ["Hello there, how are you?", "I'm fine, thanks. And you?", "It's 3.50, I think!"] * 4


@pytest.fixture(scope="module", params=["word", "bpe"])
def vocabulary(request: pytest.FixtureRequest) -> Vocabulary:
    return Vocabulary.train(TEXTS, kind=request.param, size=400)


def test_the_first_ids_are_the_marks(vocabulary: Vocabulary) -> None:
    assert (PAD, BOS, EOS, UNK, SEP) == (0, 1, 2, 3, 4)
    assert tuple(vocabulary.tokens[:5]) == SPECIALS
    assert len(vocabulary.tokens) == len(vocabulary)


def test_known_text_comes_back(vocabulary: Vocabulary) -> None:
    for text in TEXTS[:3]:
        assert words(vocabulary.decode(vocabulary.encode(text))) == words(text)


BPE = Vocabulary.train(TEXTS, kind="bpe", size=300)


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_bytes_spell_any_text(text: str) -> None:
    ids = BPE.encode(text)
    assert BPE.decode(ids) == text.strip()
    assert min(ids, default=5) > SEP  # typed marks such as </s> are text


def test_what_it_does_not_know_is_said() -> None:
    vocabulary = Vocabulary.train(TEXTS, kind="word", size=400)
    assert vocabulary.encode("zebra </s>")[0] == UNK
    assert "<unk>" in vocabulary.decode(vocabulary.encode("hello zebra"))


def test_marks_are_left_out(vocabulary: Vocabulary) -> None:
    ids = vocabulary.encode("hello there")
    assert vocabulary.decode([BOS, *ids, EOS, PAD, PAD]) == vocabulary.decode(ids)


def test_a_batch_is_its_texts(vocabulary: Vocabulary) -> None:
    assert vocabulary.encode_batch(TEXTS) == [vocabulary.encode(text) for text in TEXTS]


def test_saved_and_loaded_it_is_the_same(vocabulary: Vocabulary, tmp_path: Path) -> None:
    vocabulary.save(tmp_path)
    loaded = Vocabulary.load(tmp_path)
    assert (loaded.kind, loaded.signature, len(loaded)) == (
        vocabulary.kind,
        vocabulary.signature,
        len(vocabulary),
    )
    assert loaded.encode(TEXTS[0]) == vocabulary.encode(TEXTS[0])


def test_transformers_opens_it_too(tmp_path: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    BPE.save(tmp_path)
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    assert theirs(TEXTS[0], add_special_tokens=False).input_ids == BPE.encode(TEXTS[0])


def test_no_file_a_cut_one_and_somebody_elses(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no vocabulary in"):
        Vocabulary.load(tmp_path)
    BPE.save(tmp_path)
    file = tmp_path / "tokenizer.json"
    whole = file.read_text(encoding="utf-8")
    file.write_text(whole[: len(whole) // 2], encoding="utf-8")
    with pytest.raises(DataError, match="cut short"):
        Vocabulary.load(tmp_path)
    file.write_text(whole.replace("<sep>", "<mask>"), encoding="utf-8")
    with pytest.raises(DataError, match="not made by Palaver"):
        Vocabulary.load(tmp_path)


def test_too_small_or_too_little_text() -> None:
    with pytest.raises(UserError, match="261 tokens or more, found 100"):
        Vocabulary.train(TEXTS, kind="bpe", size=100)
    with pytest.raises(DataError, match="not enough text"):
        Vocabulary.train([], kind="word", size=100)
    with pytest.raises(UserError, match="no vocabulary of kind"):
        Vocabulary.train(TEXTS, kind="letters", size=300)  # type: ignore[arg-type]
