"""Between the two: shufflers mix sealed reports, so that nobody knows whose is whose."""
