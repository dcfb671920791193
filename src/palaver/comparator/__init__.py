"""The comparator: which of two dialogues is better, learnt from noisy ratings (Liang et al. 2020, CMADE)."""
