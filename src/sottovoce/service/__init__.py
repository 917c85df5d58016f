"""The collector: takes reports in over HTTP, durably, and answers analysts.

``problems`` says what can go wrong; ``wire`` reads what is sent; ``writer`` makes it durable, many
at a time; ``ingest`` and ``public_routes`` are what anybody may ask, ``analyst_routes`` what needs
a token; ``survey_service`` is what an analyst can do, with or without HTTP; ``app`` puts it
together and ``server`` runs it.
"""
