//! Tables with a planted contradiction, tables that are true, and files that are refused.

mod clean;
mod planted;
mod robust;
