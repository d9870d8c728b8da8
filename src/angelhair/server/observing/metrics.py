"""`/metrics`: the figures of all processes of this server, as Prometheus wants them.

Every process has a registry of its own. Requests arrive at any one of them, so the one that is asked fetches the
others' figures (`siblings.py`) and answers for all, each series with the number of its process in the label `worker`.
A server of one process has no such label.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import InfoMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from angelhair.engine.schema import SCHEMA_VERSION
from angelhair.server.http.messages import Request, Response
from angelhair.server.observing.observer import Observer
from angelhair.server.observing.siblings import Siblings
from angelhair.server.release import version

WORKER = "worker"


class _Release(Collector):
    """Which release runs, and which schema it was written for: what one looks at during a rolling upgrade."""

    def collect(self) -> Iterable[Metric]:
        labels = {"version": version(), "schema": str(SCHEMA_VERSION)}
        return [InfoMetricFamily("angelhair_release", "This release.", labels)]


class Figures(Collector):
    """What one process knows, with its number on every series if it is one of several."""

    def __init__(self, observer: Observer, worker: int | None) -> None:
        self.worker = worker
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self._registry.register(_Release())
        self._registry.register(_Observed(observer))

    def collect(self) -> Iterable[Metric]:
        families = list(self._registry.collect())
        if self.worker is not None:
            label = {WORKER: str(self.worker)}
            for family in families:
                family.samples = [sample._replace(labels={**sample.labels, **label}) for sample in family.samples]
        return families


class Metrics:
    """Answers `/metrics`. To be made inside a running loop."""

    def __init__(self, observer: Observer, figures: Figures, siblings: Siblings | None = None) -> None:
        self._observer = observer
        self._figures = figures
        self._siblings = siblings
        # One at a time: each may take some tens of milliseconds of a thread, and two at once say the same.
        self._turn = asyncio.Lock()

    async def respond(self, request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        async with self._turn:
            self._observer.refresh()
            others = [] if self._siblings is None else await self._siblings.gather()
            text = await asyncio.to_thread(lambda: encode(_Joined(self._figures, others)))
        return Response(200, text, content_type)


class _Observed(Collector):
    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def collect(self) -> Iterable[Metric]:
        return self._observer.collect()


class _Joined(Collector):
    """Families of several processes, each family once and with everybody's series."""

    def __init__(self, own: Collector, others: Sequence[Sequence[Metric]]) -> None:
        self._own = own
        self._others = others

    def collect(self) -> Iterable[Metric]:
        joined = {family.name: family for family in self._own.collect()}
        for families in self._others:
            for family in families:
                present = joined.setdefault(family.name, family)
                if present is not family:
                    present.samples += family.samples
        return joined.values()

