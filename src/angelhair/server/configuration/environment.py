"""What the environment says: the ancestors' variables, and ANGELHAIR_<NAME> for every setting.

Some of these names belong to others too. Desktops and Windows set USERNAME to whoever is logged in. Kubernetes tells
every container about every service: next to one called `cassandra` CASSANDRA_PORT is `tcp://10.0.0.7:9042`, next to one
called `angelhair` there are ANGELHAIR_PORT, ANGELHAIR_SERVICE_HOST and more. Neither may keep a server from starting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from angelhair.server.configuration.fields import BY_NAME, FIELDS, OWN_PREFIX, PASSWORD_FILE
from angelhair.server.configuration.said import Ignored, Layer, Origin, Said, is_unset
from angelhair.server.configuration.words import did_you_mean

CONFIG_VARIABLE = "ANGELHAIR_CONFIG"
PASSWORD_FILE_VARIABLE = "ANGELHAIR_PASSWORD_FILE"

LOGIN_VARIABLE = "USERNAME"

NOT_SETTINGS = frozenset({
    CONFIG_VARIABLE, PASSWORD_FILE_VARIABLE, "ANGELHAIR_CACHE", "ANGELHAIR_SERVER", "ANGELHAIR_KEY_ID",
    "ANGELHAIR_SECRET",
})
"""Variables of ours that are no settings of a server: where files are, what the tests and the client's commands use."""

_SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://.*")
_SERVICE_VARIABLE = re.compile(
    r"ANGELHAIR(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)


def read_environment(environment: Mapping[str, str], password_elsewhere: bool = False) -> list[Said | Ignored]:
    """What is said, of each setting the one that wins first. `password_elsewhere`: a flag says where it is."""
    found: list[Said | Ignored] = []
    with_password = password_elsewhere or any(
        environment.get(name) for name in (*BY_NAME["password"].variables, PASSWORD_FILE_VARIABLE)
    )
    for field in FIELDS:
        for name in field.variables:
            raw = environment.get(name)
            if is_unset(raw, field):
                continue
            origin = Origin(Layer.ENVIRONMENT, name)
            if field.name in {"port", "cassandra_port"} and _SERVICE_ADDRESS.fullmatch(str(raw)):
                found.append(Ignored(origin, "is the address of a service, as Kubernetes sets it"))
            elif name == LOGIN_VARIABLE and not with_password:
                found.append(Ignored(origin, "comes without a PASSWORD and so may be the login name of this machine"))
            else:
                found.append(Said(field.name, origin, raw))
    raw = environment.get(PASSWORD_FILE_VARIABLE)
    if not is_unset(raw, None):
        found.append(Said(PASSWORD_FILE, Origin(Layer.ENVIRONMENT, PASSWORD_FILE_VARIABLE), raw))
    return found


def unknown_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """Complaints about variables that are meant for this program and that it does not know."""
    known = {name for field in FIELDS for name in field.variables if name.startswith(OWN_PREFIX)} | NOT_SETTINGS
    for name, raw in sorted(environment.items()):
        if not name.startswith(OWN_PREFIX) or name in known or is_unset(raw, None):
            continue
        if _SERVICE_VARIABLE.fullmatch(name) or (name.endswith("_PORT") and _SERVICE_ADDRESS.fullmatch(raw)):
            continue
        yield f"{name}: there is no such setting{did_you_mean(name, known)}"
