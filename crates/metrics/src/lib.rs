//! Count and judge: recorders, snapshots, merge, summary, thresholds, verdicts, comparison.
