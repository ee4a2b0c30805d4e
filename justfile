# Short names for what is typed often. `just --list` shows them; none does more than its line says.

# see it work
demo:
    cargo run --release -- demo

# everything that must hold
test:
    scripts/test

# formatting, lints, unit tests
quick:
    scripts/test --quick

# one crate: its lints and its tests
crate name:
    cargo clippy -p plimsoll-{{name}} --all-targets -- -D warnings
    cargo test -p plimsoll-{{name}}

# real traces through nginx, against the mock's log
acceptance *args:
    cargo build --release
    scripts/acceptance {{args}}

# fuzz targets, each for some seconds
fuzz seconds="60" *targets:
    scripts/fuzz {{seconds}} {{targets}}

# refresh the stored files that tests compare with; read the difference afterwards
bless:
    UPDATE_EXPECT=1 cargo test --workspace --all-features
    git diff --stat

# real gateways in front of one mock provider, compared
gateways *args:
    cargo build --profile dist --features full
    target/dist/plimsoll suite gateways examples/gateways/gateways.yaml {{args}}
