"""GetDataProtectionPolicy, PutDataProtectionPolicy: kept and said; nothing is masked by it."""

from __future__ import annotations

from angelhair.engine.topics.values import Topic, TopicRewritten
from angelhair.server.sns import kept
from angelhair.server.sns.actions.call import Call
from angelhair.server.sns.checked import OfTopic
from angelhair.server.sns.outputs import GetDataProtectionPolicyResult, Nothing


async def get_data_protection_policy(call: Call, wanted: OfTopic[None]) -> GetDataProtectionPolicyResult:
    topic = await call.topic(wanted.topic)
    return GetDataProtectionPolicyResult(topic.notes.get(kept.PROTECTION))


async def put_data_protection_policy(call: Call, wanted: OfTopic[str | None]) -> Nothing:
    def rewrite(topic: Topic) -> TopicRewritten:
        notes = {name: note for name, note in topic.notes.items() if name != kept.PROTECTION}
        if wanted.wanted is not None:
            notes[kept.PROTECTION] = wanted.wanted
        return TopicRewritten({}, notes)

    await call.service.topics.rewrite(call.account, wanted.topic.name, rewrite)
    return Nothing()
