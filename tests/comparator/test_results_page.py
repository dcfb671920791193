"""The page on the comparator says what its results file says."""

from __future__ import annotations

from functools import reduce
from statistics import mean
from typing import Any

from tests.results_pages import RESULTS, decimals, interval, read_page, read_results, table_rows

from palaver.comparator.scorer import load_scorer
from palaver.schema import Dialogue, Turn


def test_the_page_quotes_the_record() -> None:
    page, results = read_page("comparator"), read_results("comparator")
    shipped, trivial = results["shipped"], results["trivial_accuracy_on_pairs"]

    def row(name: str, key: str) -> list[str]:
        part = shipped[key]
        accuracy = interval(part["accuracy"], part["low"], part["high"], digits=3)
        return [name, f"{part['n']:,}", accuracy, decimals(part["kappa"], 3)]

    n_pairs = f"{shipped['on_pairs']['n']:,}"
    rules = sorted(trivial, key=lambda name: -trivial[name])
    assert table_rows(page, "| comparator | pairs |") == [
        row("palaver, development pairs", "on_pairs"),
        row("palaver, pairs of one sitting, raters held out", "on_ratings"),
        *([f"trivial, development pairs: {name}", n_pairs, decimals(trivial[name], 3), ""] for name in rules),
    ]
    assert f"(ECE) is {decimals(shipped['ece'], 3)}" in page
    assert shipped["settings"]["seed"] == 0


def test_the_page_quotes_how_the_two_judges_were_joined() -> None:
    page, joined = read_page("comparator"), read_results("comparator-joined")
    rows = [
        [
            f"{row['share']:.1f}",
            *(decimals(row[f"{name}accuracy"], 3) for name in ("", "weighted_", "development_", "audit_")),
        ]
        for row in joined["shares"]
    ]
    assert table_rows(page, "| share of the language model |") == rows
    assert f"Chosen: {joined['chosen_share']:.1f}," in page
    development = joined["development"]
    parts = {
        "rater model": development["rater model"],
        "language model": development["language model"]["seed 0"],
        "joined": development["joined"],
    }
    assert table_rows(page, "| | accuracy | κ |") == [
        [name, interval(r["accuracy"], r["low"], r["high"], digits=3), decimals(r["kappa"], 3)]
        for name, r in parts.items()
    ]
    first, second, third = (decimals(r["accuracy"], 3) for r in development["language model"].values())
    assert f"Three seeds of the language model have {first}, {second} and {third} there" in page


def test_the_shipped_weights_are_those_of_the_record() -> None:
    from palaver.comparator.model import load_model
    from palaver.comparator.scorer import SHIPPED

    _, about = load_model(SHIPPED)
    joined = read_results("comparator-joined")
    assert about["language_model"] == {**joined["weights"], "share": joined["chosen_share"]}
    assert about["on_pairs"] == read_results("comparator")["shipped"]["on_pairs"]


def test_the_page_quotes_what_learning_minimal_pairs_first_brings() -> None:
    record = read_results("comparator-pairs-first")
    page = " ".join(read_page("comparator").split())
    folds = [f"16.fold-{k}" for k in range(4)]
    kinds = record["shipped runs"][folds[0]]["pairs_held_out"]

    def both(value: Any, digits: int = 3) -> str:
        return f"{decimals(value('runs'), digits)} in place of {decimals(value('shipped runs'), digits)}"

    def of_pairs(which: str, runs: list[str]) -> float:
        return mean(record[which][run]["pairs_held_out"][kind] for run in runs for kind in kinds)

    alone = decimals(of_pairs("runs", ["16.pairs"]))
    assert f"about {both(lambda which: of_pairs(which, folds), 2)}, {alone} before it sees a rating" in page
    by_trust = both(lambda which: mean(record[which][run]["by_trust"] for run in folds))
    assert f"by trust {by_trust} on held-out raters" in page
    new, shipped = record["joined"], record["shipped joined"]
    parts = ["{}, {} and {}".format(*(decimals(v, 3) for v in of["audit"].values())) for of in (new, shipped)]
    assert f"joined it has {parts[0]} in the three parts, in place of {parts[1]}" in page
    for text, *keys in (
        ("alone {} on the development pairs", "development", "its language model", "all pairs"),
        ("joined {}", "development", "comparator default", "all pairs"),
        ("within a tier {}", "development", "comparator default", "within a tier"),
        ("on MT-Bench {}", "assistants", "default"),
    ):
        values = [reduce(lambda of, key: of[key], keys, whole) for whole in (new, shipped)]
        assert text.format(" in place of ".join(decimals(v, 3) for v in values)) in page
    assert f"its share was {decimals(new['share'], 1)}" in page
    measured = shipped["development"]["comparator default"]["all pairs"]
    card = read_results("comparator-scorecard")["rows"][0]["results"]["all pairs"]
    assert measured == card["accuracy"]  # else the comparison is with a comparator that does not ship


def test_the_page_quotes_what_was_reached() -> None:
    page = read_page("comparator")
    reached = {row[0]: row[1:] for row in table_rows(page, "| to reach |")}
    methods = {row["method"]: row["results"] for row in read_results("comparator-scorecard")["rows"]}

    def check(name: str, value: float, least: float, shown: str) -> None:
        assert reached[name] == [shown, "yes" if value >= least else "no"]

    for name, method, column, least in (
        (
            "development pairs ≥ .82 by nested selection",
            "its weights chosen on other raters",
            "all pairs",
            0.82,
        ),
        ("the same, as shipped", "comparator default", "all pairs", 0.82),
        ("within a tier ≥ .78, as shipped", "comparator default", "within a tier", 0.78),
        (
            "within a tier ≥ .78 by nested selection",
            "its weights chosen on other raters",
            "within a tier",
            0.78,
        ),
        ("leave one system out ≥ .79, rater model", "its rater model", "unseen systems", 0.79),
    ):
        result = methods[method][column]
        accuracy = interval(result["accuracy"], result["low"], result["high"], digits=3)
        check(name, result["accuracy"], least, accuracy)
    joined = read_results("comparator-scorecard")["joined_on_unseen_systems"]
    accuracy = interval(joined["accuracy"], joined["low"], joined["high"], digits=3)
    check("leave three or four systems out ≥ .79, joined", joined["accuracy"], 0.79, accuracy)
    for file, name in (
        ("comparator-audit", "open part"),
        ("comparator-audit-held-out", "held-out part, run for the fourth time"),
        ("comparator-audit-second", "second held-out part, run for the third time"),
    ):
        audit = read_results(file)
        accuracy = audit["overall"]["accuracy"]
        check(f"audit ≥ .85 over all kinds, {name}", accuracy, 0.85, decimals(accuracy, 3))
        worst = min(audit["kinds"], key=lambda kind: kind["accuracy"])
        shown = f"{worst['kind']} {decimals(worst['accuracy'])}"
        check(f"no kind of the audit below .65, {name}", worst["accuracy"], 0.65, shown)
    auc = read_results("comparator")["failed_raters"]["auc"]
    name = "AUC of finding dialogues of failed raters ≥ .85 (suspicion of compare clean)"
    care = auc["rater model, care"]
    check(name, care, 0.85, decimals(care, 3))
    assert f"(to four digits {decimals(auc['joined'], 4)})" in page
    assert all(decimals(value, 3) in page for value in auc.values())


def test_the_page_quotes_the_other_shape() -> None:
    page = " ".join(read_page("comparator").split())
    shapes = read_results("comparator-shapes")["shapes"]
    tried, shipped = shapes["30-likelihood"], shapes["shipped"]
    by_trust = decimals(tried["by_trust"], 3), decimals(shipped["by_trust"], 3)
    assert f"{by_trust[0]} of the pairs of a sitting, weighted by trust (that one: {by_trust[1]})" in page
    in_tier = decimals(tried["by_trust_in_tier"], 3), decimals(shipped["by_trust_in_tier"], 3)
    assert (
        f"within a tier about {in_tier[0]} ({in_tier[1]}); on the open audit {decimals(tried['audit_open'])}."
        in page
    )


def test_the_page_quotes_the_rows_of_cmade() -> None:
    from palaver.comparator.cmade.presets import PRESETS

    columns = ((2e-5, "all", 0), (5e-5, "all", 0), (2e-4, "all", 0), (5e-5, "system", 0), (5e-5, "all", 4))
    of_settings: dict[tuple[float, str, int], dict[str, Any]] = {}
    for table in read_results("comparator-cmade")["tables"]:
        settings = table["settings"]
        key = settings["training"]["learning_rate"], settings["within"], settings["frozen_layers"]
        rows = {row["preset"]: row for row in table["rows"] if row["n_seeds"]}
        of_settings[key] = of_settings.get(key, {}) | rows
    all_ratings = of_settings.pop((5e-5, "system", 4))["pairwise"]
    shown = interval(*(all_ratings[f"on_test_{part}"] for part in ("accuracy", "low", "high")), digits=3)
    assert f"nobody to be compared with), has {shown}." in " ".join(read_page("comparator").split())
    assert set(of_settings) == set(columns)
    expected = []
    for name, preset in PRESETS.items():
        cells = [preset.title, decimals(preset.accuracy, 3)]
        for key in columns:
            row = of_settings[key].get(name)
            if row is None:
                cells.append("")
            elif row["n_seeds"] > 1:
                mean, sd = (decimals(row[f"on_test_accuracy{part}"], 3) for part in ("", "_sd"))
                cells.append(f"{mean} ± {sd}")
            else:
                values = (row[f"on_test_{part}"] for part in ("accuracy", "low", "high"))
                cells.append(interval(*values, digits=3))
        expected.append(cells)
    assert table_rows(read_page("comparator"), "| row | paper |") == expected


def test_the_page_quotes_the_speed() -> None:
    page = read_page("comparator")
    fast, default = (read_results("comparator-speed")["results"][name] for name in ("fast", "default"))
    rows = {row[0]: row[1:] for row in table_rows(page, "| to reach |")}
    for result, name, shown in (
        (fast, "compare score ≥ 60 dialogues/s without the language model, two cores", ".0f"),
        (default, "compare score ≥ 4 dialogues/s with it", ".1f"),
    ):
        reached = "yes" if result["per_second"] >= result["target"] else "no"
        assert rows[name] == [f"{result['per_second']:{shown}}/s", reached]
    said = f"{fast['per_second']:.0f} dialogues a second without the language model"
    assert f"{said} and {default['per_second']:.1f} with it" in page
    spans = [f"{min(result['runs']):.1f} to {max(result['runs']):.1f}" for result in (fast, default)]
    assert " and ".join(spans) in " ".join(page.split())


def test_the_page_quotes_the_speed_of_the_parts_of_cmade() -> None:
    shapley, loss = read_results("comparator-shapley")["results"], read_results("comparator-loss")
    network, (small, large) = loss["network"], loss["loss alone"]
    n, plain = network["dialogues"], network["plain_seconds"]

    def of_peer(result: dict[str, Any]) -> list[str]:
        ratio = result["peer_seconds"] / result["seconds"]
        seconds, ours = f"{result['peer_seconds']:.2f} s", f"{1000 * result['seconds']:.1f} ms"
        return [seconds, ours, f"{ratio:.0f} ×", f"{result['target']} ×"]

    def of_network(name: str) -> list[str]:
        return [f"{network[name]:.2f} s", f"{network[name] / plain:.2f} ×"]

    pairs = f"all {n * (n - 1) // 2:,} pairs of {n} dialogues ({network['tokens']} tokens)"
    large_loss = f"{1000 * large['seconds']:.0f} ms, {large['megabytes']} MB"
    assert table_rows(read_page("comparator"), "| | peer | ours |") == [
        [
            f"KNN-Shapley, 10,000 × 768, 400 pairs over 100 dialogues ({shapley[0]['peer']})",
            *of_peer(shapley[0]),
        ],
        [f"100,000 × 768, 20 dialogues ({shapley[1]['peer']})", *of_peer(shapley[1])],
        [
            f"{pairs} through MiniLM's network",
            f"{plain:.2f} s (one plain forward and backward pass)",
            *of_network("graph_kept_seconds"),
            "≤ 1.2 ×",
        ],
        [
            "the same where the graph of all batches does not fit into memory",
            "",
            *of_network("second_pass_seconds"),
            "",
        ],
        [
            f"all-pairs loss alone, N = {small['dialogues']:,}",
            "",
            f"{1000 * small['seconds']:.0f} ms",
            "",
            "",
        ],
        [f"N = {large['dialogues']:,} (1.25 billion pairs)", "", large_loss, "", "< 4 GB"],
    ]


def test_the_page_quotes_what_was_tried_within_a_tier() -> None:
    page, tried = " ".join(read_page("comparator").split()), read_results("comparator-within-tier")
    chosen = tried["chosen"]
    assert f"(ridge {chosen['ridge']:,.0f}, share {decimals(chosen['share'])})" in page
    gains = [
        interval(gain["gain"], gain["low"], gain["high"], digits=3)
        for gain in (tried["gain_on_development"][name] for name in ("all pairs", "within a tier"))
    ]
    assert f"it gains {gains[0]} on the development pairs and {gains[1]} within a tier" in page


def test_the_page_quotes_what_the_comparator_is_worth_on_assistants() -> None:
    page, record = read_page("comparator"), read_results("comparator-assistants")

    def shown(result: dict[str, float]) -> str:
        return interval(result["accuracy"], result["low"], result["high"], digits=3)

    rows = record["rows"]
    assert table_rows(page, "| MT-Bench |") == [
        [name, shown(row["decided"]), shown(row["clear"])] for name, row in rows.items()
    ]
    text = " ".join(page.split())
    n_decided, n_clear = (f"{rows['default'][which]['n']:,}" for which in ("decided", "clear"))
    assert f"{n_decided} pairs have a majority, {n_clear} of them are clear" in text
    judges = [row["accuracy"] for row in record["a judge against the majority of the others"].values()]
    assert f"{decimals(min(judges))} to {decimals(max(judges))}" in text
    assert f"{record['n_not_english']} of the {record['n_dialogues']} dialogues" in text
    card = " ".join((RESULTS.parent / "reference/comparator.md").read_text(encoding="utf-8").split())
    alone, longer = (decimals(rows[name]["decided"]["accuracy"]) for name in ("default", "longer wins"))
    assert f"right about {alone} of the pairs" in card
    assert f"more than {_longest_of_shipped()} words a turn" in card
    assert f"which is {_longest_of_shipped()} words a turn" in text
    assert f"longer wins about {longer}" in card


def _longest_of_shipped() -> int:
    """Words a turn from which the shipped comparator warns."""

    def is_wordy(n_words: int) -> bool:
        turns = (Turn(speaker="user", text="hi"), Turn(speaker="system", text="word " * n_words))
        return load_scorer("fast").is_wordy(Dialogue(id="1", turns=turns))

    return next(n for n in range(100) if is_wordy(n + 1))


def test_the_page_quotes_what_a_second_source_brings() -> None:
    page, record = read_page("comparator"), read_results("comparator-second-source")

    def shown(result: dict[str, float], key: str = "accuracy") -> str:
        return interval(result[key], result["low"], result["high"], digits=3)

    at_home = [decimals(row["raters held out"]["accuracy"], 3) for row in record["rows"].values()]
    assert table_rows(page, "| learnt from |") == [
        [source + end, home, *map(shown, row[kind].values())]
        for kind, end, homes in (("rater model", "", at_home), ("joined", ", joined", [""] * len(at_home)))
        for home, (source, row) in zip(homes, record["rows"].items(), strict=True)
    ]
    text, gains = " ".join(page.split()), record["gain_of_both"]
    for kind, column in (
        ("rater model", "ConvAI2, no bot named"),
        ("joined", "ConvAI2, no bot named"),
        ("rater model", "ConvAI2, one bot"),
        ("rater model", "ConvAI2, two bots"),
    ):
        assert shown(gains[kind][column], "gain") in text
    assert f"{record['n_unnamed']:,} dialogues whose bot nobody named" in text


def test_the_page_quotes_what_the_parts_are_worth() -> None:
    page, method = read_page("comparator"), read_results("comparator-method")
    assert table_rows(page, "| what is left out |") == [
        [
            row["part"] if row["part"] != "all" else "nothing",
            *(decimals(row[on], 3) for on in ("held_out", "development")),
        ]
        for row in method["ablations"]
    ]
    parts = {row["part"]: row["held_out"] for row in method["ablations"]}
    text = " ".join(page.split())
    assert f"without it {decimals(parts['all'] - parts['raters unknown'], 3)} of the held-out pairs" in text
    runs = method["runs"]
    for values in (
        [run["on_pairs"]["accuracy"] for run in runs],
        [run["on_ratings"]["accuracy"] for run in runs],
        [run["auc"] for run in runs],
    ):
        first, second, third = (decimals(value, 3) for value in values)
        assert f"{first}, {second} and {third}" in text


def test_the_page_quotes_how_people_rate() -> None:
    ratings = read_results("comparator-removal")["ratings"]
    rows = [row[1:] for row in table_rows(read_page("comparator"), "| | n | at the bottom |")]
    assert rows == [
        [
            f"{of['n']:,}",
            *(f"{of[end]:.1%}" if of["binned"] else f"{of[end]:.0%}" for end in ("bottom", "top")),
            "yes" if of["j_shaped"] else "no",
        ]
        for of in ratings.values()
    ]


def test_the_page_quotes_figure_2() -> None:
    page, removal = " ".join(read_page("comparator").split()), read_results("comparator-removal")
    assert f"half of the raters ({removal['n_pairs_of_values']}), accuracy on" in page
    assert f"the others' ({removal['n_pairs_of_accuracy']})" in page
    whole, quarter = removal["removed"][:2]
    assert f"With {quarter['n']} of {removal['n_ratings']:,} ratings gone" in page

    def shown(k: str) -> list[str]:
        return [
            decimals(value, 3)
            for value in (quarter["by_value"][k], whole["by_value"][k], quarter["at_random"][k])
        ]

    gone, every, random = shown("50")
    assert (
        f"accuracy is {gone} for K = 50, against {every} with all and {random} with as many removed" in page
    )
    gone, every, random = shown("1")
    assert f"for K = 1 {gone}, {every} and {random}." in page


def test_the_page_quotes_what_finds_bad_ratings() -> None:
    page, cleaning = read_page("comparator"), read_results("comparator-cleaning")
    reliable, convai2 = cleaning["reliable_eval"], cleaning["convai2"]
    columns = [reliable["auc"], *convai2["auc"].values()]
    assert table_rows(page, "| what finds them |") == [
        [
            name,
            *(interval(column[name]["auc"], column[name]["low"], column[name]["high"]) for column in columns),
        ]
        for name in reliable["auc"]
    ]
    text = " ".join(page.split())
    assert f"{convai2['n_users_looked_at']} users with {convai2['n_ratings_looked_at']} ratings" in text
    assert f"{convai2['n_users_drawn']} of them are drawn" in text
    difference = reliable["care_less_own_spread"]
    shown = interval(difference["auc"], difference["low"], difference["high"], digits=3)
    assert f"less that of the own spread is {shown}" in text
    trust, care = list(reliable["auc"])[:2]
    gains = [decimals(abs(column[care]["auc"] - column[trust]["auc"])) for column in columns]
    assert f"gains {gains[0]} and {gains[3]} where bad raters spread little" in text
    assert f"costs {gains[1]} and {gains[2]} where they do not" in text


def test_the_page_quotes_what_half_precision_changes() -> None:
    page, precision = read_page("comparator"), read_results("comparator-precision")
    assert table_rows(page, "| precision |") == [
        [
            name,
            decimals(row["float32"]["accuracy"], 3),
            decimals(row["bfloat16"]["accuracy"], 3),
            str(row["flipped_pairs"]),
            decimals(row["mean_difference"], 3),
            decimals(row["largest_difference"], 3),
        ]
        for name, row in precision["results"].items()
    ]
    assert f"the {precision['n_dialogues']} development dialogues" in page
