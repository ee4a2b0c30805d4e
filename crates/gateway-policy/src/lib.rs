//! Decides what a text may do: rules, validators, verdicts, redaction.
