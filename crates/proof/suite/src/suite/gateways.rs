//! Real gateways side by side.

mod fidelity;
mod running;
