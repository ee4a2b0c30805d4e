"""Recomputes goodput, tokens/s per user and lengths from a run's rows, and compares them with its summary."""

import json
import math
import sys
from pathlib import Path

summary = json.loads((Path(sys.argv[1]) / "summary.json").read_text())
lines = (Path(sys.argv[1]) / "results.jsonl").read_text().splitlines()
rows = [json.loads(line) for line in lines]
stages = [stage for stage in summary["stages"] if not stage["warmup"]]
begun = summary["run"]["started_unix_ns"]


def is_good(row):
    return row["outcome"] == "completed" and row["ttft_ms"] < 60 and row.get("tpot_ms", 0) < 9


def share_within(row):
    """The share of the answer's time that lies in measured stages."""
    whole = row["response_time_ms"] / 1e3
    begin = (row["intended_unix_ns"] - begun) / 1e9
    spans = [(stage["start_s"], stage["start_s"] + stage["duration_s"]) for stage in stages]
    return sum(max(0, min(begin + whole, end) - max(begin, start)) for start, end in spans) / whole


def expect(found, value, tolerance=1e-9):
    assert math.isclose(found, value, rel_tol=tolerance), (found, value)


def compare(group, all_rows):
    rows = [row for row in all_rows if not row["warmup"]]
    done = [row for row in rows if row["outcome"] == "completed"]
    values = {
        "input_tokens": [row["prompt_tokens"] for row in done],
        "output_tokens": [row["completion_tokens"] for row in done],
        "reasoning_tokens": [row.get("reasoning_tokens", 0) for row in done],
        "answer_tokens": [row["completion_tokens"] - row.get("reasoning_tokens", 0) for row in done],
        "tokens_per_s_per_user": [1000 / row["tpot_ms"] for row in done if "tpot_ms" in row],
    }
    for name, own in values.items():
        found, own = group["tokens"][name], sorted(own)
        # Lengths are exact, speeds have the 0.1 % of a histogram.
        for figure, value in {"count": len(own), "mean": sum(own) / len(own), "min": own[0], "max": own[-1]}.items():
            expect(found[figure], value, 1e-9 if "per_s" not in name else 1e-6)
        for percent in (50, 90, 95, 99):
            value = own[math.ceil(percent * len(own) / 100) - 1]
            expect(found[f"p{percent}"], value, 1e-9 if "per_s" not in name else 2e-3)
    good = sum(map(is_good, rows))
    expect(group["counters"]["good"], good)
    # Users never wait between two requests here, so an answer's cycle is its response time.
    answered = sum(share_within(row) for row in all_rows if is_good(row))
    expect(group["rates"]["goodput_per_s"], answered / sum(stage["duration_s"] for stage in stages), 1e-4)
    return len(rows), good


for group in summary["by_scenario"]:
    compare(group, [row for row in rows if row["scenario"] == group["scenario"]])
print(*compare(summary["total"], rows))
