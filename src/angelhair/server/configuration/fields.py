"""Every setting, once: its kind, its other names, what it depends on, and what the help says of it.

A field's flag is --its-name, its variable ANGELHAIR_ITS_NAME, its YAML key its_name. `environment` has the names that
the ancestors gave it, which work as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from angelhair import limits
from angelhair.server.configuration.kinds import (
    Addresses,
    Choice,
    Kind,
    Seconds,
    Text,
    Whole,
    YesNo,
    graphite_path,
    graphite_place,
    host_without_port,
    http_address,
    keyspace_name,
    path,
)
from angelhair.settings import DEFAULT_DATA, Settings

OWN_PREFIX = "ANGELHAIR_"

SECTIONS = {
    "server": "the doors",
    "embedded": "the embedded store",
    "cassandra": "Cassandra",
    "telling": "logs, metrics and traces",
}
"""The groups of a nested YAML file, and of the help."""

CONSISTENCY_LEVELS = ("LOCAL_QUORUM", "QUORUM", "EACH_QUORUM", "ALL", "ONE", "TWO", "THREE", "LOCAL_ONE")
SERIAL_LEVELS = ("LOCAL_SERIAL", "SERIAL")
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("json", "text")


@dataclass(frozen=True)
class Field:
    name: str
    section: str
    kind: Kind
    help: str
    environment: tuple[str, ...] = ()
    """The ancestors' names for it."""
    short: str | None = None
    """Its YAML key inside its section, where that can do without what the section says already."""
    parent: str | None = None
    """Counts only while this other setting is on."""
    secret: bool = False
    """Never shown, and not a flag: every user of a machine sees the flags of its processes."""

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def own_variable(self) -> str:
        return OWN_PREFIX + self.name.upper()

    @property
    def variables(self) -> tuple[str, ...]:
        """The own name first: who says it means this program."""
        return (self.own_variable, *self.environment)


_PORT = Whole(1, limits.PORT_MAXIMUM, wanted="PORT")
_FILE = Text(wanted="FILE", check=path)

PASSWORD_FILE = "password_file"
"""The one name that is no setting: it says where the password is."""

FIELDS: tuple[Field, ...] = (
    Field("host", "server", Text(wanted="ADDRESS", check=host_without_port), "the address to listen on"),
    Field("port", "server", Whole(0, limits.PORT_MAXIMUM, wanted="PORT"), "the port to listen on; 0 takes any"),
    Field("open", "server", YesNo(), "serve other addresses than the loopback without access keys: everybody who "
          "can reach this machine may do everything"),
    Field("workers", "server", Whole(1, limits.WORKERS_MAXIMUM), "how many processes"),
    Field("tls_certificate", "server", _FILE, "serve HTTPS with this certificate (PEM, with its chain)"),
    Field("tls_key", "server", _FILE, "the certificate's key, if it is in a file of its own"),
    Field("stop_grace_seconds", "server", Seconds(0, limits.STOP_GRACE_MAXIMUM_SECONDS),
          "how long requests under way may take when the server stops"),
    Field("databag_sync_seconds", "server",
          Seconds(limits.BAG_SYNC_MINIMUM_MS / 1000, limits.BAG_SYNC_MAXIMUM_MS / 1000),
          "how often what is stored of a databag's partitions and settings comes in force here"),
    Field("public_url", "server", Text(wanted="URL", check=http_address),
          "what links in messages of topics begin with; without it, the name by which a publisher called the server"),
    Field("allow_private_endpoints", "server", YesNo(),
          "post messages of topics to HTTP endpoints on this machine and in its networks, too"),

    Field("data", "embedded", Text(wanted="DIR", check=path),
          f"keep everything in one file under this directory; without contact points the default is {DEFAULT_DATA}"),

    Field("contact_points", "cassandra", Addresses(), "keep everything in this Cassandra: some of its nodes",
          environment=("CONTACT_POINTS",)),
    Field("keyspace", "cassandra", Text(wanted="NAME", check=keyspace_name), "Angelhair's keyspace",
          environment=("KEYSPACE",), parent="contact_points"),
    Field("cluster_name", "cassandra", Text(wanted="NAME"), "the cluster's name, for people only",
          environment=("CLUSTER_NAME",), parent="contact_points"),
    Field("cassandra_port", "cassandra", _PORT, "the port of every node, without SSL",
          environment=("CASSANDRA_PORT",), short="port", parent="contact_points"),
    Field("auth_provider", "cassandra", Choice(("plainText",)), "how to log in; counts once there is a user name",
          environment=("AUTH_PROVIDER",), parent="contact_points"),
    Field("username", "cassandra", Text(wanted="NAME"), "who logs in",
          environment=("USERNAME",), parent="contact_points"),
    Field("password", "cassandra", Text(exact=True), "their password",
          environment=("PASSWORD",), parent="contact_points", secret=True),
    Field("consistency_level", "cassandra", Choice(CONSISTENCY_LEVELS), "of reads and of writes",
          environment=("CONSISTENCY_LEVEL",), parent="contact_points"),
    Field("serial_consistency_level", "cassandra", Choice(SERIAL_LEVELS), "of conditional writes",
          parent="contact_points"),
    Field("data_center", "cassandra", Text(wanted="NAME"),
          "the home data centre; without it, that of the first contact point to answer",
          environment=("DATA_CENTER",), parent="contact_points"),
    Field("use_ssl", "cassandra", YesNo(), "speak to Cassandra over TLS",
          environment=("USE_SSL",), parent="contact_points"),
    Field("ssl_port", "cassandra", _PORT, "the port of every node, with SSL",
          environment=("SSL_PORT",), parent="use_ssl"),
    Field("ssl_ca", "cassandra", _FILE, "the certificates to trust, a file or a directory; without it the system's",
          parent="use_ssl"),
    Field("ssl_certificate", "cassandra", _FILE, "show the nodes this certificate", parent="use_ssl"),
    Field("ssl_key", "cassandra", _FILE, "its key, if it is in a file of its own", parent="use_ssl"),
    Field("ssl_check_hostname", "cassandra", YesNo(), "the nodes' certificates must name their addresses",
          parent="use_ssl"),

    Field("log_level", "telling", Choice(LOG_LEVELS), "what is logged"),
    Field("log_format", "telling", Choice(LOG_FORMATS), "how it is logged"),
    Field("access_log", "telling", YesNo(), "log a line for every request, at the level info"),
    Field("application_name", "telling", Text(wanted="NAME", longest=limits.APPLICATION_NAME_LENGTH),
          "the name that stands on every log line", environment=("LOGSTASH_CUSTOM_APP_NAME",)),
    Field("use_metrics_graphite", "telling", YesNo(), "send metrics to Graphite",
          environment=("USE_METRICS_GRAPHITE", "METRICS_GRAPHITE")),
    Field("graphite_url", "telling", Text(wanted="HOST[:PORT]", check=graphite_place), "where Graphite listens",
          environment=("GRAPHITE_URL",), parent="use_metrics_graphite"),
    Field("graphite_prefix", "telling", Text(wanted="PATH", check=graphite_path), "how every metric's path begins",
          environment=("GRAPHITE_PREFIX",), parent="use_metrics_graphite"),
    Field("otlp_endpoint", "telling", Text(wanted="URL", check=http_address), "send traces to this collector"),
)
"""In the order of the help. A parent stands before its children."""

BY_NAME = {field.name: field for field in FIELDS}

DEFAULTS = {field.name: field.default for field in fields(Settings)}
