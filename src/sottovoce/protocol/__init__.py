"""Who is asked what, what is sent, what it costs: terms, families, encodings, the plan, reports."""
