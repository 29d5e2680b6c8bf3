//! Wiring of the one binary.
fn main() {}
