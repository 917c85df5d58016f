"""From many collectors to one total: reports shipped by the minute, each minute folded once."""
