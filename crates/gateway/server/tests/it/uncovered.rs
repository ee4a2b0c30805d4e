//! What the layers do not cover, as the tables of the guide say: each gap, to be seen. Whoever
//! closes one finds its test failing here, and takes the row out of the guide.

mod caller;
mod text;
