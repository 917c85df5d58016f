"""A file of people as devices that send: read, drawn once, kept in a journal, sent."""
