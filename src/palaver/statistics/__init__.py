"""Agreement, correlation, ranking, significance, power: arrays in, frozen results out.

Only NumPy is imported here; SciPy and compiled kernels load inside the functions that need them.
The imports are eager on purpose: several functions share their module's name, and must win.
"""

from palaver.statistics.alpha import AlphaResult, alpha_long, krippendorff_alpha
from palaver.statistics.bootstrap import Interval, percentile_interval, resample_sums
from palaver.statistics.bradley_terry import (
    BradleyTerryBootstrap,
    BradleyTerryResult,
    bradley_terry,
    bradley_terry_bootstrap,
)
from palaver.statistics.contingency import ChiSquareTest, McNemarTest, chi_square, mcnemar
from palaver.statistics.correlation import CorrelationResult, correlate
from palaver.statistics.icc import IccForm, IccResult, icc, icc_long
from palaver.statistics.kappa import cohen_kappa, fleiss_kappa, fleiss_kappa_ratings
from palaver.statistics.normalise import NORMALISATIONS, Normalised, normalise
from palaver.statistics.perplexity import Perplexity, corpus_perplexity
from palaver.statistics.power import estimate_power, normal_draw, power_grid, smallest_design
from palaver.statistics.ranking import (
    Comparisons,
    PairedBootstrap,
    RankGroup,
    WinMatrix,
    as_comparisons,
    comparisons_from_scores,
    format_groups,
    paired_bootstrap,
    rank_groups,
    win_matrix,
)
from palaver.statistics.significance import (
    compare_means,
    holm,
    levene,
    paired_bootstrap_test,
    permutation_test,
)
from palaver.statistics.trueskill import (
    TrueSkillGroups,
    TrueSkillResult,
    TrueSkillSettings,
    trueskill,
    trueskill_groups,
)

__all__ = [
    "NORMALISATIONS",
    "AlphaResult",
    "BradleyTerryBootstrap",
    "BradleyTerryResult",
    "ChiSquareTest",
    "Comparisons",
    "CorrelationResult",
    "IccForm",
    "IccResult",
    "Interval",
    "McNemarTest",
    "Normalised",
    "PairedBootstrap",
    "Perplexity",
    "RankGroup",
    "TrueSkillGroups",
    "TrueSkillResult",
    "TrueSkillSettings",
    "WinMatrix",
    "alpha_long",
    "as_comparisons",
    "bradley_terry",
    "bradley_terry_bootstrap",
    "chi_square",
    "cohen_kappa",
    "compare_means",
    "comparisons_from_scores",
    "corpus_perplexity",
    "correlate",
    "estimate_power",
    "fleiss_kappa",
    "fleiss_kappa_ratings",
    "format_groups",
    "holm",
    "icc",
    "icc_long",
    "krippendorff_alpha",
    "levene",
    "mcnemar",
    "normal_draw",
    "normalise",
    "paired_bootstrap",
    "paired_bootstrap_test",
    "percentile_interval",
    "permutation_test",
    "power_grid",
    "rank_groups",
    "resample_sums",
    "smallest_design",
    "trueskill",
    "trueskill_groups",
    "win_matrix",
]
