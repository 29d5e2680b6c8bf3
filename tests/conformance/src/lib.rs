//! The rules of the contract: where each is kept in the code, which tests show it, and whether they pass.
//!
//! `rules.yaml` holds the rules. Code is found by the IDs in its comments, `(B6)`; tests by the IDs in the line above
//! them, `// Rules: B6`, or by those that lead their names, `b6_...`. Nothing else links them, so that nothing else can go stale.

pub mod binaries;
pub mod book;
pub mod citations;
pub mod code;
pub mod document;
pub mod ids;
pub mod modules;
pub mod pains;
pub mod phrases;
pub mod reasons;
pub mod results;
pub mod rules;
pub mod run;
pub mod shown;
mod tree;

pub use tree::root;
