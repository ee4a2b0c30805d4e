"""Percentiles from the histograms of `summary.json`: HdrHistogram, V2 encoding, deflated, base64."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterator

# Four bits of the cookie are the encoding of the counts; V2 has only one.
_COOKIE = 0x1C849303
_COOKIE_DEFLATED = 0x1C849304
_WORD_SIZE = 0xF0


def percentile_ms(encoded: str, percent: float) -> float | None:
    """The percentile in milliseconds; `None` if fewer than 10 values lie beyond it, or none below.

    The value is the upper end of its bucket, as HdrHistogram's own tools give it.
    """
    counts, digits, lowest = _decode(encoded)
    total = sum(count for _, count in counts)
    if total == 0 or min(percent, 100 - percent) * total / 100 < 10:
        return None
    rank = max(1, math.ceil(percent / 100 * total))
    seen = 0
    for index, count in counts:
        seen += count
        if seen >= rank:
            return _highest_equivalent_ns(index, digits, lowest) / 1e6
    return None


def _decode(encoded: str) -> tuple[list[tuple[int, int]], int, int]:
    outer = base64.b64decode(encoded)
    cookie, length = struct.unpack_from(">ii", outer)
    if cookie & ~_WORD_SIZE != _COOKIE_DEFLATED:
        raise ValueError(f"not a deflated V2 histogram: cookie {cookie:#x}")
    inner = zlib.decompress(outer[8 : 8 + length])
    cookie, length, _offset, digits, lowest, _highest, _ratio = struct.unpack_from(">iiiiqqd", inner)
    if cookie & ~_WORD_SIZE != _COOKIE:
        raise ValueError(f"not a V2 histogram: cookie {cookie:#x}")
    return list(_counts(inner[40 : 40 + length])), digits, lowest


def _counts(payload: bytes) -> Iterator[tuple[int, int]]:
    """Index and count of the buckets in use: ZigZag LEB128, where a negative number skips empty buckets."""
    index, position = 0, 0
    while position < len(payload):
        value, shift = 0, 0
        while True:
            byte = payload[position]
            position += 1
            # The ninth byte has eight bits of the value.
            value |= (byte if shift == 56 else byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 or shift == 63:
                break
        count = (value >> 1) ^ -(value & 1)
        if count < 0:
            index -= count
        else:
            if count:
                yield index, count
            index += 1


def _highest_equivalent_ns(index: int, digits: int, lowest: int) -> int:
    magnitude = int(math.log2(lowest))
    half = math.ceil(math.log2(2 * 10**digits)) - 1
    bucket = (index >> half) - 1
    sub = (index & ((1 << half) - 1)) + (1 << half)
    if bucket < 0:
        bucket, sub = 0, sub - (1 << half)
    shift = bucket + magnitude
    return ((sub + 1) << shift) - 1
