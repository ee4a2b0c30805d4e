//! Integration tests: every structure of the corpus, with a text that must be found and with one
//! that must not be touched.

mod answers;
mod forms;
mod hostile;
mod properties;
mod requests;
mod streams;
