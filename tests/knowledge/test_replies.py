"""The sentence for a reply comes from what the one who replies had read."""

from __future__ import annotations

import pytest
from tests.knowledge.conftest import dialogue, reading_set

from palaver.errors import UserError
from palaver.knowledge.candidates import reading_sentences
from palaver.knowledge.replies import NextTurn, ReplyKnowledge
from palaver.knowledge.selector import make_selector
from palaver.schema import Dialogue

pytest.importorskip("sklearn")


def start(whole: Dialogue, n: int) -> Dialogue:
    return whole.model_copy(update={"turns": whole.turns[:n]})


def test_the_oracle_finds_what_selection_for_the_corpus_finds(talk: Dialogue) -> None:
    knowledge = ReplyKnowledge(make_selector("oracle", reading_sentences([talk])))
    turns = [NextTurn(start(talk, i), talk.turns[i].speaker, talk.turns[i].text) for i in range(1, 5)]
    assert knowledge.choose(turns) == [
        "The ship left the harbour of Genoa in 1492.",
        "An octopus can open a jar from the inside.",
        "A piano has eighty-eight keys.",
        "It has three hearts and blue blood.",
    ]
    assert (knowledge.n_turns, knowledge.n_without_sentences) == (4, 0)


def test_the_one_who_did_not_speak_last_replies(talk: Dialogue) -> None:
    knowledge = ReplyKnowledge(make_selector("tfidf", reading_sentences([talk])))
    named = knowledge.choose([NextTurn(start(talk, 3), "bob"), NextTurn(start(talk, 2), "ann")])
    assert knowledge.choose([NextTurn(start(talk, 3)), NextTurn(start(talk, 2))]) == named
    assert knowledge.choose([NextTurn(start(talk, 1))])[0] is not None  # bob has not spoken yet


def test_nothing_to_read_is_counted(talk: Dialogue) -> None:
    knowledge = ReplyKnowledge(make_selector("bm25", reading_sentences([talk])))
    bare, empty = dialogue("bare", sets=()), dialogue("empty", sets=(reading_set("empty", ""),))
    chosen = knowledge.choose([NextTurn(bare), NextTurn(talk), NextTurn(empty)])
    assert [sentence is None for sentence in chosen] == [True, False, True]
    assert (knowledge.n_turns, knowledge.n_without_sentences) == (3, 2)


def test_the_oracle_needs_a_reply(talk: Dialogue) -> None:
    with pytest.raises(UserError, match="needs the true reply"):
        ReplyKnowledge(make_selector("oracle", reading_sentences([talk]))).choose([NextTurn(talk)])
