from __future__ import annotations

from pathlib import Path

import pytest

from palaver.errors import MissingExtra
from palaver.probes import verbs
from palaver.probes.rules.synonym import PAIRS, WIDER, best_synonym


def test_senses_come_by_frequency() -> None:
    found = verbs.senses("talk")
    assert [s.number for s in found] == list(range(1, len(found) + 1))
    assert "speak" in verbs.synset(found[0].synset).words + verbs.synset(found[1].synset).words


def test_frames() -> None:
    slumber = verbs.synset(verbs.senses("sleep")[0].synset).frames["slumber"]
    assert slumber & verbs.INTRANSITIVE
    assert not slumber & verbs.TRANSITIVE


def test_the_verbs_above() -> None:
    above = verbs.synset(verbs.senses("slice")[0].synset).broader
    assert any("cut" in verbs.synset(number).words for number in above)
    assert best_synonym("slice", "o") == "cut"
    assert best_synonym("slice", "n") is None, "the table has it with an object only"
    assert best_synonym("jump", "n") == "leap", "a synonym comes before the verb above"


def test_kinds_of_nouns() -> None:
    kinds = [verbs.kind_of_noun(w) for w in ("dog", "man", "guitar", "week", "xyzzy")]
    assert kinds == ["animal", "person", "artifact", "time", ""]


@pytest.mark.parametrize("verb", [*PAIRS, *WIDER])
def test_every_pair_is_in_wordnet_and_can_come_out(verb: str) -> None:
    for synonym, patterns in (PAIRS | WIDER)[verb].items():
        assert all(best_synonym(verb, letter) == synonym for letter in patterns)


def test_no_verb_is_in_both_tables() -> None:
    assert not PAIRS.keys() & WIDER.keys()


def test_missing_files_are_a_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(Path, "is_file", lambda self: False)
    with pytest.raises(MissingExtra, match="WordNet"):
        verbs.find_wordnet()


def test_a_named_folder_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("data.verb", "index.sense"):
        (tmp_path / name).touch()
    monkeypatch.setenv("WNSEARCHDIR", str(tmp_path))
    assert verbs.find_wordnet() == tmp_path
