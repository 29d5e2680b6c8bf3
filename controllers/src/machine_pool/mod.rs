//! The pool controller: observe, decide, act, report.

pub mod decide;
pub mod stamp;
pub mod state;
