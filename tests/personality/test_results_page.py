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
REPLIES = read_results("personality-replies")
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
    """The models of now, then those before them."""
    earlier = [[f"{name}, earlier", *cells] for name, *cells in model_rows(ON_SMOLLM["earlier"])]
    return [*model_rows(ON_SMOLLM), *earlier[1:]]


def p_value(p: float) -> str:
    return "< .001" if p < 0.001 else decimals(p, 3)


def difference_rows(measured: dict[str, Any] = MEASURED) -> list[list[str]]:
    """What every pair of sources differs by."""
    rows = []
    pairs = [(test["a"], test["b"]) for test in measured["tests"]["Friends"]]
    for a, b in pairs:
        row = [f"{a} − {b}"]
        for title in SHOWS.values():
            test = next(t for t in measured["tests"][title] if (t["a"], t["b"]) == (a, b))
            row += [interval(test["difference"], test["low"], test["high"]), p_value(test["p_holm"])]
        rows.append(row)
    return rows


def smollm_difference_rows() -> list[list[str]]:
    """Names without `smollm-`, which all have."""
    rows = difference_rows(ON_SMOLLM)
    return [[name.replace("smollm-", "").replace("-guided-1", ", guided"), *cells] for name, *cells in rows]


def reply_rows() -> list[list[str]]:
    """What the replies on SmolLM2 are like."""
    return [
        [
            name,
            f"{row['words']:.1f}",
            *(decimals(row[key]) for key in ("distinct", "most_common", "repeating")),
            f"{row['nats_per_token']:.2f}",
        ]
        for name, row in REPLIES["models"].items()
    ]


def trivial_rows() -> list[list[str]]:
    """F1 by context of what is left, and of what is not much."""
    keys = ("as_it_is", "length_alone", "without_telling_words")
    rows = []
    for name, model in REPLIES["models"].items():
        row = [name]
        for title in SHOWS.values():
            shown = model["shows"][title]
            parts = [shown[key] for key in keys] + [shown["catch_words"][n] for n in ("10", "3")]
            row += [decimals(part["by_group"]) for part in parts]
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


def smollm_extreme_rows() -> list[list[str]]:
    """Average, by context with its control, and each type."""
    rows = []
    for name, row in ON_SMOLLM["extremes"].items():
        by_context = f"{decimals(row['by_group'])} ({decimals(row['pseudo_by_group'])})"
        rows.append([name, decimals(row["f1"]), by_context, *(decimals(row["types"][t]) for t in EXTREMES)])
    return rows


def first_places(model: str, recogniser: str, measured: dict[str, Any] = MEASURED) -> int:
    """For how many of the five types the trait that was asked for is highest in that type."""
    traits = measured["extremes"][model]["traits"][recogniser]
    highest = [max(traits, key=lambda who: traits[who][i]) for i in range(len(TRAITS))]
    return sum(who == name for who, name in zip(highest, EXTREMES, strict=True))


def matrix_rows(model: str, recogniser: str = "self-report") -> list[list[str]]:
    matrix = MEASURED["fidelity"][model][recogniser]["matrix"]
    return [[asked, *(interval(**_span(matrix[asked][shown])) for shown in TRAITS)] for asked in TRAITS]


def _span(cell: dict[str, float]) -> dict[str, float]:
    return {"value": cell["r"], "low": cell["low"], "high": cell["high"]}


def fidelity_rows(measured: dict[str, Any] = MEASURED) -> list[list[str]]:
    """The diagonal of each model by each recogniser, beside the control."""
    rows = []
    for model in measured["fidelity"]:
        for recogniser in ("self-report", "default"):
            numbers = measured["fidelity"][model][recogniser]
            diagonal = [decimals(numbers["matrix"][trait][trait]["r"]) for trait in TRAITS]
            control = f"{decimals(numbers['shuffled_mean_r'])} (up to {decimals(numbers['shuffled_high'])})"
            rows.append([model, recogniser, *diagonal, decimals(numbers["mean_r"]), control])
    return rows


def smollm_fidelity_rows() -> list[list[str]]:
    return fidelity_rows(ON_SMOLLM)


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
        ("| difference on SmolLM2 |", smollm_difference_rows),
        ("| replies on SmolLM2 |", reply_rows),
        ("| F1 by context, of |", trivial_rows),
        ("| types on SmolLM2 |", smollm_extreme_rows),
        ("| traits on SmolLM2 |", smollm_fidelity_rows),
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
    at = {
        name: [ON_SMOLLM["models"][title][name]["by_group"] for title in SHOWS.values()]
        for name in ON_SMOLLM["models"]["Friends"]
    }
    aims = {"speaker": (0.65, 0.64), "personality": (0.32, 0.38)}
    for kind, aim in aims.items():
        plain, guided = at[f"smollm-{kind}"], at[f"smollm-{kind}-guided-1"]
        assert f"{decimals(plain[0])} and {decimals(plain[1])}" in text
        assert f"{decimals(guided[0])} and {decimals(guided[1])}" in text
        reached = [f > wanted for f, wanted in zip((*plain, *guided), (*aim, *aim), strict=True)]
        assert reached == ([True, False, True, True] if kind == "speaker" else [False, True, True, True])
    for title in SHOWS.values():
        for name in set(ON_SMOLLM["models"][title]) - {"transcripts"}:
            row = ON_SMOLLM["models"][title][name]
            assert interval(row["difference"], row["low"], row["high"]) in text
            is_told_apart = (name, title) != ("smollm-personality", "Friends")
            assert (row["answer"] == "yes") == is_told_apart
    runs = ON_SMOLLM["training"]["runs"]
    epochs = [[e["valid_ppl_word"] for e in runs[f"{kind}-1"]["epochs"]] for kind in aims]
    assert f"{epochs[0][1]:.1f} and {epochs[1][1]:.1f} a word" in text
    assert f"after the third {epochs[0][2]:.1f} and {epochs[1][2]:.1f}" in text
    modern = MEASURED["training"]["runs"]["modern-speaker"]["epochs"]
    assert f"`modern-speaker` has {min(epoch['valid_ppl_word'] for epoch in modern):.1f}" in text
    pseudo = [ON_SMOLLM["models"][title][name]["pseudo"] for title in SHOWS.values() for name in at]
    assert f"pseudo-characters alone have up to {decimals(max(pseudo))}" in text
    by_paper = {
        kind: [ON_SMOLLM["models"][title][f"smollm-{kind}"]["f1"] for title in SHOWS.values()]
        for kind in aims
    }
    assert all(f > aim for kind in aims for f, aim in zip(by_paper[kind], aims[kind], strict=True))
    before = ON_SMOLLM["earlier"]["training"]["runs"]["speaker-1"]["epochs"]
    assert f"{before[-1]['valid_ppl_word']:.1f} before" in text
    assert (ON_SMOLLM["contexts"], ON_SMOLLM["earlier"]["contexts"]) == (3000, 6000)
    assert REPLIES["contexts"] == 3000


def test_what_the_text_says_about_what_is_behind_it() -> None:
    text = " ".join(PAGE.split())
    for name, model in REPLIES["models"].items():
        for title, show in model["shows"].items():
            assert show["as_it_is"]["by_group"] == ON_SMOLLM["models"][title][name]["by_group"]
    sizes = [REPLIES["models"]["smollm-speaker"]["shows"][title] for title in SHOWS.values()]
    halves = [
        f"{decimals(show['half_the_contexts']['by_group'])} in place of "
        f"{decimals(show['samples_of_250']['by_group'])}"
        for show in sizes
    ]
    assert " and ".join(halves) in text
    bots = [decimals(show["catch_words"]["3"]["by_group"]) for show in sizes]
    assert f"no character besides, {bots[0]} and {bots[1]}" in text
    kept = [decimals(show["without_telling_words"]["by_group"]) for show in sizes]
    assert f"of each {kept[0]} and {kept[1]} are left" in text
    lengths = [REPLIES["transcripts"][title]["length_alone"]["by_group"] for title in SHOWS.values()]
    assert f"{decimals(lengths[0])} and {decimals(lengths[1])} by length alone" in text
    for title, who in (("Friends", "Joey"), ("The Big Bang Theory", "Penny")):
        plain, guided = (
            REPLIES["models"][f"smollm-speaker{how}"]["shows"][title]["telling_words"][who][0]
            for how in ("", "-guided-1")
        )
        assert plain["word"] == guided["word"]
        assert f"“{plain['word']}” in {decimals(plain['transcripts'])}" in text
        assert f"in {decimals(plain['share'])}" in text
        assert f"“{guided['word']}” in {decimals(guided['share'])}" in text
    for name, row in ON_SMOLLM["fidelity"].items():
        others = [decimals(row[judge]["mean_other"]) for judge in ("self-report", "default")]
        assert f"{others[0]} and {others[1]}" in text, name
        counts = [first_places(name, judge, ON_SMOLLM) for judge in ("default", "self-report")]
        assert f"{counts[0]} and {counts[1]} of five" in text
    follow = {name: [row[j]["follow"] for j in row] for name, row in ON_SMOLLM["fidelity"].items()}
    assert follow == {
        "smollm-personality": [["extraversion"], []],
        "smollm-personality-guided-1": [["openness", "agreeableness"], ["agreeableness"]],
    }


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
    for name in (
        "personality",
        "personality-smollm",
        "personality-replies",
        "personality-guidance",
        "recogniser",
        "comparator",
    ):
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
