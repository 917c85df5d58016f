"""The options of a collector, which other commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

StoreUrl = Annotated[
    str,
    typer.Argument(
        metavar="STORE",
        envvar="SOTTOVOCE_STORE",
        help="Where reports rest: sqlite:///file.db or postgresql://...",
    ),
]
StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="SOTTOVOCE_STORE",
        help="sqlite:///file.db or postgresql://...",
    ),
]
Host = Annotated[
    str, typer.Option(envvar="SOTTOVOCE_HOST", help="The address to listen at; 0.0.0.0 for all.")
]
Port = Annotated[
    int,
    typer.Option(
        min=0, max=65535, envvar="SOTTOVOCE_PORT", help="The port; 0 for any that is free."
    ),
]
RateLimit = Annotated[
    float | None,
    typer.Option(
        metavar="N",
        envvar="SOTTOVOCE_RATE_LIMIT",
        help="At most so many requests a second from one address; "
        "probes of /healthz are not counted.",
    ),
]
Origins = Annotated[
    list[str] | None,
    typer.Option(
        "--origin",
        metavar="URL",
        envvar="SOTTOVOCE_ORIGIN",
        help="A site whose pages may send; may be given again.",
    ),
]
Proxies = Annotated[
    list[str] | None,
    typer.Option(
        "--proxy",
        metavar="ADDRESS",
        envvar="SOTTOVOCE_PROXY",
        help="A proxy, or a network of them, that is believed about its clients' addresses; "
        "may be given again.",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar="SOTTOVOCE_ADDRESS",
        help="The one address of participants' pages, such as https://survey.example.org; "
        "others lead there.",
    ),
]
Shuffler = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar="SOTTOVOCE_SHUFFLER",
        help="Where the first shuffler takes sealed reports, such as https://shuffler.example.org; "
        "participants' pages of shuffled surveys send there.",
    ),
]
Metrics = Annotated[
    str,
    typer.Option(
        metavar="token|public|off",
        envvar="SOTTOVOCE_METRICS",
        help="Who may read /metrics: whoever has a token, everybody, or nobody.",
    ),
]
Totals = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        envvar="SOTTOVOCE_TOTALS",
        help="Also show what was folded there by `sottovoce fold-minutes`; a folder or a URL.",
    ),
]
OldestDays = Annotated[
    float,
    typer.Option(
        metavar="N",
        envvar="SOTTOVOCE_OLDEST_DAYS",
        help="Refuse reports that were drawn longer ago, as their ids tell.",
    ),
]
Plans = Annotated[
    list[Path] | None, typer.Argument(metavar="plan.json", help="Surveys to take in.")
]
CollectorKey = Annotated[
    Path | None,
    typer.Option(
        "--key",
        metavar="FILE",
        envvar="SOTTOVOCE_KEY",
        help="The collector's private key, for shuffled plans; see `sottovoce key new`.",
    ),
]
BatchesOption = Annotated[
    str | None,
    typer.Option(
        "--batches",
        metavar="URL",
        envvar="SOTTOVOCE_BATCHES",
        help="Where batches of shuffled plans wait; by default a file beside that of the store.",
    ),
]
CertificateFile = Annotated[
    Path | None,
    typer.Option(
        "--certificate",
        metavar="PEM",
        envvar="SOTTOVOCE_CERTIFICATE",
        help="Speak HTTPS with this certificate, without a proxy; needs --certificate-key.",
    ),
]
CertificateKey = Annotated[
    Path | None,
    typer.Option(
        "--certificate-key",
        metavar="PEM",
        envvar="SOTTOVOCE_CERTIFICATE_KEY",
        help="The certificate's private key.",
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        envvar="SOTTOVOCE_VERBOSE",
        help="Log what happens, not only what goes wrong.",
    ),
]
Language = Annotated[
    str | None,
    typer.Option(
        metavar="en|de|fr|it|es",
        envvar="SOTTOVOCE_LANGUAGE",
        help="Of participants' pages; by default what each browser prefers.",
    ),
]
