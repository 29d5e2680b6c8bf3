//! The rules of the contract: where each is kept in the code, which tests show it, and whether they pass.
//!
//! `rules.yaml` holds the rules. Code is found by the IDs in its comments, `(B6)`; tests by the IDs that lead their
//! names, `b6_...`. Nothing else links them, so that nothing else can go stale.

pub mod binaries;
pub mod code;
pub mod document;
pub mod ids;
pub mod pains;
pub mod results;
pub mod rules;
pub mod run;
pub mod shown;
mod tree;

pub use tree::root;
