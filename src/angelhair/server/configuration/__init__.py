"""From flags, environment and file to one frozen `Settings`, with the origin of every value."""

from angelhair.server.configuration.checks import development_warning, open_warning, serving_problem
from angelhair.server.configuration.refusal import SettingsRefused
from angelhair.server.configuration.resolve import Resolved, resolve
from angelhair.server.configuration.said import Ignored, Layer, Origin

__all__ = [
    "Ignored", "Layer", "Origin", "Resolved", "SettingsRefused", "development_warning", "open_warning", "resolve",
    "serving_problem",
]
