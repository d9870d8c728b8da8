"""What an id of a databag says: its slice, its epoch's last bits, and a serial that makes it the only one.

    62          51 50             35 34                      0
    slice (12)     epoch (16)        serial, scattered (35)

Serials come from the queue's sequence row, so many at a time, and are scattered by a permutation that the queue's
secret chooses: ids look random, and an id of an earlier queue of this name means nothing here. A random number would
be the same as another now and then, and a blind write would put one message in the place of the other (A1).
"""

from __future__ import annotations

from hashlib import blake2b

from angelhair import limits

_SERIALS = 1 << limits.BAG_SERIAL_BITS
EPOCHS = 1 << limits.BAG_EPOCH_BITS
_SLICE_SHIFT = limits.BAG_SERIAL_BITS + limits.BAG_EPOCH_BITS
BLOCK_SLICES = limits.BAG_SLICES // limits.BAG_BLOCKS


def make(slice_: int, epoch: int, serial: int, secret: bytes) -> int:
    scattered = (serial * (int.from_bytes(secret[:8]) | 1) + int.from_bytes(secret[8:])) % _SERIALS
    return slice_ << _SLICE_SHIFT | epoch % EPOCHS << limits.BAG_SERIAL_BITS | scattered


def is_one(number: int) -> bool:
    return 0 <= number < limits.BAG_SLICES << _SLICE_SHIFT


def slice_of(number: int) -> int:
    return number >> _SLICE_SHIFT


def block_of(slice_: int) -> int:
    return slice_ // BLOCK_SLICES


def epoch_of(number: int, latest: int) -> int:
    """The epoch's whole number, of those up to the latest; below zero if there was none such."""
    return latest - (latest - (number >> limits.BAG_SERIAL_BITS)) % EPOCHS


def first_of(slice_: int) -> int:
    """The lowest id of a slice, whatever its epoch."""
    return slice_ << _SLICE_SHIFT


def last_of(slice_: int) -> int:
    return first_of(slice_ + 1) - 1


def spread(token: str, count: int) -> list[int]:
    """Numbers without an order, from a token that nobody was given before: as many as are wanted, of 32 bits each."""
    numbers: list[int] = []
    round_ = 0
    while len(numbers) < count:
        digest = blake2b(token.encode(), salt=round_.to_bytes(16)).digest()
        numbers += [int.from_bytes(digest[place : place + 4]) for place in range(0, len(digest), 4)]
        round_ += 1
    return numbers[:count]
