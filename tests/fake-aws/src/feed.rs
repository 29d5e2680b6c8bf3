//! What happens in a scope, told one by one for those who watch a simulation; kept only if asked for.

use chrono::{DateTime, Utc};

use crate::{Scope, Simulator, autoscaling::Lifecycle, region::Region};

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

impl Region {
    /// Takes note of something, if anybody watches.
    pub(crate) fn tell(&mut self, what: impl FnOnce(&Self) -> Option<What>) {
        if self.settings.keep_feed
            && let Some(what) = what(self)
        {
            self.feed.push(Happening { at: self.now, what });
        }
    }

    /// A machine begins to shut down.
    pub(crate) fn tell_shut_down(&mut self, id: &str) {
        self.tell(|region| {
            let own = region.state.instances.get(id)?.group.as_ref();
            let group = own.map(|own| own.group.clone());
            let own = own.filter(|own| own.lifecycle == Lifecycle::TerminatingProceed);
            Some(What::ShutDown(End {
                id: id.to_owned(),
                group,
                cause: own.map(|own| own.cause.clone().unwrap_or_default()),
                held: own.and_then(|own| own.held.clone()),
                timed_out: own.is_some_and(|own| own.timed_out),
            }))
        });
    }
}

impl Simulator {
    /// What happened in a scope since this was last asked ([`crate::Settings::keep_feed`]).
    #[must_use]
    pub fn take_feed(&self, scope: &Scope) -> Vec<Happening> {
        self.world().regions.get_mut(scope).map(|region| std::mem::take(&mut region.feed)).unwrap_or_default()
    }
}
