//! Tests of the rules of the contract on the real parts.
