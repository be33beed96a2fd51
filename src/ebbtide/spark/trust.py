"""Let the resolver's Java trust what this machine trusts.

A Java from a Python package brings certificates of its own and knows none that an administrator added.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from cryptography.x509 import load_pem_x509_certificates

_PASSWORD = "changeit"  # noqa: S105 - what Java expects by default; the file holds nothing secret
_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


def java_options(folder: Path) -> str:
    """Options with which Java trusts the machine's certificates; empty where it has no bundle of them."""
    bundle = next((p for p in (os.environ.get("SSL_CERT_FILE", ""), *_BUNDLES) if p and Path(p).is_file()), None)
    if bundle is None:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some authorities' certificates break rules; that is not ours to judge
            certificates = load_pem_x509_certificates(Path(bundle).read_bytes())
    except ValueError:  # Java's own certificates are better than none
        return ""
    named = [pkcs12.PKCS12Certificate(c, f"ca-{n}".encode()) for n, c in enumerate(certificates)]
    store = folder / "trust.p12"
    store.write_bytes(pkcs12.serialize_java_truststore(named, BestAvailableEncryption(_PASSWORD.encode())))
    return (
        f"-Djavax.net.ssl.trustStore={store} -Djavax.net.ssl.trustStoreType=PKCS12 "
        f"-Djavax.net.ssl.trustStorePassword={_PASSWORD}"
    )
