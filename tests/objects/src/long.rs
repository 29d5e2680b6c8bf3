//! How long tests take.

/// Whether tests take their long form, as those of `make test-all` and `make conformance` do: `CAPASG_CONFORMANCE` is set to 1.
#[must_use]
pub fn is_long() -> bool {
    std::env::var("CAPASG_CONFORMANCE").is_ok_and(|value| value == "1")
}
