"""A certificate and its key, so that a collector speaks HTTPS by itself."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from sottovoce.ground.errors import InvalidInput


@dataclass(frozen=True)
class Certificate:
    """Two PEM files that belong together: the certificate (with those above it), and its key."""

    certificate: Path
    key: Path

    @classmethod
    def read(cls, certificate: Path | None, key: Path | None) -> Certificate | None:
        """The two files, after a try to use them; None if none is given."""
        if certificate is None and key is None:
            return None
        if certificate is None or key is None:
            given = "certificate" if key is None else "certificate-key"
            raise InvalidInput(f"{given}: give both --certificate and --certificate-key, or none")
        made = cls(certificate, key)
        made._check()
        return made

    def _check(self) -> None:
        for name, path in (("certificate", self.certificate), ("certificate-key", self.key)):
            try:
                text = path.read_bytes()
            except OSError as wrong:
                why = (wrong.strerror or "it cannot be read").lower()
                raise InvalidInput(f"{name} ({path}) cannot be read: {why}") from None
            if b"-----BEGIN " not in text:
                raise InvalidInput(f"{name} ({path}) must be a PEM file")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.certificate, self.key, password=self._locked)
        except ssl.SSLError as wrong:
            if wrong.reason == "KEY_VALUES_MISMATCH":
                raise InvalidInput(
                    f"certificate-key ({self.key}) is not the key of certificate "
                    f"({self.certificate})"
                ) from None
            raise InvalidInput(
                f"certificate ({self.certificate}) and certificate-key ({self.key}) must be a "
                "certificate and its private key, in PEM"
            ) from None

    def _locked(self) -> str:
        """A collector that starts by itself has nobody to ask for a password."""
        raise InvalidInput(f"certificate-key ({self.key}) must have no password")
