//! Tables with a planted contradiction, true tables, and rejected files.

mod clean;
mod planted;
mod robust;
