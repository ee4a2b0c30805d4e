//! Tests of the bottleneck.

mod joined;
mod load;
mod own_word;
mod rules;
mod shown;
mod support;
