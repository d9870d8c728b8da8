"""What the SQS wire costs by itself: recognise, decode, check and answer one request, without a queue behind it.

    python -m bench.sqs_wire
"""

from __future__ import annotations

import json
import timeit
from urllib.parse import urlencode

from angelhair.server.aws.shape import Shape
from angelhair.server.http.messages import Request
from angelhair.server.sqs import outputs
from angelhair.server.sqs.answering import answer, decode
from angelhair.server.sqs.recognising import recognise

ROUNDS, CALLS = 5, 5_000
URL = "http://localhost:9324/000000000000/orders"
MESSAGE_ID, MD5, BODY, RECEIPT = "5fea7756-0ea4-451a-a703-a558b933e274", "9" * 32, "x" * 200, "r" * 64
ATTRIBUTES = {"a": {"DataType": "String", "StringValue": "v"}, "b": {"DataType": "Number", "StringValue": "5"}}

SENT = outputs.SendMessageResult(MESSAGE_ID, MD5)
TEN = [str(number) for number in range(10)]
SENT_TEN = outputs.SendMessageBatchResult([outputs.SendMessageBatchResultEntry(each, MESSAGE_ID, MD5) for each in TEN])
DELETED_TEN = outputs.DeleteMessageBatchResult([outputs.DeleteMessageBatchResultEntry(each) for each in TEN])
DELIVERED = outputs.Message(MESSAGE_ID, RECEIPT, MD5, BODY, {"SenderId": "me", "ApproximateReceiveCount": "1"})


def in_json(action: str, **members: object) -> Request:
    headers = {"host": "localhost:9324", "x-amz-target": f"AmazonSQS.{action}"}
    return _request({"QueueUrl": URL, **members}, headers)


def _request(members: dict[str, object], headers: dict[str, str]) -> Request:
    return Request("POST", "/", "", headers, json.dumps(members).encode(), "id", "127.0.0.1", False, True)


def in_query(**parameters: str) -> Request:
    request = _request({}, {"host": "localhost:9324", "content-type": "application/x-www-form-urlencoded"})
    request.body = urlencode({"Version": "2012-11-05", "QueueUrl": URL, **parameters}).encode()
    return request


CASES: list[tuple[str, Request, Shape]] = [
    ("SendMessage, 200 bytes", in_json("SendMessage", MessageBody=BODY), SENT),
    ("SendMessage, 1 KiB", in_json("SendMessage", MessageBody="x" * 1024), SENT),
    ("SendMessage, 200 letters that are not ASCII", in_json("SendMessage", MessageBody="é" * 200), SENT),
    ("SendMessage, two attributes", in_json("SendMessage", MessageBody=BODY, MessageAttributes=ATTRIBUTES), SENT),
    ("SendMessageBatch, ten", in_json(
        "SendMessageBatch", Entries=[{"Id": each, "MessageBody": BODY} for each in TEN]), SENT_TEN),
    ("ReceiveMessage, one", in_json("ReceiveMessage", WaitTimeSeconds=20), outputs.ReceiveMessageResult([DELIVERED])),
    ("ReceiveMessage, ten", in_json(
        "ReceiveMessage", MaxNumberOfMessages=10, MessageSystemAttributeNames=["All"],
    ), outputs.ReceiveMessageResult([DELIVERED] * 10)),
    ("DeleteMessage", in_json("DeleteMessage", ReceiptHandle=RECEIPT), outputs.Nothing()),
    ("DeleteMessageBatch, ten", in_json(
        "DeleteMessageBatch", Entries=[{"Id": each, "ReceiptHandle": RECEIPT} for each in TEN]), DELETED_TEN),
    ("SendMessage, 200 bytes, Query protocol", in_query(Action="SendMessage", MessageBody=BODY), SENT),
]


def once(request: Request, result: Shape) -> None:
    asked = recognise(request)
    assert asked is not None
    decode(asked, request)
    answer(asked, request, result)


def main() -> None:
    for name, request, result in CASES:
        seconds = min(timeit.repeat(lambda: once(request, result), number=CALLS, repeat=ROUNDS))  # noqa: B023
        print(f"{name:46}{seconds / CALLS * 1e6:7.1f} µs")


if __name__ == "__main__":
    main()
