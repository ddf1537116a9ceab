# Short names for what there is. `just` alone lists them.

_default:
    @just --list

# Everything that must hold on main
test:
    ./test

# Compile and lint
check:
    cargo clippy --workspace --all-targets --features posse-cli/failpoints -- -D warnings

# The tests of one crate
test-crate CRATE:
    cargo nextest run -p {{CRATE}}

# Kill the binary N times and check what is left
crash CYCLES="1000":
    cargo xtask crash --cycles {{CYCLES}}

# Measure the spine
bench:
    cargo xtask bench spine

# Watch a scripted agent work on this folder
demo:
    cargo run --quiet -p posse-cli -- demo

# The book, at book/index.html (needs mdbook)
book:
    mdbook build docs
