"""CMADE, the pipeline of Liang et al. (2020): the stages and the eleven rows of Table 4."""
