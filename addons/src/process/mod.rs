//! Child processes that end with the manager.
//!
//! The kernel sends a parent-death signal to a process that requested one. Only the child itself can request it, between
//! `fork` and `exec`, where safe Rust runs no code. So the manager starts its own program in the role `exec-child`
//! ([`parent_death`]), which requests the signal and replaces itself by the program. No process remains in between, and a
//! manager that is killed with SIGKILL leaves no Helm behind. The kernel sends the signal when the *thread* ends that started
//! the child, so that one thread starts all children and lives as long as the [`Launcher`].
//!
//! In the same role, the process limits which files the program can use (`file_access`).

mod child;
mod command;
mod file_access;
mod launcher;
mod parent_death;

pub use child::{EXEC_FAILED, Output, RunError};
pub use command::Command;
pub use launcher::Launcher;
pub use parent_death::{ExecError, exec, exec_with_tools};
