"""The protocol: who is asked what, what is sent, and what it costs. All of it is public and frozen in a plan."""
