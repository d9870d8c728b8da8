"""Blobs that lie one behind the other in one stretch of memory, as a columnar format has them.

To whoever asks they are a sequence of bytes. A store that can take them as they lie makes no object of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

LENGTH_BITS = 32
"""Of a piece that say how long it is; the bits above them say where it begins."""


class Packed(Sequence[bytes]):
    __slots__ = ("at_most", "data", "pieces")

    def __init__(self, data: memoryview, pieces: memoryview, at_most: int) -> None:
        """`pieces`: for each blob, in 64 bits, where it begins and how long it is. They follow each other in `data`.
        `at_most`: how long the longest is."""
        self.data = data
        self.pieces = pieces
        self.at_most = at_most

    def __len__(self) -> int:
        return len(self.pieces)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Packed: ...
    def __getitem__(self, index: int | slice) -> bytes | Packed:
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise ValueError("a part of packed blobs has all that lie between its ends")
            return Packed(self.data, self.pieces[index], self.at_most)
        begin, length = divmod(self.pieces[index], 1 << LENGTH_BITS)
        return bytes(self.data[begin : begin + length])

    def stretch(self) -> tuple[int, memoryview]:
        """Where the first blob begins, and what lies from there to the end of the last."""
        begin = self.pieces[0] >> LENGTH_BITS
        last, length = divmod(self.pieces[-1], 1 << LENGTH_BITS)
        return begin, self.data[begin : last + length]
