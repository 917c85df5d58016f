"""A whole private survey among people who do not exist."""
