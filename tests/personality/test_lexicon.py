from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import DataError
from palaver.personality.lexicon import open_lexicon, parse_dic, parse_lexicon, read_lexicon

SMALL = """
[joy]
words = "happi* glad *ful !happiness !awe*"
[grief]
words = "sad*"
[mood]
includes = ["joy", "grief"]
words = "mood*"
[all]
includes = ["mood"]
[common]
each = "the and"
"""


def names(text: str, word: str) -> list[str]:
    lexicon = parse_lexicon(text, "small")
    return [lexicon.categories[c] for c in lexicon.match(word)]


def test_patterns_and_includes() -> None:
    assert names(SMALL, "happily") == ["joy", "mood", "all"]
    assert names(SMALL, "happiness") == []
    assert names(SMALL, "joyful") == ["joy", "mood", "all"]
    assert names(SMALL, "awful") == ["joy", "mood", "all"]  # does not begin with awe
    assert names(SMALL, "aweful") == []
    assert names(SMALL, "sad") == names(SMALL, "saddle") == ["grief", "mood", "all"]
    assert names(SMALL, "moods") == ["mood", "all"]
    assert names(SMALL, "the") == ["common:the"]
    assert names(SMALL, "theme") == names(SMALL, "ful'x") == []


def test_possessives_count_as_the_bare_word() -> None:
    assert names(SMALL, "gladness's") == []
    assert names(SMALL, "glad's") == ["joy", "mood", "all"]
    assert names(SMALL, "the's") == ["common:the"]


words = st.text("abc'", min_size=1, max_size=5).map(lambda w: w.strip("'")).filter(bool)


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from("xyz"), st.lists(st.tuples(st.sampled_from(["", "!"]), st.sampled_from("=^$"), words))
    ),
    st.lists(words, min_size=1, max_size=8),
)
def test_matches_brute_force(table: dict[str, list[tuple[str, str, str]]], tried: list[str]) -> None:
    kept = {
        c: [p for p in patterns if "''" not in p[2] and p[:2] != ("!", "$")] for c, patterns in table.items()
    }
    if not kept:
        return
    lines = []
    for category, patterns in kept.items():
        written = [sign + {"=": f"{w}", "^": f"{w}*", "$": f"*{w}"}[kind] for sign, kind, w in patterns]
        lines.append(f'[{category}]\nwords = "{" ".join(written)}"\n')
    lexicon = parse_lexicon("".join(lines), "drawn")

    def fits(word: str, kind: str, bare: str) -> bool:
        return {"=": word == bare, "^": word.startswith(bare), "$": word.endswith(bare)}[kind]

    def expected(word: str) -> list[str]:
        return [
            c
            for c, patterns in kept.items()
            if any(fits(word, k, w) for s, k, w in patterns if not s)
            and not any(fits(word, k, w) for s, k, w in patterns if s)
        ]

    for word in tried:
        assert [lexicon.categories[c] for c in lexicon.match(word)] == expected(word)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a", "not TOML"),
        ("", "names no category"),
        ("a = 1", "expected a table"),
        ('[a]\nword = "x"', "unknown key 'word'"),
        ('[a]\nwords = "a*b ** x!"', "'a*b' is no word"),
        ('[alpha]\nincludes = ["alfa"]', "did you mean 'alpha'"),
    ],
)
def test_a_broken_lexicon_is_explained(text: str, said: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_lexicon(text, "mine.toml")
    assert said in str(caught.value)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(DataError) as caught:
        parse_lexicon('[a]\nwords = "a*b"\nincludes = ["q"]\n[b]\nwords = "-"', "mine.toml")
    assert len(caught.value.problems) == 3


def test_the_open_lexicon_is_rich_and_says_what_one_expects() -> None:
    lexicon = open_lexicon()
    categories = [c for c in lexicon.categories if ":" not in c]
    assert len(categories) >= 45
    assert sum(len(group) for group in (lexicon.exact, lexicon.begins)) > 4000

    def of(word: str) -> set[str]:
        return {lexicon.categories[c] for c in lexicon.match(word)}

    assert {"i", "self", "pronoun", "auxiliary", "contraction"} <= of("i'm")
    assert {"anger", "negative", "affect"} <= of("furious")
    assert {"positive_feeling", "positive", "affect"} <= of("happiness")
    assert {"past"} <= of("walked")
    assert "past" not in of("need") | of("indeed")
    assert {"family", "social"} <= of("mother's")
    assert of("xyzzy") == set()
    for category in range(len(lexicon.categories)):
        held = any(category in c for g in (lexicon.exact, lexicon.begins, lexicon.ends) for c in g.values())
        assert held or any(category in h for c, h in lexicon.includes.items() if c != category), category


def test_the_signature_knows_what_a_word_counts_as() -> None:
    a, b = parse_lexicon(SMALL, "a"), parse_lexicon(SMALL.replace("glad", "gladly"), "a")
    assert a.signature == parse_lexicon(SMALL, "b").signature != b.signature


DIC = "%\n1\tPosemo\n2\tAffect\n%\nhappy\t1\t2\nhapp*\t2\nlove*\t1 2\n"


@pytest.mark.parametrize(
    "text",
    [
        DIC,
        DIC[2:],
        DIC.replace("\t", "  "),
        DIC.replace("\n", "\r\n"),
        DIC.replace("Posemo", "Posemo (Positive)"),
    ],
)
def test_dic_layouts(text: str) -> None:
    lexicon = parse_dic(text, "liwc.dic")
    assert lexicon.categories == ("Posemo", "Affect")
    assert lexicon.match("happy") == (0, 1)
    assert lexicon.match("happily") == (1,)
    assert lexicon.match("lovely") == (0, 1)
    assert lexicon.match("hap") == ()
    assert lexicon.notes == ()


def test_dic_the_most_particular_entry_decides() -> None:
    lexicon = parse_dic("%\n1 a\n2 b\n3 c\n%\nab* 1\nabc* 2\nabcd 3\n", "x")
    assert [lexicon.match(w) for w in ("abx", "abcx", "abcd", "abcde", "abcd's")] == [
        (0,),
        (1,),
        (2,),
        (1,),
        (1,),
    ]


def test_dic_every_broken_line_is_named() -> None:
    text = "%\n1\tA\n1\tB\nx\tC\n2\tA\n%\nword\t1\nnone\nbad\t7\nodd\tq\n*x\t1\na*b\t1\n"
    with pytest.raises(DataError) as caught:
        parse_dic(text, "liwc.dic")
    said = "\n".join(caught.value.problems)
    for number in (3, 4, 5, 8, 9, 10, 11, 12):
        assert f"line {number}: " in said
    assert len(caught.value.problems) == 8
    assert "in line 2" in said


@pytest.mark.parametrize(
    "text", ["", "no marks", "%\n%\n", "%\n1 a\n%\n", "head\n%\n1 a\n%\nx 1\n", DIC + "%\n"]
)
def test_dic_that_is_none(text: str) -> None:
    with pytest.raises(DataError):
        parse_dic(text, "liwc.dic")


def test_dic_what_cannot_be_used_is_counted() -> None:
    lexicon = parse_dic("%\n1 a\n2 b\n%\nkind of 1\n:) 2\nlike (02 134)125/464 1\nx 2\nwell-being 1\n", "x")
    assert lexicon.notes == (
        "2 entries of several words, left out",
        "1 entries that are no words, left out",
        "1 entries with conditions, taken without them",
    )
    assert lexicon.match("like") == (0,)


def test_read_lexicon_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.dic").write_text(DIC, encoding="utf-16")
    (tmp_path / "b.toml").write_text(SMALL)
    assert read_lexicon(tmp_path / "a.dic").kind == "liwc"
    assert read_lexicon(tmp_path / "b.toml").kind == "open"
