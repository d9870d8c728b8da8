"""From what a server, a command or a task is told to how it reaches Cassandra, certificates included."""

from __future__ import annotations

import os
import ssl

from angelhair.errors import StoreRefused
from angelhair.settings import Settings
from angelhair.stores.cassandra.settings import CassandraSettings


def reaching(settings: Settings) -> CassandraSettings:
    """Raises `StoreRefused` when a certificate cannot be used."""
    return CassandraSettings(
        contact_points=settings.contact_points,
        port=settings.store_port,
        keyspace=settings.keyspace,
        user=settings.username,
        password=settings.password,
        ssl_context=ssl_context(settings) if settings.use_ssl else None,
        data_centre=settings.data_center,
        read_consistency=settings.consistency_level,
        write_consistency=settings.consistency_level,
        serial_consistency=settings.serial_consistency_level,
        application_name=settings.application_name,
    )


def ssl_context(settings: Settings) -> ssl.SSLContext:
    trusted = settings.ssl_ca
    try:
        context = ssl.create_default_context(
            cafile=trusted if trusted is not None and not os.path.isdir(trusted) else None,
            capath=trusted if trusted is not None and os.path.isdir(trusted) else None,
        )
    except OSError as error:
        raise StoreRefused(f"ssl_ca: {trusted} cannot be used: {error.strerror or error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = settings.ssl_check_hostname
    if settings.ssl_certificate is not None:
        try:
            # An empty password fails for a key that has one; without any, OpenSSL would ask at the terminal and wait.
            context.load_cert_chain(settings.ssl_certificate, settings.ssl_key, password="")
        except OSError as error:
            raise StoreRefused(
                f"ssl_certificate: {settings.ssl_certificate} cannot be used: {error.strerror or error}"
            ) from error
    return context
