"""Answers to queries over whispered dimensions: counts, sums and quantiles of any selection."""
