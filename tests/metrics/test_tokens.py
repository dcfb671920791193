"""Texts as numbers: tokens of chunks are the tokens of the text, in every script."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.metrics.examples import Example, Examples
from palaver.metrics.metric import METRICS
from palaver.metrics.tokens import _TOKENISERS, Rule, Vocabulary, _tokens_13a

SCRIPTS = {
    "Latin": "Where are you going tomorrow, my friend?",
    "Greek": "Πού πηγαίνεις αύριο, φίλε μου;",
    "Cyrillic": "Куда ты идёшь завтра, мой друг?",
    "Arabic": "إلى أين أنت ذاهب غدًا يا صديقي؟",
    "Hebrew": "לאן אתה הולך מחר, חבר שלי?",
    "Devanagari": "कल तुम कहाँ जा रहे हो, मेरे दोस्त?",
    "Thai": "พรุ่งนี้คุณจะไปไหนเพื่อนของฉัน",
    "Chinese": "我的朋友，你明天要去哪里？",
    "Japanese": "明日はどこへ行きますか、友よ。",
    "Korean": "내일 어디에 가니, 나의 친구야?",
    "Tamil": "நாளை நீ எங்கே போகிறாய், என் நண்பா?",
    "Khmer": "ស្អែកនេះអ្នកទៅណាមិត្តខ្ញុំ",
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_an_identical_pair_scores_one_and_a_different_one_less(script: str) -> None:
    text = SCRIPTS[script]
    half = text[: len(text) // 2]
    examples = Examples.of([Example(text, (text,), text), Example(half, (text,), text)])
    overlap = [m.name for m in map(METRICS.get, METRICS) if m.needs and not m.model]
    overlap.remove("knowledge_overlap_2")
    assert len(overlap) >= 9  # the one left out is undefined where a text is one word to `words`
    for name in overlap:
        metric = METRICS.get(name)
        assert metric.scores is not None
        same, part = metric.scores(examples) / (100 if name in ("bleu", "chrf") else 1)
        assert same == pytest.approx(1), name
        if name in ("bleu", "chrf", "rouge_1", "rouge_l"):
            assert 0 < part < 1, name
        table = metric.table(examples)[:1]
        figure = metric.value(table[0], table[:, 0] * 0 + 1)
        assert figure / (100 if name in ("bleu", "chrf") else 1) == pytest.approx(1), name


odd = st.text(alphabet="aaaBBttheu.,!'n-&;1  \n\tهสé\u0301\u200b…’“世😀_ΣΑ²", max_size=20)


@settings(max_examples=300, deadline=None)
@given(st.lists(odd, max_size=4))
def test_the_tokens_of_chunks_are_those_of_the_text(said: list[str]) -> None:
    vocabulary = Vocabulary()
    parts = [vocabulary.add(said[:2]), vocabulary.add(said[2:])]  # the vocabulary grows
    for rule in get_args(Rule):
        names: list[str] = []
        for part in parts:
            tokens = part.tokens(rule)
            names = list(vocabulary.numbers)
            place = 0 if part is parts[0] else 2
            for i in range(len(part)):
                found = [names[token] for token in tokens.ids[tokens.starts[i] : tokens.starts[i + 1]]]
                text = said[place + i]
                if rule == "13a":
                    plain = text.rstrip().replace("-\n", "").replace("\n", " ")
                    [whole] = _tokens_13a(f" {plain} ")
                else:
                    whole = _TOKENISERS[rule](text)
                assert found == whole, (rule, text)
