//! A call as an edge receives it, and its answer.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{ApiError, Scope, Service, Tree};

/// A call as an edge received it.
#[derive(Debug, Clone)]
pub struct Call {
    /// Whose call it is.
    pub scope: Scope,
    /// The API.
    pub service: Service,
    /// The operation's name.
    pub action: String,
    /// Its parameters.
    pub params: Tree,
    /// The access key that it was signed with; without one a user of the scope's account calls.
    pub access_key: Option<String>,
    /// The session token, which belongs to temporary credentials.
    pub session_token: Option<String>,
    /// When it arrived by the wall clock, for the log and for tokens that others made; the core reads no clock itself.
    pub wall_time: Option<DateTime<Utc>>,
}

/// What a call ended with.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The reply or the error.
    pub result: Result<Tree, ApiError>,
    /// How long (wall clock) to hold the answer back.
    pub delay: Duration,
    /// The id of the request, also in the log.
    pub request_id: String,
}
