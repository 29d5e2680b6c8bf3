//! The HTTP front, byte for byte, and the program; the official SDK talks to it in the adapter's own tests.

mod aws;
mod client;
mod control;
mod identities;
mod program;
