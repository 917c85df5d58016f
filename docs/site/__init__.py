"""The documentation as a site that needs no server and no network: ``make docs``."""
