from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import DataError, UserError
from palaver.probes.recipe import SETS, Recipe, Triplet
from palaver.probes.triplet_files import read_triplets, write_triplets
from palaver.probes.triplets import case_control, generate, similarity

HEADER = """pair_ID sentence_A sentence_B entailment_label relatedness_score entailment_AB entailment_BA
sentence_A_original sentence_B_original"""
PAIRS = [
    (
        "1",
        "A man is jumping over a low wall",
        "A man is leaping over a low wall",
        "ENTAILMENT",
        "4.8",
        "A_entails_B",
        "B_entails_A",
    ),
    (
        "2",
        "A dog is chasing a boy in the park",
        "A dog is running after a boy in a park",
        "ENTAILMENT",
        "4.1",
        "A_entails_B",
        "B_entails_A",
    ),
    (
        "3",
        "A woman is talking to a man",
        "There is no woman talking to a man",
        "CONTRADICTION",
        "4.5",
        "A_contradicts_B",
        "B_contradicts_A",
    ),
    (
        "4",
        "A girl is helping a woman in the garden",
        "A girl is assisting a woman in the garden",
        "ENTAILMENT",
        "4.9",
        "A_entails_B",
        "B_neutral_A",
    ),
]
NEWS = [
    '"We made our own decision," he said.',
    "Octel said the purchase was expected.",
    "The police arrested two men.",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [
        "\t".join(HEADER.split()),
        *("\t".join([*pair, "The cat sees a dog.", "The girls kissed a boy."]) for pair in PAIRS),
    ]
    with gzip.open(tmp_path / "SICK_full.txt.gz", "wt") as file:
        file.write("\n".join(rows) + "\n")
    news = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    news += f"1\t10\t11\t{NEWS[0]}\t{NEWS[1]}\n"
    (tmp_path / "msr_paraphrase_train.txt").write_text(news, encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "treebank.zip", "w") as archive:
        archive.writestr("treebank/raw/wsj_0001", f".START \n\n{NEWS[2]}\n")
    return tmp_path


def test_the_sets_from_small_corpora(folder: Path) -> None:
    made = generate(folder, engine="local")
    counted = [t for t in made.triplets if not t.variant]
    by_set: dict[str, list[Triplet]] = {name: [t for t in counted if t.set == name] for name in SETS}
    assert made.made == {name: len(found) for name, found in by_set.items()}

    detection = {t.source: t for t in by_set["negation-detection"]}
    jump = detection["A man is jumping over a low wall"]
    assert (jump.original, jump.plus, jump.star) == (
        "a man is jumping over a low wall",
        "a man is leaping over a low wall",
        "a man is not jumping over a low wall",
    )
    assert (jump.plus_rule, jump.star_rule, jump.corpus) == ("synonym", "not-negation", "sick")
    assert (jump.pair, jump.relation) == ("jump, leap", "synonym")
    assert detection[NEWS[2]].source_id == "wsj_0001:3"
    (contracted,) = [t for t in made.triplets if t.id == f"{jump.id}:contracted"]
    assert contracted.star == "a man isn't jumping over a low wall"

    variants = {t.source: t.star for t in by_set["negation-variants"]}
    assert variants["A woman is talking to a man"] == "there is no woman talking to a man"

    clauses = {t.source: t for t in by_set["clause-relatedness"]}
    assert clauses[NEWS[0]].original == "we made our own decision, he said."
    assert clauses[NEWS[0]].plus == "we made our own decision."
    assert clauses[NEWS[0]].star == "we didn't make our own decision, he said."
    assert (clauses[NEWS[0]].case, clauses[NEWS[1]].case) == ("b", "a")

    arguments = {t.source: t for t in by_set["argument-sensitivity"]}
    assert arguments["A woman is talking to a man"].star == "a man is talking to a woman"
    assert arguments["The girls kissed a boy."].corpus == "sick-captions"
    order = [t.corpus for t in by_set["argument-sensitivity"]]
    assert order == sorted(order, key=lambda corpus: corpus == "sick-captions"), "fillers come last"

    (point,) = by_set["fixed-point-reorder"]  # pair 2 is not related enough, 3 a contradiction, 4 one-sided
    assert point.plus == "a man is leaping over a low wall"
    assert point.star == "low wall a man is jumping over a"
    others = {t.variant: t.star for t in made.triplets if t.set == point.set and t.variant}
    assert others == {
        "fronted": "a low wall a man is jumping over",
        "article": "man is jumping over a low wall a",
    }


def test_words_moved_about_are_the_same_words_with_the_same_capitals(folder: Path) -> None:
    for t in generate(folder, engine="local").triplets:
        if t.set == "fixed-point-reorder":
            assert sorted(t.star.split()) == sorted(t.original.split())


def test_case_control(folder: Path) -> None:
    made = generate(folder, engine="local")
    controls = case_control(made.triplets)
    assert len(controls) == sum(made.made.values())
    by_id = {t.id: t for t in made.triplets}
    for control in controls:
        triplet = by_id[control.id.removesuffix(":case")]
        assert (control.set, control.original, control.plus) == (triplet.set, triplet.original, triplet.plus)
        assert control.star != control.original
        assert control.star.lower() == control.original.lower()


def test_the_seed_decides(folder: Path) -> None:
    few = tuple((name, 2) for name in SETS)
    first, again, other = (
        generate(folder, Recipe(seed=seed, sizes=few), engine="local").triplets for seed in (0, 0, 5)
    )
    assert first == again
    assert first != other


def test_negation_detection_takes_captions_first_and_news_where_they_run_out(folder: Path) -> None:
    for seed in range(4):
        found = generate(folder, Recipe(seed=seed), engine="local").triplets
        order = [t.corpus for t in found if t.set == "negation-detection"]
        assert {"sick", "treebank"} <= set(order)
        assert order == sorted(order, key=lambda corpus: corpus != "sick")


def test_the_folder_above_will_do(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    above = tmp_path_factory.mktemp("data")
    (above / "sentences").symlink_to(folder)
    few = Recipe(sizes=tuple((name, 1) for name in SETS))
    assert generate(above, few, engine="local").triplets == generate(folder, few, engine="local").triplets


def test_a_text_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(
        "The doctor helped the patient.\n\nA dog is sleeping.\nLes enfants jouent dans le jardin.\n"
    )
    made = generate(None, texts=[path], engine="local")
    assert made.made["argument-sensitivity"] == 1
    assert made.made["fixed-point-reorder"] == 0
    assert made.triplets[-1].source_id == "line 1"
    assert made.reasons["passive"]["not-english"] == 1


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no sentences"):
        generate(tmp_path, engine="local")
    (tmp_path / "blank.txt").write_text("\n\n")
    with pytest.raises(DataError, match="every line is blank"):
        generate(None, texts=[tmp_path / "blank.txt"], engine="local")


@pytest.mark.parametrize("name", ["t.jsonl", "t.csv", "t.parquet"])
def test_files(name: str, tmp_path: Path) -> None:
    triplets = [
        Triplet(
            "negation-detection",
            "a",
            'S, "quoted"',
            "S+\nin two lines",
            "S*é",
            "synonym",
            "not-negation",
            "sick",
            "1A",
            "s",
        ),
        Triplet(
            "clause-relatedness", "b", "S", "S+", "S*", "clause", "not-negation", "msrp", "2", "s", case="a"
        ),
    ]
    write_triplets(triplets, tmp_path / name)
    assert read_triplets(tmp_path / name) == triplets


def test_files_of_ones_own_and_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"set": "argument-sensitivity", "original": "a", "plus": "b", "star": "c"}\n')
    (found,) = read_triplets(path)
    assert (found.plus_rule, found.star_rule, found.corpus) == ("passive", "reorder", "mine")
    path.write_text('{"set": "argument", "original": "a", "plus": "b", "star": "c"}\n{"set": "x"}\n')
    with pytest.raises(DataError) as wrong:
        read_triplets(path)
    assert len(wrong.value.problems) == 2
    path.write_text("[1]\nnot json\n")
    with pytest.raises(DataError, match="line 1: expected a JSON object"):
        read_triplets(path)
    path.write_text(
        '{"set": "argument-sensitivity", "original": "a", "plus": "b", "star": "c"}\n[1]\nnot json\n'
    )
    with pytest.raises(DataError) as wrong:
        read_triplets(path)
    assert [problem[:5] for problem in wrong.value.problems] == ["row 2", "row 3"]
    with pytest.raises(DataError, match="no triplets"):
        write_triplets([], path)


words = st.lists(st.sampled_from("abcd"), max_size=6)


def distance(a: list[str], b: list[str]) -> int:
    """Levenshtein by its definition."""
    if not a or not b:
        return len(a) + len(b)
    return min(distance(a[1:], b) + 1, distance(a, b[1:]) + 1, distance(a[1:], b[1:]) + (a[0] != b[0]))


@settings(max_examples=50, deadline=None)
@given(words, words)
def test_similarity_is_levenshtein(a: list[str], b: list[str]) -> None:
    assert similarity(a, b) == pytest.approx(1 - distance(a, b) / max(len(a), len(b), 1))


def test_sick_with_a_missing_column(tmp_path: Path) -> None:
    (tmp_path / "SICK.txt").write_text("pair_ID\tsentence_A\n1\tx\n")
    with pytest.raises(DataError, match="sentence_B"):
        generate(tmp_path, engine="local")


def test_the_recipe_has_a_signature() -> None:
    assert Recipe().signature == Recipe().signature != Recipe(seed=1).signature
    assert [s.paper_size for s in SETS.values()] == [674, 516, 567, 445, 623]
