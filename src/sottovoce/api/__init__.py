"""The functions a person starts with, and surveys as people write them."""
