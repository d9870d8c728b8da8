"""Whatever is changed in a signed request, it is refused: each kind of mutation on its own, and seeded mixtures.

`make prove ARGS="--only signatures"` runs a hundred thousand.
"""

from __future__ import annotations

from random import Random

import pytest

from angelhair.server.auth import Refused, SigningKeys
from tests.wire.signing import kinds_of_claim, kinds_of_message  # noqa: F401 - they fill the table of kinds
from tests.wire.signing.mutating import KINDS, Kind, Sent, mutations, originals
from tests.wire.signing.signers import verified

TIMES = 40
"""Each kind has choices to make."""
MIXTURES, SEED = 5_000, 20_261_116

CODES = {
    "MissingAuthenticationToken": 403, "IncompleteSignature": 400, "InvalidQueryParameter": 400,
    "InvalidClientTokenId": 403, "SignatureDoesNotMatch": 403, "AccessDenied": 403,
}


def accepted(sent: Sent, kept: SigningKeys) -> bool:
    try:
        verified(sent.request, sent.now_seconds, kept=kept)
    except Refused as error:
        refused = error
    else:
        return True
    assert CODES[refused.code] == refused.status
    assert refused.message.isascii()
    return False


def test_the_originals_are_accepted() -> None:
    assert all(accepted(sent, SigningKeys()) for sent in originals())


def test_there_are_many_kinds() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS) >= 40


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_of_mutation_is_refused(kind: Kind) -> None:
    dice, kept = Random(kind.name), SigningKeys()
    applied = 0
    for original in originals():
        assert accepted(original, kept)
        for _ in range(TIMES):
            spoiled = kind.apply(dice, original)
            if spoiled is not None:
                applied += 1
                assert spoiled != original
                assert not accepted(spoiled, kept), spoiled
    assert applied


def test_mixtures_of_mutations_are_refused() -> None:
    kept = SigningKeys()
    assert [name for name, sent in mutations(SEED, MIXTURES) if accepted(sent, kept)] == []


def test_mixtures_are_the_same_for_the_same_seed() -> None:
    assert list(mutations(1, 50)) == list(mutations(1, 50)) != list(mutations(2, 50))
