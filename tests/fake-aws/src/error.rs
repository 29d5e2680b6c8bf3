//! The error that a call ends with, in the terms of the AWS APIs.

use std::fmt;

/// The code of [`ApiError`]s that stand for a reply that never arrived.
pub const CONNECTION_LOST: &str = "ConnectionLost";

/// An error reply, or (see [`ApiError::is_lost`]) the absence of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// HTTP status; 0 if no reply arrived.
    pub status: u16,
    /// AWS's error code, for example `ValidationError`.
    pub code: String,
    /// AWS's words.
    pub message: String,
}

impl ApiError {
    /// An error with its HTTP status.
    pub fn new(status: u16, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status, code: code.into(), message: message.into() }
    }

    /// A client error: HTTP 400, as both APIs answer for nearly everything.
    pub fn refused(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(400, code, message)
    }

    /// Auto Scaling's `ValidationError`.
    pub fn validation(message: impl Into<String>) -> Self {
        Self::refused("ValidationError", message)
    }

    /// The reply was lost on the way; the call may or may not have had its effect.
    #[must_use]
    pub fn lost() -> Self {
        Self::new(0, CONNECTION_LOST, "The connection was closed before a reply arrived.")
    }

    /// Whether no reply arrived at all (a closed connection over HTTP).
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.status == 0
    }

    /// A part of AWS that the simulator does not have; never an AWS reply.
    pub(crate) fn unsupported(what: &str) -> Self {
        Self::refused("SimulatorUnsupported", format!("The simulator does not know {what}."))
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({}): {}", self.code, self.status, self.message)
    }
}

impl std::error::Error for ApiError {}
