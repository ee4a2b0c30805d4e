use plimsoll_gateway_policy::*;
#[test] fn builtin() { if let Err(e) = Policy::builtin() { panic!("{e}"); } }
