"""Our checkpoints as systems: conditions, truncation, and replies that depend on the request alone."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from palaver.errors import DataError, UserError
from palaver.generation.checkpoint import CheckpointSystem
from palaver.generation.decode import Decoding
from palaver.schema import Dialogue, Request, Turn

Talk = Callable[..., Dialogue]
SAMPLE = Decoding(method="sample", top_p=0.95, no_repeat_ngram=3)


def test_replies_do_not_depend_on_batch_and_order(checkpoints: Path, talk: Talk) -> None:
    system = CheckpointSystem(checkpoints / "speaker", decoding=SAMPLE, dtype="float64")
    texts = ["hello there", "i am fine , thanks", "pizza", "what do you like to eat ?", "the moon"]
    requests = [
        Request(talk(*texts[: i + 1], id=f"d{i}"), speaker=name)
        for i in range(5)
        for name in ("Joey", "Ross")
    ]
    together = dict(zip(requests, system.reply(requests), strict=True))
    shuffled = list(requests)
    random.Random(1).shuffle(shuffled)
    system.batch_size = 3
    for request, reply in zip(shuffled, system.reply(shuffled), strict=True):
        assert reply.text == together[request].text
        assert reply.logprob == pytest.approx(together[request].logprob, abs=1e-9)
    (alone,) = system.reply(requests[3:4])
    assert alone.text == together[requests[3]].text
    assert len({reply.text for reply in together.values()}) > 3


def test_keys_and_seeds_change_samples(checkpoints: Path, talk: Talk) -> None:
    system = CheckpointSystem(checkpoints / "plain", decoding=SAMPLE)
    texts = [system.reply([Request(talk("hello there"), key=key)])[0].text for key in (1, 1, 2, 3)]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1
    ids = [system.reply([Request(talk("hello there", id=name))])[0].text for name in "abcd"]
    assert len(set(ids)) > 1


def test_logprob_is_that_of_the_model(checkpoints: Path, talk: Talk) -> None:
    import torch

    from palaver.text.vocabulary import EOS

    system = CheckpointSystem(checkpoints / "plain", dtype="float64", decoding=SAMPLE)
    for i in range(4):
        (reply,) = system.reply([Request(talk("what do you like ?"), key=i)])
        tokens = system.vocabulary.encode(reply.text)
        ended = [*tokens, EOS] if len(tokens) < 12 else tokens
        if len(tokens) != reply.n_tokens:
            continue  # text that is cut into other tokens when read again
        context = torch.tensor([system.vocabulary.encode("what do you like ?")])
        loss = system.model(context, torch.tensor([ended]))
        assert reply.logprob == pytest.approx(-float(loss.nll), rel=1e-5)


def test_speakers(checkpoints: Path, talk: Talk) -> None:
    system = CheckpointSystem(checkpoints / "speaker", name="friends")
    with pytest.raises(UserError, match="friends needs to know who speaks") as caught:
        system.reply([Request(talk("hi"))])
    assert "Joey, Monica, Ross" in caught.value.hint
    with pytest.raises(UserError, match="did you mean 'Monica'"):
        system.reply([Request(talk("hi"), speaker="Monika")])
    with pytest.raises(UserError, match="friends takes no personality"):
        system.reply([Request(talk("hi"), ocean=(4.0,) * 5)])
    replies = {n: system.reply([Request(talk("hello"), speaker=n)])[0].logprob for n in system.speakers}
    assert len(set(replies.values())) == 3


def test_personalities(checkpoints: Path, talk: Talk) -> None:
    system = CheckpointSystem(checkpoints / "personality")
    with pytest.raises(UserError, match="needs a personality") as caught:
        system.reply([Request(talk("hi"))])
    assert "--speaker, one of Joey" in caught.value.hint
    with pytest.raises(UserError, match="not OCEAN scores"):
        system.reply([Request(talk("hi"), ocean=(1.0, 8.0))])
    with pytest.raises(UserError, match="does not know the speaker 'Ross'"):
        system.reply([Request(talk("hi"), speaker="Ross")])
    by_name, by_scores, other = system.reply(
        [
            Request(talk("hi"), speaker="Joey"),
            Request(talk("hi"), ocean=(6.0, 2.0, 6.0, 5.0, 3.0)),
            Request(talk("hi"), ocean=(1.0, 7.0, 1.0, 7.0, 1.0)),
        ]
    )
    assert by_name.text == by_scores.text
    assert by_name.logprob == pytest.approx(by_scores.logprob, rel=1e-5)
    assert by_name.logprob != pytest.approx(other.logprob, rel=1e-5)


def test_knowledge_with_and_without(checkpoints: Path, talk: Talk) -> None:
    system = CheckpointSystem(checkpoints / "knowledge", dtype="float64")
    asked = [
        Request(talk("hello there"), knowledge="the moon is far away"),
        Request(talk("hello there")),
        Request(talk("hello there"), knowledge=""),
    ]
    told, plain, empty = system.reply(asked)
    assert plain.text == empty.text
    assert told.logprob != pytest.approx(plain.logprob, rel=1e-5)
    (alone,) = system.reply(asked[:1])
    assert told.text == alone.text
    assert told.logprob == pytest.approx(alone.logprob)
    system.reply([Request(talk("hello"), knowledge="cheese " * 9)])
    assert any("first 8 tokens" in note for note in system.notes)


def test_longer_replies_than_the_model_gives_are_not_promised(checkpoints: Path) -> None:
    longest = CheckpointSystem(checkpoints / "plain").config.max_response
    assert not len(CheckpointSystem(checkpoints / "plain", decoding=Decoding(max_length=longest)).notes)
    system = CheckpointSystem(checkpoints / "plain", decoding=Decoding(max_length=500))
    assert list(system.notes) == [f"plain replies with {longest} tokens at most, although max_length is 500"]


def test_a_plain_model_takes_nothing(checkpoints: Path, talk: Talk) -> None:
    system = CheckpointSystem(checkpoints / "plain")
    for condition in ({"speaker": "Joey"}, {"ocean": (4.0,) * 5}, {"knowledge": "x"}):
        with pytest.raises(UserError, match="plain takes no"):
            system.reply([Request(talk("hi"), **condition)])  # type: ignore[arg-type]
    with pytest.raises(UserError, match="nothing to reply to"):
        system.reply([Request(talk())])
    assert system.reply([]) == []


def test_a_hundred_thousand_words(checkpoints: Path, talk: Talk) -> None:
    system = CheckpointSystem(checkpoints / "plain")
    long, short = "moon cheese " * 50_000 + "hello there", "moon cheese " * 24 + "hello there"
    one, same = system.reply([Request(talk(long), key=1), Request(talk(short), key=1)])
    assert one.text == same.text
    many = talk(*["hello there"] * 5_000)
    assert system.reply([Request(many)])[0].n_tokens
    assert list(system.notes) == [
        "plain reads the last 50 tokens of a history, not those before",
        "plain stops a reply after 12 tokens, whole or not",
    ]
    short = CheckpointSystem(checkpoints / "plain", decoding=Decoding(max_length=2, min_length=2))
    short.reply([Request(talk("hi"))])
    assert "after 2 tokens, whole or not; a larger max_length lets it go on" in next(iter(short.notes))


@pytest.mark.parametrize("text", ["日本語 中文", "😀😀", "\u2028 \x00", "zxqw vbnm", "</s> <pad>"])
def test_text_outside_the_vocabulary(text: str, checkpoints: Path, talk: Talk) -> None:
    for name in ("plain", "knowledge"):
        (reply,) = CheckpointSystem(checkpoints / name).reply([Request(talk("hi", text))])
        assert isinstance(reply.text, str)
        assert reply.n_tokens


def test_settings_tell_checkpoints_apart(checkpoints: Path, tmp_path: Path) -> None:
    shutil.copytree(checkpoints / "plain", tmp_path / "copy")
    one, two = CheckpointSystem(checkpoints / "plain"), CheckpointSystem(tmp_path / "copy")
    assert one.settings == two.settings
    assert one.settings["model"] != CheckpointSystem(checkpoints / "speaker").settings["model"]
    assert one.settings != CheckpointSystem(checkpoints / "plain", decoding=SAMPLE).settings


def test_a_checkpoint_cut_short(checkpoints: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cut"
    shutil.copytree(checkpoints / "plain", folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(DataError, match="damaged or cut short"):
        CheckpointSystem(folder)


@pytest.mark.parametrize(
    ("device", "word"),
    [("cuda:99", "there"), ("gpu", "no device 'gpu'"), ("mps", "none"), ("meta", "no device 'meta'")],
)
def test_devices_that_are_not_there(device: str, word: str, checkpoints: Path) -> None:
    import torch

    if device == "mps" and torch.backends.mps.is_available():
        pytest.skip("there is one")
    with pytest.raises(UserError, match=word):
        CheckpointSystem(checkpoints / "plain", device=device)


def test_half_characters_are_read_as_question_marks(checkpoints: Path) -> None:
    system = CheckpointSystem(checkpoints / "knowledge")

    def request(text: str, knowledge: str) -> Request:
        turn = Turn.model_construct(speaker="a", text=text, knowledge=(), labels={})
        dialogue = Dialogue.model_construct(
            id="d", turns=(turn,), speakers=("a",), source="", knowledge=None, labels={}
        )
        return Request(dialogue, knowledge=knowledge)

    assert system.reply([request("hello \ud800", "\udcff moon")]) == system.reply(
        [request("hello ?", "? moon")]
    )
    assert "not whole" in "".join(system.notes)


@pytest.mark.parametrize("method", ["greedy", "sample", "beam"])
@pytest.mark.parametrize("name", ["plain", "speaker", "knowledge"])
def test_pieces_that_are_streamed_are_the_reply(
    name: str, method: Literal["greedy", "sample", "beam"], checkpoints: Path, talk: Talk
) -> None:
    system = CheckpointSystem(checkpoints / name, decoding=Decoding(method=method, seed=1))
    knowledge = "the moon is far away" if name == "knowledge" else None
    request = Request(
        talk("hello there"), speaker="Ross" if name == "speaker" else None, knowledge=knowledge, key=2
    )
    pieces: list[str] = []
    assert system.stream(request, pieces.append) == system.reply([request])[0]
    assert "".join(pieces) == system.reply([request])[0].text
    assert len(pieces) == 1 if method == "beam" else len(pieces) > 1


def test_weights_of_16_bits_reply_as_those_of_32(checkpoints: Path, talk: Talk) -> None:
    exact, rounded = (CheckpointSystem(checkpoints / "knowledge", dtype=d) for d in ("float32", "int16"))
    requests = [Request(talk(text, id=text)) for text in ("hello there", "what do you like ?", "pizza")]
    expected = [reply.text for reply in exact.reply(requests)]
    assert [reply.text for reply in rounded.reply(requests)] == expected
    assert [rounded.reply([request])[0].text for request in requests] == expected
