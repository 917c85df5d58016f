"""The front door: the one explicit tuple of questions, and the functions a person starts with."""
