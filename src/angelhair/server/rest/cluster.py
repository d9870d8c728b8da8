"""The servers that share a store."""

from __future__ import annotations

from angelhair.engine import members
from angelhair.server.http.messages import Request, Response, json_response
from angelhair.server.rest import cluster_shapes, query
from angelhair.server.rest.queues import NO_STORE
from angelhair.server.rest.times import rfc3339
from angelhair.server.service import Service


async def show_cluster(service: Service, request: Request) -> Response:
    query.read(request.query, query.NONE)
    membership = service.engine.membership
    alive = await membership.look()
    return json_response(200, cluster_shapes.Cluster(membership.id, [_member(each) for each in alive]), NO_STORE)


def _member(member: members.Member) -> cluster_shapes.Member:
    presence, holdings = member.presence, member.holdings
    return cluster_shapes.Member(
        id=member.id,
        address=presence.address,
        host=presence.host,
        process=presence.process,
        version=presence.version,
        started_at=rfc3339(presence.started_at_ms),
        lanes=holdings.lanes,
        shards=holdings.shards,
    )
