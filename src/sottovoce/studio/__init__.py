"""Web pages: make a survey, take part, watch.

``access`` says who may see what; ``start``, ``making``, ``taking``, ``watching`` and ``downloads``
are the pages; ``forms`` reads what was typed, ``designs`` plans it, ``figures`` draws it, ``jobs``
runs both in processes of their own; ``app`` puts it together. ``client`` is the browser's client,
from ``clients/js``.
"""
