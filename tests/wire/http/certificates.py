"""Certificates that are made for one test run, by the openssl of the machine. Nothing that could leak is kept."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
"""The quickest to make."""

PASSWORD = "sesame"


@dataclass(frozen=True)
class Certificates:
    """Paths of PEM files."""

    authority: Path
    """What clients are to trust."""
    certificate: Path
    """For 127.0.0.1 and localhost."""
    key: Path
    locked_key: Path
    """The same, encrypted with a password."""
    other_key: Path
    """Belongs to another certificate."""

    @property
    def flags(self) -> list[str]:
        """For `angelhair serve`."""
        return ["--tls-certificate", str(self.certificate), "--tls-key", str(self.key)]


def make_certificates(folder: Path) -> Certificates:
    made = Certificates(*(folder / f"{name}.pem" for name in ("authority", "server", "key", "locked", "other")))
    request, names = folder / "request.pem", folder / "names"
    names.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth\n")
    _openssl(
        "req", "-x509", *CURVE, "-keyout", made.other_key, "-out", made.authority, "-days", "2",
        "-subj", "/CN=authority of a test", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
    )
    _openssl("req", *CURVE, "-keyout", made.key, "-out", request, "-subj", "/CN=server of a test")
    _openssl(
        "x509", "-req", "-in", request, "-CA", made.authority, "-CAkey", made.other_key, "-CAcreateserial",
        "-days", "2", "-extfile", names, "-out", made.certificate,
    )
    _openssl("pkey", "-in", made.key, "-aes256", "-passout", f"pass:{PASSWORD}", "-out", made.locked_key)
    return made


def _openssl(*arguments: str | Path) -> None:
    ran = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
