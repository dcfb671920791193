"""The methods behind the numbers in plain words, each with the work that introduced it."""

from __future__ import annotations

from dataclasses import dataclass

from palaver.reports.wording import conventions_used
from palaver.studies.results import Analysis


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method in plain words, with the work that introduced it."""

    title: str
    text: str
    reference: str
    link: str = ""


_RANKING_METHODS = {
    "bootstrap": Method(
        title="Ranking by bootstrap over items",
        text="Items are drawn with replacement as often as there are items, and the mean scores of the "
        "systems are compared on each such draw. One system beats another when it is ahead in at least the "
        "stated share of the draws. A group ends where every system above beats every system below.",
        reference="Koehn (2004). Statistical significance tests for machine translation evaluation. EMNLP; "
        "groups: Bojar et al. (2013), WMT.",
        link="https://aclanthology.org/W04-3250/",
    ),
    "trueskill": Method(
        title="TrueSkill",
        text="Every pair of outputs that one rater judged on one item is a game (won, lost or drawn); the "
        "skill of each system is what best explains the games. Groups come from draws of items, as above.",
        reference="Herbrich, Minka & Graepel (2007). TrueSkill: a Bayesian skill rating system. NIPS 19; "
        "for system rankings: Sakaguchi, Post & Van Durme (2014), WMT.",
        link="https://aclanthology.org/W14-3301/",
    ),
    "bradley-terry": Method(
        title="Bradley–Terry",
        text="The same games, but all at once: the strengths under which the observed wins and ties are most "
        "likely; a tie is half a win. The order of games does not matter. Groups come from draws of items.",
        reference="Bradley & Terry (1952). Rank analysis of incomplete block designs. Biometrika 39.",
        link="https://doi.org/10.1093/biomet/39.3-4.324",
    ),
}

_AGREEMENT_METHODS = {
    "icc": Method(
        title="Intraclass correlation (ICC)",
        text="The share of the variance of ratings that lies between the judged outputs, not between raters "
        "or in noise. The forms differ in whether raters are a sample, and whether one rating or the mean "
        "of k ratings is used (forms ending in k).",
        reference="Shrout & Fleiss (1979). Intraclass correlations: uses in assessing rater reliability. "
        "Psychological Bulletin 86. Reading: Koo & Li (2016), J. Chiropractic Medicine 15.",
        link="https://doi.org/10.1037/0033-2909.86.2.420",
    ),
    "alpha": Method(
        title="Krippendorff’s α",
        text="One minus observed over expected disagreement; it takes any number of raters, missing ratings "
        "and any level of measurement. 1 is perfect agreement, 0 is what chance would give.",
        reference="Krippendorff (2004). Reliability in content analysis. Human Communication Research 30.",
        link="https://doi.org/10.1111/j.1468-2958.2004.tb00738.x",
    ),
    "kappa": Method(
        title="κ (Cohen, Fleiss)",
        text="Agreement on categories, corrected for the agreement that chance would give.",
        reference="Cohen (1960), Educ. Psychol. Meas. 20; Fleiss (1971), Psychological Bulletin 76. "
        "Reading: Landis & Koch (1977), Biometrics 33.",
        link="https://doi.org/10.1037/h0031619",
    ),
}

_CORRELATION = Method(
    title="Correlation between criteria",
    text="High values mean that raters told two criteria apart poorly, or that good outputs are good in "
    "both. Asking for the criteria separately lowers them.",
    reference="Novikova, Dušek & Rieser (2018). RankME: reliable human ratings for natural language "
    "generation. NAACL.",
    link="https://aclanthology.org/N18-2012/",
)


def methods_used(analysis: Analysis) -> list[Method]:
    """The methods behind the numbers of this analysis, and no others."""
    rankings = {row.method for row in analysis.ranking}
    measures = {convention.measure for convention in conventions_used(analysis)}
    used = [method for key, method in _RANKING_METHODS.items() if key in rankings]
    used += [method for key, method in _AGREEMENT_METHODS.items() if key in measures]
    return used + ([_CORRELATION] if analysis.correlation else [])
