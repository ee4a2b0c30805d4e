//! Tests of the page: what it says, what it refuses, and how large it is.

mod pages;
