"""Agreement, correlation, ranking, significance, power: arrays in, frozen results out.

SciPy and compiled kernels load inside the functions that need them: to start, NumPy is enough.
"""
