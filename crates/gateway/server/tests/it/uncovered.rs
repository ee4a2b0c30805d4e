//! Gaps of the layers, as listed in the tables of the guide. If a change closes one, its test fails
//! here: remove the row from the guide.

mod caller;
mod text;
