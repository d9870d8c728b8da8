"""The one table: what this door answers, in which file, and how it is described.

    queues.py        list make show change delete purge       ack.py            ack, ack many, change what was delivered
    put.py           one message, or a list of them           looking.py        peek, pointers, buckets
    receive.py       messages with their receipts             dead_letters.py   look into them, send them back
    repair.py        move the repair mark back                pages.py          what this is, OpenAPI, a page to read
    cluster.py       which servers there are
    timelines.py     touch or leave as a consumer, look at the shards; its routes are in timeline_routes.py
    topics.py        list make show delete, subscribe queues, publish; its routes are in topic_routes.py
"""

from __future__ import annotations

from angelhair.server.rest import (
    ack,
    cluster,
    cluster_shapes,
    dead_letters,
    examples,
    looking,
    pages,
    put,
    queues,
    reaching,
    receive,
    repair,
    shapes,
    timeline_routes,
    topic_routes,
)
from angelhair.server.rest.query import BATCH, QUEUE, RECEIPT
from angelhair.server.rest.route import DONE, OF_A_QUEUE, READING, WITH_JSON, WRITING, Answer, RequestBody, Route

WITH_A_RECEIPT = ("queue_not_found", "invalid_receipt", "stale_receipt")

SAME_QUEUE = {"queue": "$request.path.queue"}
THIS_MESSAGE = SAME_QUEUE | {"receipt": "$response.body#/messages/0/receipt"}
QUEUE_READY = {"put_message": SAME_QUEUE, "put_messages": SAME_QUEUE, "show_queue": SAME_QUEUE}

VERBS = (
    # --- queues -----------------------------------------------------------------------------------------------------
    Route(
        "GET", "/queues", queues.list_queues, "list_queues", "Queues", "List queues",
        {200: Answer("Names, in order.", shapes.QueueList, examples.QUEUE_LIST)},
        query=tuple(queues.LIST.values()), refusals=READING,
        action="ListQueues",
    ),
    Route(
        "PUT", "/queues/{queue}", queues.make_queue, "make_queue", "Queues", "Make a queue",
        {
            201: Answer("Made.", shapes.QueueSaid, examples.QUEUE, leads_to=QUEUE_READY),
            200: Answer("It exists, with these settings.", shapes.QueueSaid, examples.QUEUE, leads_to=QUEUE_READY),
        },
        description="What is left out has its default, in an existing queue too: another value there is a conflict.",
        path=(QUEUE,),
        body=RequestBody("The settings; an empty body takes the defaults.", shapes.NewQueue, examples.NEW_QUEUE, False),
        refusals=(*WITH_JSON, "queue_exists", *WRITING), curl="-X PUT -d '{\"visibility_timeout\": 60}'",
        action="CreateQueue", reaches=reaching.dead_letter_queue_named,
    ),
    Route(
        "GET", "/queues/{queue}", queues.show_queue, "show_queue", "Queues", "Show a queue",
        {200: Answer("Its settings, and what it holds.", shapes.QueueShown, examples.QUEUE_SHOWN)},
        path=(QUEUE,), refusals=(*OF_A_QUEUE, *READING),
        action="GetQueueAttributes",
    ),
    Route(
        "PATCH", "/queues/{queue}", queues.change_queue, "change_queue", "Queues", "Change a queue's settings",
        {200: Answer("Changed; these are its settings now.", shapes.QueueSaid, examples.QUEUE)},
        description="In force here at once, on other servers within 5 seconds. `fixed` of a queue cannot change.",
        path=(QUEUE,), body=RequestBody("What changes.", shapes.Changes, examples.CHANGES),
        refusals=(*OF_A_QUEUE, *WITH_JSON, *WRITING), curl="-X PATCH -d '{\"max_deliveries\": 5}'",
        action="SetQueueAttributes", reaches=reaching.dead_letter_queue_named,
    ),
    Route(
        "DELETE", "/queues/{queue}", queues.delete_queue, "delete_queue", "Queues", "Delete a queue and all it holds",
        {204: DONE}, path=(QUEUE,), refusals=(*OF_A_QUEUE, *WRITING), curl="-X DELETE",
        action="DeleteQueue",
    ),
    Route(
        "POST", "/queues/{queue}/purge", queues.purge_queue, "purge_queue", "Queues", "Throw away all messages",
        {204: DONE}, description="All that was put before is gone, in flight or not.",
        path=(QUEUE,), refusals=(*OF_A_QUEUE, *WRITING), curl="-X POST",
        action="PurgeQueue",
    ),
    # --- messages ---------------------------------------------------------------------------------------------------
    Route(
        "PUT", "/queues/{queue}/message", put.put_message, "put_message", "Messages", "Put a message",
        {201: Answer("It will be delivered.", shapes.Put, examples.PUT, leads_to={"receive_messages": SAME_QUEUE})},
        description="The request's body is the message's body, byte for byte; its Content-Type is kept.",
        path=(QUEUE,), query=tuple(put.PARAMETERS.values()),
        body=RequestBody("Anything, or nothing; up to 8 MiB.", None, "hello", False),
        refusals=(*OF_A_QUEUE, *WRITING), curl="-X PUT -d 'hello'",
        action="SendMessage",
    ),
    Route(
        "PUT", "/queues/{queue}/messages", put.put_messages, "put_messages", "Messages", "Put up to 1,000 messages",
        {
            201: Answer("All were put.", shapes.PutAll, examples.PUT_ALL),
            207: Answer("Some were put; the others have an error in their place.", shapes.PutSome, examples.PUT_SOME),
        },
        description="If none was put, for one reason, that reason is the answer. A bad message refuses them all.",
        path=(QUEUE,), body=RequestBody("The messages.", shapes.NewMessages, examples.NEW_MESSAGES),
        refusals=(*OF_A_QUEUE, *WITH_JSON, *WRITING),
        curl="-X PUT -d '[{\"body\": \"one\"}, {\"body\": \"two\", \"delay\": 5}]'",
        action="SendMessage",
    ),
    Route(
        "GET", "/queues/{queue}/messages/{batch}", receive.receive, "receive_messages", "Messages", "Receive messages",
        {
            200: Answer(
                "The messages; none if there are none.", shapes.Received, examples.RECEIVED,
                leads_to={"ack_message": THIS_MESSAGE, "change_message": THIS_MESSAGE},
            )
        },
        description="Each is invisible to others until it is acked, or its visibility is over. Does not answer HEAD.",
        path=(QUEUE, BATCH), query=tuple(receive.PARAMETERS.values()), refusals=(*OF_A_QUEUE, *WRITING), safe=False,
        action="ReceiveMessage",
    ),
    Route(
        "DELETE", "/queues/{queue}/message/{receipt}", ack.ack_message, "ack_message", "Messages", "Ack a message",
        {204: Answer("It is settled, by this request or an earlier one with this receipt.")},
        path=(QUEUE, RECEIPT), refusals=(*WITH_A_RECEIPT, *WRITING), curl="-X DELETE",
        action="DeleteMessage",
    ),
    Route(
        "PATCH", "/queues/{queue}/message/{receipt}", ack.change_message, "change_message", "Messages",
        "Extend, release or rewrite a delivered message",
        {204: DONE}, description="The receipt stays good.",
        path=(QUEUE, RECEIPT), body=RequestBody("What changes.", shapes.MessageChange, examples.MESSAGE_CHANGE),
        refusals=(*WITH_A_RECEIPT, *WITH_JSON, *WRITING), curl="-X PATCH -d '{\"visibility\": 120}'",
        action="ChangeMessageVisibility",
    ),
    Route(
        "POST", "/queues/{queue}/acks", ack.ack_messages, "ack_messages", "Messages", "Ack up to 1,000 messages",
        {200: Answer("How many are settled, and what is wrong with the others.", shapes.Acked, examples.ACKED)},
        path=(QUEUE,), body=RequestBody("The receipts.", shapes.Acks, examples.ACKS),
        refusals=(*OF_A_QUEUE, *WITH_JSON, *WRITING), curl="-X POST -d '{\"receipts\": [\"...\"]}'",
        action="DeleteMessage",
    ),
    *timeline_routes.VERBS,
    *topic_routes.VERBS,
    # --- looking and operating --------------------------------------------------------------------------------------
    Route(
        "GET", "/queues/{queue}/peek/{batch}", looking.peek, "peek_messages", "Operating",
        "See messages without receiving them",
        {200: Answer(
            "Messages that could be received now; of a timeline all that are not processed.",
            shapes.Seen, examples.SEEN,
        )},
        path=(QUEUE, BATCH), refusals=(*OF_A_QUEUE, *READING),
        action="ReceiveMessage",
    ),
    Route(
        "GET", "/queues/{queue}/dead/{batch}", dead_letters.peek_dead, "peek_dead_letters", "Operating",
        "See the dead letters of a queue",
        {200: Answer("What its dead-letter queue holds.", shapes.SeenDead, examples.SEEN_DEAD)},
        path=(QUEUE, BATCH), refusals=(*OF_A_QUEUE, "no_dead_letter_queue", *READING),
        action="ReceiveMessage", reaches=reaching.dead_letter_queue_of,
    ),
    Route(
        "POST", "/queues/{queue}/redrive", dead_letters.redrive, "redrive_messages", "Operating",
        "Send messages back to where they came from, or elsewhere",
        {200: Answer("How many went; call again until it is 0.", shapes.Moved, shapes.Moved(17))},
        description="Called on the queue that holds the dead letters. One that sends its own elsewhere, and has none, "
                    "is refused with 409.",
        path=(QUEUE,), body=RequestBody("Where to, and how many.", shapes.Redrive, examples.REDRIVE, False),
        refusals=(*OF_A_QUEUE, "dead_letters_elsewhere", *WITH_JSON, *WRITING),
        curl="-X POST -d '{\"destination\": null, \"count\": 100}'",
        action="StartMessageMoveTask", reaches=reaching.destination_named,
    ),
    Route(
        "GET", "/queues/{queue}/pointers", looking.show_pointers, "show_pointers", "Operating", "Show a queue's marks",
        {200: Answer("The marks of each lane.", shapes.Pointers, examples.POINTERS)},
        path=(QUEUE,), refusals=(*OF_A_QUEUE, *READING),
        action="GetQueueAttributes",
    ),
    Route(
        "GET", "/queues/{queue}/buckets", looking.show_buckets, "show_buckets", "Operating", "Show a queue's buckets",
        {200: Answer("Buckets of one lane, in order.", shapes.Buckets, examples.BUCKETS)},
        path=(QUEUE,), query=tuple(looking.BUCKETS.values()), refusals=(*OF_A_QUEUE, *READING),
        action="GetQueueAttributes",
    ),
    Route(
        "POST", "/queues/{queue}/repair", repair.move_back, "move_back", "Operating", "Have buckets looked into again",
        {200: Answer("Where the repair mark stands now.", shapes.MovedBack, shapes.MovedBack(0, 12))},
        description="Moves the repair mark of a lane back, never forward, and never below its floor.",
        path=(QUEUE,),
        body=RequestBody("Which lane, and back to which bucket.", shapes.MoveBack, shapes.MoveBack(0, 12)),
        refusals=(*OF_A_QUEUE, *WITH_JSON, *WRITING), curl="-X POST -d '{\"lane\": 0, \"bucket\": 12}'",
        action="SetQueueAttributes",
    ),
    Route(
        "GET", "/cluster", cluster.show_cluster, "show_cluster", "Operating", "Show which servers there are",
        {200: Answer("Every process that serves the same store.", cluster_shapes.Cluster, examples.CLUSTER)},
        description="A server that stops is gone at once; one that dies falls out after a few seconds.",
        refusals=READING, action="DescribeCluster",
    ),
)

ROUTES: tuple[Route, ...] = (*VERBS, *pages.routes(VERBS))
