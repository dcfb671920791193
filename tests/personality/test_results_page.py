"""The page on characters says what its results files say."""

from __future__ import annotations

from typing import Any

import pytest
from tests.results_pages import RESULTS, decimals, interval, read_page, read_results, table_rows

from palaver.corpora.personalities import TRAITS
from palaver.reproduce.personality import EXTREMES, SHOWS, TABLE_1, TABLE_2

PAGE = read_page("personality")
AUDIT = read_results("recogniser")
MEASURED = read_results("personality")
ON_SMOLLM = read_results("personality-smollm")
GUIDED = read_results("personality-guidance")
MODELS = tuple(name for name in MEASURED["models"]["Friends"] if name != "transcripts")
PERSONALITY = tuple(name for name in MODELS if "personality" in name)


def transcript_rows() -> list[list[str]]:
    """Paper and ours of each show."""
    labels = {
        "shuffled labels (baseline)": ("Baseline", "shuffled labels"),
        "pseudo-characters": ("", "pseudo-characters"),
        "transcripts (gold)": ("Gold", "characters"),
        "by episode": ("", "characters by group"),
        "pseudo-characters by episode": ("", "pseudo-characters by group"),
        "200 frequent words, not scaled": ("Words", "words, unscaled"),
        "the same without stop words": ("Words, no stop words", "words without stop words, unscaled"),
        "scaled like the traits": ("", "words"),
        "scaled, by episode": ("", "words by group"),
    }
    rows = []
    for label, (of_paper, condition) in labels.items():
        row = [label]
        for show, title in SHOWS.items():
            paper = decimals(TABLE_1[show][of_paper].f1) if of_paper else "–"
            row += [paper, decimals(MEASURED["transcripts"][title]["conditions"][condition])]
        rows.append(row)
    return rows


def model_rows(measured: dict[str, Any] = MEASURED) -> list[list[str]]:
    """F1 and pseudo-characters, then both by context, of each show."""
    rows = []
    for name in measured["models"]["Friends"]:
        row = [name]
        for title in SHOWS.values():
            numbers = measured["models"][title][name]
            row += [decimals(numbers[key]) for key in ("f1", "pseudo", "by_group", "pseudo_by_group")]
        rows.append(row)
    return rows


def smollm_rows() -> list[list[str]]:
    return model_rows(ON_SMOLLM)


def p_value(p: float) -> str:
    return "< .001" if p < 0.001 else decimals(p, 3)


def difference_rows() -> list[list[str]]:
    """What every pair of sources differs by."""
    rows = []
    pairs = [(test["a"], test["b"]) for test in MEASURED["tests"]["Friends"]]
    for a, b in pairs:
        row = [f"{a} − {b}"]
        for title in SHOWS.values():
            test = next(t for t in MEASURED["tests"][title] if (t["a"], t["b"]) == (a, b))
            row += [interval(test["difference"], test["low"], test["high"]), p_value(test["p_holm"])]
        rows.append(row)
    return rows


def classifier_rows() -> list[list[str]]:
    """F1 by group and its pseudo-characters, by classifier."""
    rows = []
    for classifier in MEASURED["classifiers"]["Friends"]:
        row = [classifier]
        for title in SHOWS.values():
            for numbers in MEASURED["classifiers"][title][classifier].values():
                row.append(f"{decimals(numbers['by_group'])} ({decimals(numbers['pseudo_by_group'])})")
        rows.append(row)
    return rows


def extreme_rows() -> list[list[str]]:
    extremes: dict[str, Any] = MEASURED["extremes"]
    rows = [
        ["average", decimals(TABLE_2["Average"].f1), *(decimals(extremes[m]["f1"]) for m in PERSONALITY)],
        [
            "by context (pseudo)",
            "–",
            *(
                f"{decimals(extremes[m]['by_group'])} ({decimals(extremes[m]['pseudo_by_group'])})"
                for m in PERSONALITY
            ),
        ],
    ]
    for name in EXTREMES:
        cells = [decimals(extremes[m]["types"][name]) for m in PERSONALITY]
        rows.append([name, decimals(TABLE_2[name].f1), *cells])
    return rows


def first_places(model: str, recogniser: str) -> int:
    """For how many of the five types the trait that was asked for is highest in that type."""
    traits = MEASURED["extremes"][model]["traits"][recogniser]
    highest = [max(traits, key=lambda who: traits[who][i]) for i in range(len(TRAITS))]
    return sum(who == name for who, name in zip(highest, EXTREMES, strict=True))


def matrix_rows(model: str, recogniser: str = "self-report") -> list[list[str]]:
    matrix = MEASURED["fidelity"][model][recogniser]["matrix"]
    return [[asked, *(interval(**_span(matrix[asked][shown])) for shown in TRAITS)] for asked in TRAITS]


def _span(cell: dict[str, float]) -> dict[str, float]:
    return {"value": cell["r"], "low": cell["low"], "high": cell["high"]}


def fidelity_rows() -> list[list[str]]:
    """The diagonal of each model by each recogniser, beside the control."""
    rows = []
    for model in PERSONALITY:
        for recogniser in ("self-report", "default"):
            numbers = MEASURED["fidelity"][model][recogniser]
            diagonal = [decimals(numbers["matrix"][trait][trait]["r"]) for trait in TRAITS]
            control = f"{decimals(numbers['shuffled_mean_r'])} (up to {decimals(numbers['shuffled_high'])})"
            rows.append([model, recogniser, *diagonal, decimals(numbers["mean_r"]), control])
    return rows


def perplexity_rows() -> list[list[str]]:
    rows = []
    for name, run in MEASURED["training"]["runs"].items():
        epochs = run["epochs"]
        best = min(epochs, key=lambda epoch: epoch["valid_ppl"]) if epochs else None
        cell = f"{best['valid_ppl_word']:.1f} (epoch {best['epoch']})" if best else "no epoch came to its end"
        ended = run["outcome"]
        why = "stopped for time" if ended["stopped"] else ended["reason"]
        rows.append([name, f"{ended['steps']:,}", cell, why])
    return rows


def held_out_rows() -> list[list[str]]:
    imitation, reports = AUDIT["imitation"], AUDIT["self_reports"]

    def three(values: list[float]) -> list[str]:
        return [decimals(v, 3) for v in values]

    return [
        ["default: correlation with the scores it imitates", *three(imitation["r"])],
        ["default: mean error, in points of the scale", *three(imitation["mean_error"])],
        ["always the mean: mean error", *three(imitation["mean_error_of_the_mean"])],
        ["default: mean error, in deviations of the scores", *three(imitation["error_in_deviations"])],
        ["default against the writers’ own answers, AUC", *three(reports["default"]["auc"])],
        ["self-report against the same, AUC", *three(reports["self-report"]["auc"])],
        ["correlation of both recognisers", *three(reports["agreement_of_both"])],
    ]


def audit_rows() -> list[list[str]]:
    rows = []
    for trait in TRAITS:
        pairs = [pair for pair in AUDIT["own_texts"] if pair["trait"] == trait]
        right = [
            sum(pair[name]["high"] > pair[name]["low"] for pair in pairs)
            for name in ("default", "self-report")
        ]
        rows.append([trait, f"{len(pairs)}", *map(str, right)])
    return rows


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("| F1 | Friends: paper |", transcript_rows),
        ("| F1 | Friends | pseudo |", model_rows),
        ("| on SmolLM2 |", smollm_rows),
        ("| difference of F1 by context |", difference_rows),
        ("| classifier |", classifier_rows),
        ("| F1 | paper | `xing-personality`", extreme_rows),
        ("| model | measured by |", fidelity_rows),
        ("| run | steps |", perplexity_rows),
        ("| on held-out writers |", held_out_rows),
        ("| trait | pairs |", audit_rows),
    ],
)
def test_the_page_quotes_the_results(header: str, rows: Any) -> None:
    assert table_rows(PAGE, header) == rows()


def test_the_matrix_is_that_of_the_best_model() -> None:
    shown = table_rows(PAGE, "| requested ↓ measured → |")
    means = {m: MEASURED["fidelity"][m]["self-report"]["mean_r"] for m in PERSONALITY}
    best = max(means, key=lambda m: means[m])
    assert shown == matrix_rows(best)
    assert f"The matrix of `{best}`" in PAGE


def test_what_the_text_says_about_the_tests() -> None:
    tests = [test for title in SHOWS.values() for test in MEASURED["tests"][title]]
    ours = sum(test["p_holm"] < 0.05 for test in tests)
    theirs = sum(test["p_of_the_papers_test"] < 0.05 for test in tests)
    assert f"finds {ours} of the {len(tests)} differences, the paper's test {theirs}" in " ".join(
        PAGE.split()
    )
    for title in SHOWS.values():
        for name in MODELS:
            row = MEASURED["models"][title][name]
            if row["answer"] == "yes":
                assert interval(row["difference"], row["low"], row["high"]) in PAGE
    not_told_apart = [
        (name, title)
        for title in SHOWS.values()
        for name in MODELS
        if MEASURED["models"][title][name]["answer"] != "yes"
    ]
    assert not_told_apart == [
        ("xing-speaker", "Friends"),
        ("xing-personality", "Friends"),
        ("xing-personality-wide", "Friends"),
        ("xing-personality", "The Big Bang Theory"),
    ]


def test_what_the_text_says_about_smollm() -> None:
    text = " ".join(PAGE.split())
    speaker = [ON_SMOLLM["models"][title]["smollm-speaker"]["by_group"] for title in SHOWS.values()]
    assert f"{decimals(speaker[0])} and {decimals(speaker[1])} by context" in text
    assert max(speaker) < 0.64
    for name in ("smollm-speaker", "smollm-personality"):
        for title in SHOWS.values():
            row = ON_SMOLLM["models"][title][name]
            assert interval(row["difference"], row["low"], row["high"]) in text
            is_told_apart = (name, title) != ("smollm-personality", "Friends")
            assert (row["answer"] == "yes") == is_told_apart
    personality = [ON_SMOLLM["models"][title]["smollm-personality"]["by_group"] for title in SHOWS.values()]
    assert personality[0] < 0.32
    assert personality[1] > 0.38
    epochs = ON_SMOLLM["training"]["runs"]["speaker-1"]["epochs"]
    assert f"held-out turns is {epochs[-1]['valid_ppl_word']:.1f}" in text


def test_what_guidance_does() -> None:
    speakers = [
        [
            f"{row['guidance']:g}",
            *(decimals(row[key]) for key in ("f1", "pseudo", "by_group", "pseudo_by_group")),
            *(f"{row['nats_per_token']:.2f}", f"{row['words']:.1f}", decimals(row["distinct"])),
        ]
        for row in GUIDED["default-speaker"]
    ]
    assert table_rows(PAGE, "| guidance | F1 |") == speakers
    personalities = []
    for row in GUIDED["default-personality"]:
        labels, others = row["default"], row["self-report"]
        slopes = [sum(judge["slope"].values()) / len(TRAITS) for judge in (labels, others)]
        cells = [decimals(labels["mean_r"]), decimals(slopes[0])]
        cells += [decimals(others["mean_r"]), decimals(others["mean_other"]), decimals(slopes[1])]
        cells += [f"{row['nats_per_token']:.2f}", f"{row['words']:.1f}"]
        personalities.append([f"{row['guidance']:g}", *cells])
    assert table_rows(PAGE, "| guidance | r, `default` |") == personalities
    plain, guided = GUIDED["default-speaker"][0], GUIDED["default-speaker"][2]
    assert guided["guidance"] == 1
    claim = (
        f"by {decimals(guided['by_group'])} on unseen contexts in place of {decimals(plain['by_group'])}**"
    )
    cost = guided["nats_per_token"] - plain["nats_per_token"]
    assert f"{claim}, for {decimals(cost)} nats a token" in " ".join(PAGE.split())


def test_what_the_text_says_about_types_and_fidelity() -> None:
    text = " ".join(PAGE.split())
    for recogniser in ("default", "self-report"):
        counts = [str(first_places(model, recogniser)) for model in PERSONALITY]
        assert f"by `{recogniser}` {', '.join(counts)}" in text
    for model in PERSONALITY:
        numbers = MEASURED["fidelity"][model]["self-report"]
        assert f"{decimals(numbers['mean_other'])} for `{model}`" in text
    assert MEASURED["fidelity"]["modern-personality"]["self-report"]["follow"] == [
        trait for trait in TRAITS if trait != "conscientiousness"
    ]


def test_the_files_say_how_they_were_made() -> None:
    for name in ("personality", "personality-smollm", "personality-guidance", "recogniser", "comparator"):
        results = read_results(name)
        assert {"command", "date", "machine", "data"} <= set(results)
        assert (RESULTS / f"{name}.json").stat().st_size < 200_000
    assert MEASURED["training"]["machine"]["gpu"] == "NVIDIA H200"


def test_the_card_of_the_recogniser_has_the_same_figures() -> None:
    card = (RESULTS.parent / "reference/recogniser.md").read_text(encoding="utf-8")
    rows = {row[0]: row[1:] for row in table_rows(card, "| held out | openness |")}
    imitation = AUDIT["imitation"]
    assert rows["correlation with the published scores"] == [decimals(r, 3) for r in imitation["r"]]
    assert rows["mean absolute error"] == [f"{float(e):.3f}" for e in imitation["mean_error"]]
    assert rows["slope of the true scores on ours"] == [f"{float(s):.3f}" for s in imitation["slope"]]
