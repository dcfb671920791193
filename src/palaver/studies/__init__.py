"""Human studies: designs, ratings, simulation and analysis."""
