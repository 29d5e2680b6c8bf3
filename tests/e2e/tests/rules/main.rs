//! The rules of the contract, shown on the real parts: one module a letter, one test a rule.
//!
//! All tests share one environment and run at the same time, each in a namespace and a region of its own.

mod a_definitions;
mod admission;
mod b_contract;
mod c_ownership;
mod whole;
