"""The SDK of AWS for Java, version 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.jars import java_command
from cluster.maven import ComponentMissing, fetch, versioned
from tests.aws.stories import STORIES, missing, told
from tests.wire.server import RunningServer

FOLDER = Path(__file__).parent / "java"
POM = FOLDER / "pom.xml"


@pytest.fixture(scope="module")
def outcomes(shared_server: RunningServer) -> dict[str, str]:
    try:
        java = java_command()
        jars = fetch(POM, versioned("aws-sdk-java", POM), "the SDK of AWS for Java", ["sqs-*.jar", "slf4j-api-*.jar"])
    except ComponentMissing as absent:
        missing(str(absent))
    # Its source is UTF-8 wherever it runs; and it does not live long enough for the best of compilers to be worth it.
    options = ["-Dfile.encoding=UTF-8", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
    return told([java, *options, str(FOLDER / "Client.java"), shared_server.url, "java-"], {})


@pytest.mark.parametrize("story", STORIES)
def test_told_by_the_sdk_for_java(outcomes: dict[str, str], story: str) -> None:
    assert outcomes[story] == ""
