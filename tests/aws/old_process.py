"""Runs in the environment of the old SDK: calls of its SQS client come as lines of JSON, and so do the answers."""

import base64
import json
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError


def packed(value):
    if isinstance(value, bytes):
        return {"bytes in base64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {key: packed(item) for key, item in value.items()}
    return [packed(item) for item in value] if isinstance(value, list | tuple) else value


def unpacked(value):
    if isinstance(value, dict):
        if value.keys() == {"bytes in base64"}:
            return base64.b64decode(value["bytes in base64"])
        return {key: unpacked(item) for key, item in value.items()}
    return [unpacked(item) for item in value] if isinstance(value, list) else value


def main() -> None:
    client = boto3.client(
        "sqs", endpoint_url=sys.argv[1], region_name="eu-west-1", aws_access_key_id=sys.argv[2],
        aws_secret_access_key=sys.argv[3], config=Config(retries={"max_attempts": 0}, read_timeout=60),
    )
    print(json.dumps(client.meta.service_model.metadata["protocol"]), flush=True)
    for line in sys.stdin:
        verb, parameters, pages = unpacked(json.loads(line))
        try:
            if pages is None:
                answer = {"answer": getattr(client, verb)(**parameters)}
            else:
                found = client.get_paginator(verb).paginate(**parameters, PaginationConfig=pages)
                answer = {"answer": list(found)}
        except ClientError as error:
            answer = {"error": error.response, "operation": error.operation_name, "kind": type(error).__name__}
        print(json.dumps(packed(answer)), flush=True)


if __name__ == "__main__":
    main()
