"""URLs and ARNs of queues."""

from __future__ import annotations

import pytest

from angelhair.server.aws.arns import QueueArn, looks_like_arn, parse_arn, queue_arn
from angelhair.server.sqs.addresses import QueueAddress, address_in_path, queue_address, queue_url
from angelhair.server.sqs.errors import InvalidAddress
from tests.wire.sqs.amazon import ACCOUNT, HOST, request


@pytest.mark.parametrize(("url", "address"), [
    (f"http://localhost:9324/{ACCOUNT}/orders", QueueAddress(ACCOUNT, "orders")),
    (f"https://sqs.eu-west-1.amazonaws.com/{ACCOUNT}/orders.fifo", QueueAddress(ACCOUNT, "orders.fifo")),
    (f"https://[::1]:80/{ACCOUNT}/a_b-C9", QueueAddress(ACCOUNT, "a_b-C9")),
    (f"http://user@proxy.example/{ACCOUNT}/orders/", QueueAddress(ACCOUNT, "orders")),
    (f"/{ACCOUNT}/orders", QueueAddress(ACCOUNT, "orders")),
    ("orders", QueueAddress(None, "orders")),
    ("orders.fifo", QueueAddress(None, "orders.fifo")),
    ("q" * 80, QueueAddress(None, "q" * 80)),
])
def test_urls_that_name_a_queue(url: str, address: QueueAddress) -> None:
    assert queue_address(url) == address
    assert queue_address(url).is_fifo == address.name.endswith(".fifo")


@pytest.mark.parametrize("url", [
    "", " ", "a b", "orders.fifo.fifo", "orders.other", "q" * 81, "ördër", f"http://x/{ACCOUNT}", f"/{ACCOUNT}/",
    f"/{ACCOUNT}//orders", f"http://x/{ACCOUNT}/{'q' * 81}", "http://x/12/orders", f"ftp://x/{ACCOUNT}/orders",
    f"http://x/more/{ACCOUNT}/orders", f"http://x/{ACCOUNT}/orders?x=1", f"http://x/{ACCOUNT}/orders\n",
    f"http://{'x' * 2000}/{ACCOUNT}/orders", f"arn:aws:sqs:eu-west-1:{ACCOUNT}:orders", f"http:///{ACCOUNT}/orders",
])
def test_urls_that_name_none(url: str) -> None:
    with pytest.raises(InvalidAddress) as refused:
        queue_address(url)
    said = url if len(url) <= 1024 else f"{url[:1024]}..."
    assert refused.value.message == f"The address {said} is not valid for this endpoint."


@pytest.mark.parametrize(("path", "address"), [
    (f"/{ACCOUNT}/orders", QueueAddress(ACCOUNT, "orders")),
    (f"/{ACCOUNT}/orders/", QueueAddress(ACCOUNT, "orders")),
    ("/", None), ("/queues/orders", None), (f"/{ACCOUNT}", None), (f"/{ACCOUNT}/a/b", None), ("orders", None),
    (f"/{ACCOUNT}/{'q' * 81}", None), (f"/{ACCOUNT}/a%20b", None),
])
def test_paths(path: str, address: QueueAddress | None) -> None:
    assert address_in_path(path) == address


def test_a_url_is_made_of_what_the_client_called_us() -> None:
    assert queue_url(request(), ACCOUNT, "orders") == f"http://{HOST}/{ACCOUNT}/orders"
    assert queue_url(request(secure=True), ACCOUNT, "orders") == f"https://{HOST}/{ACCOUNT}/orders"
    without = request()
    without.headers = {}
    assert queue_url(without, ACCOUNT, "orders") == f"http://localhost/{ACCOUNT}/orders"
    assert queue_address(queue_url(request(), ACCOUNT, "orders")) == QueueAddress(ACCOUNT, "orders")


def test_arns() -> None:
    arn = queue_arn("eu-west-1", ACCOUNT, "orders.fifo")
    assert arn == f"arn:aws:sqs:eu-west-1:{ACCOUNT}:orders.fifo"
    assert parse_arn(arn) == QueueArn("aws", "eu-west-1", ACCOUNT, "orders.fifo")
    assert parse_arn(f"arn:aws-cn:sqs:cn-north-1:{ACCOUNT}:a") == QueueArn("aws-cn", "cn-north-1", ACCOUNT, "a")


@pytest.mark.parametrize(("text", "is_arn"), [
    ("", False), ("dummy", False), ("arn:aws:sqs", False), (f"arn:aws:sns:eu-west-1:{ACCOUNT}:topic", True),
    (f"arn:aws:sqs:eu-west-1:{ACCOUNT}:a b", False), (f"arn:aws:sqs:eu-west-1:{ACCOUNT}:a/b", True),
    ("arn:aws:sqs:eu-west-1:12:orders", True), (f"arn:aws:sqs:eu-west-1:{ACCOUNT}:{'q' * 81}", True),
    (f"arn:aws:sqs:eu-west-1:{ACCOUNT}:orders\n", False),
])
def test_what_is_no_arn_of_a_queue(text: str, is_arn: bool) -> None:
    assert parse_arn(text) is None
    assert looks_like_arn(text) == is_arn
