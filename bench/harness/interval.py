"""Intervals of a median without assumptions on how values are distributed."""

import math


def of_median(ordered):
    """The narrowest pair of order statistics, equally far from both ends, that holds the median in 95 % of all cases."""
    count = len(ordered)
    rank = 0
    while rank < (count - 1) // 2 and 2 * sum(math.comb(count, k) for k in range(rank + 2)) / 2**count <= 0.05:
        rank += 1
    return ordered[rank], ordered[count - 1 - rank]
