//! What can happen in a scope.

use chrono::{DateTime, Utc};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happening {
    /// When.
    pub at: DateTime<Utc>,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A call had its effect, at once or late.
    Changed(Change),
    /// A group launched an instance.
    Launched {
        /// The instance.
        id: String,
    },
    /// An instance entered service.
    InService {
        /// The instance.
        id: String,
    },
    /// A group began to end a member.
    Ending {
        /// The instance.
        id: String,
        /// Its group.
        group: String,
        /// Why, in AWS's words.
        cause: String,
    },
    /// Lifecycle hooks hold the end of an instance.
    Held {
        /// The instance.
        id: String,
        /// The hooks.
        hooks: Vec<String>,
    },
    /// A machine is no more: it shuts down.
    ShutDown(End),
    /// An ended instance left its group.
    Left {
        /// The instance.
        id: String,
    },
}

/// A call that changed something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The operation.
    pub action: String,
    /// The access key of the caller.
    pub by: Option<String>,
    /// The group that it names.
    pub group: Option<String>,
    /// The instances that it names.
    pub instances: Vec<String>,
    /// Desired capacity of the group before and after, where it is there.
    pub desired: (Option<i64>, Option<i64>),
}

/// How a machine came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The instance.
    pub id: String,
    /// Its group.
    pub group: Option<String>,
    /// Why its group ended it, in AWS's words; `None` if its group had no part in it (yet).
    pub cause: Option<String>,
    /// Since when hooks held it, and which.
    pub held: Option<(DateTime<Utc>, Vec<String>)>,
    /// Whether a hook let it go because its time had passed.
    pub timed_out: bool,
}
