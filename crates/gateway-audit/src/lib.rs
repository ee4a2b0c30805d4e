//! Writes a row for every request, in batches, and counts what it could not write.
