"""Intervals of a median without assumptions on how values are distributed, and of a mean by Student's t."""

import math
import statistics

CONFIDENCE = 0.95


def of_median(ordered):
    """The narrowest pair of order statistics, equally far from both ends, that holds the median in 95 % of all cases."""
    count = len(ordered)
    rank = 0
    while rank < (count - 1) // 2 and 2 * sum(math.comb(count, k) for k in range(rank + 2)) / 2**count <= 0.05:
        rank += 1
    return ordered[rank], ordered[count - 1 - rank]


def of_mean(values):
    """The mean and half the width of its 95 % interval; infinite for fewer than two values."""
    if len(values) < 2:
        return (values[0] if values else math.nan), math.inf
    error = statistics.stdev(values) / math.sqrt(len(values))
    return statistics.fmean(values), student(len(values) - 1) * error


def student(freedom):
    """The 97.5 % point of Student's distribution: where the integral of its density reaches 0.475, by bisection."""
    constant = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)

    def density(x):
        return constant * (1 + x * x / freedom) ** (-(freedom + 1) / 2)

    def area(end, steps=2_000):
        # Simpson's rule from 0.
        width = end / steps
        inner = sum((4 if k % 2 else 2) * density(k * width) for k in range(1, steps))
        return (density(0) + inner + density(end)) * width / 3

    low, high = 1.9, 13.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if area(middle) < CONFIDENCE / 2 else (low, middle)
    return low
