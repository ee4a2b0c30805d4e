//! Published tables: contradictions are found, and nothing that is true is accused.

#![cfg(test)]

mod clean;
mod planted;
mod robust;
mod seeds;
mod shown;
mod sources;
mod support;
mod vocabulary;
