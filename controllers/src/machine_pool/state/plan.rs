//! The answer: steps in order, what else must be known, and what stands in the way.

use std::collections::{BTreeMap, BTreeSet};

use capasg_api::pool::{PendingChange, RolloutStatus};
use capasg_cloud::{InstanceRefresh, RefreshStatus, Write};
use chrono::{DateTime, TimeDelta, Utc};

use crate::kubernetes::KubeWrite;

/// What to do now.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Steps in order.
    pub steps: Vec<Step>,
    /// Facts that decide asks for before it can go on.
    pub needs: Needs,
    /// When to look again although nothing wakes the pool.
    pub look_again: Option<TimeDelta>,
    /// Whether the group is changing, so that it joins the faster poll.
    pub in_transition: bool,
    /// What stands in the way, in words for a condition.
    pub obstacle: Option<Obstacle>,
    /// The number of instances to aim at, once there is a group of ours.
    pub target: Option<i32>,
    /// Where a rollout stands; `None` if there is nothing to replace.
    pub rollout: Option<RolloutPhase>,
    /// What `status.rollout` is to say.
    pub rollout_status: Option<RolloutStatus>,
    /// Whether the MachinePool sizes the group again: what the group has was read for this, and the MachinePool says it.
    pub handed_back: bool,
    /// Whether the rollout was looked at; else what was told of it stays.
    pub follows_rollout: bool,
    /// The phase of a deletion.
    pub deletion: Option<DeletionPhase>,
    /// What would change if it were not only shown; `None` while that is not known.
    pub pending: Option<Vec<PendingChange>>,
    /// What is not as wished.
    pub differences: Vec<Difference>,
    /// What is as wished: the value by path.
    pub agreed: BTreeMap<String, String>,
}

/// An attribute of the group that is not as wished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where it is wished, as a path of the spec where there is one.
    pub path: String,
    /// What AWS has.
    pub seen: String,
    /// What is wished.
    pub wanted: String,
    /// The kinds of call that put it right ([`crate::machine_pool::memory::kind`]).
    pub calls: BTreeSet<&'static str>,
    /// Whether somebody else changed it: it was as wished before.
    pub outside: bool,
}

/// One step of a plan; each is safe to repeat.
#[derive(Debug, Clone)]
pub enum Step {
    /// A change in the cloud.
    Cloud(Write),
    /// A change in Kubernetes.
    Kubernetes(KubeWrite),
}

/// Facts that are fetched only when a decision needs them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent questions, each asked or not")]
pub struct Needs {
    /// A live LIST of Machines and ASGMachines.
    pub live_machines: bool,
    /// A read of this group alone.
    pub fresh_group: bool,
    /// The machines behind these instances.
    pub facts: BTreeSet<String>,
    /// The bootstrap data itself.
    pub user_data: bool,
    /// The account of the credentials.
    pub account: bool,
    /// Our hook.
    pub hook: bool,
    /// Our hook, as it is now.
    pub fresh_hook: bool,
    /// The group's instance refreshes.
    pub refreshes: bool,
}

impl Needs {
    /// Whether decide had all it needs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Something that only a person or time can clear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// The group of our name belongs to somebody else.
    ForeignGroup {
        /// The owner id found, if any.
        found: Option<String>,
    },
    /// The group of our name is not ours, and cannot become ours as it is.
    NotAdoptable {
        /// Why, and what to do.
        why: String,
    },
    /// The group of our name is about to become ours.
    Adopting,
    /// The launch template of our name belongs to somebody else.
    ForeignTemplate {
        /// The owner id found, if any.
        found: Option<String>,
    },
    /// The credentials belong to another account than the group.
    WrongAccount {
        /// The account of the credentials.
        credentials: String,
        /// The account of the group.
        group: String,
    },
    /// The group is gone but its instances still run: nothing is re-created on such a view.
    GroupGoneInstancesRun {
        /// The instances that still run.
        instances: Vec<String>,
    },
    /// Instances run that left the group without ending.
    Detached {
        /// Their ids.
        instances: Vec<String>,
    },
}

impl Obstacle {
    /// Whether what stands under our name is not ours, so that nothing of it may be reported as ours.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        match self {
            Self::ForeignGroup { .. }
            | Self::NotAdoptable { .. }
            | Self::Adopting
            | Self::ForeignTemplate { .. }
            | Self::WrongAccount { .. } => true,
            Self::GroupGoneInstancesRun { .. } | Self::Detached { .. } => false,
        }
    }
}

/// Where a rollout stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutPhase {
    /// Outdated instances wait until somebody deletes their Machines.
    OnDelete,
    /// The wish is too young to be rolled out.
    Settling,
    /// What is to be launched is not known or not there yet.
    Held,
    /// AWS has no version of the wish: nothing can be rolled out.
    Refused,
    /// The spec pauses rollouts.
    Paused {
        /// Machines of outdated instances that are drained all the same.
        draining: Vec<String>,
    },
    /// No window is open.
    Closed {
        /// As above.
        draining: Vec<String>,
        /// When the next one opens, and the name of its time zone; `None` if none does.
        next: Option<(DateTime<Utc>, &'static str)>,
    },
    /// New instances did not become available in time, or an instance refresh did not succeed.
    Stopped {
        /// As above.
        draining: Vec<String>,
        /// How the refresh ended; `None` if it was not one, or is not known any more.
        refresh: Option<RefreshEnd>,
    },
    /// AWS replaces instances in an instance refresh.
    Refreshing {
        /// As AWS calls it.
        status: String,
        /// How far it is, in percent.
        percentage: Option<i32>,
        /// What AWS says of it.
        words: Option<String>,
        /// Machines of instances that are drained.
        draining: Vec<String>,
        /// Why it is cancelled, if it is.
        unwanted: Option<&'static str>,
        /// Whether the spec asks for a way back that there is not.
        one_way: bool,
    },
    /// Instances are being replaced.
    Rolling {
        /// Machines of outdated instances that are drained.
        draining: Vec<String>,
        /// New instances that do not work yet.
        starting: Vec<String>,
        /// Whether it waits for new instances, launched or not.
        awaits_new: bool,
        /// Whether as many instances are disrupted as the budget allows.
        out_of_budget: bool,
    },
}

/// How an instance refresh ended that did not make instances what is wished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefreshEnd {
    /// Whether AWS took back what it had replaced.
    pub rolled_back: bool,
    /// Its status and AWS's words, for people.
    pub words: String,
}

impl RefreshEnd {
    /// The end of a refresh that is over; `None` if it succeeded.
    #[must_use]
    pub fn of(refresh: &InstanceRefresh) -> Option<Self> {
        if refresh.status == RefreshStatus::Successful {
            return None;
        }
        let why = refresh.reason.as_deref().or(refresh.rollback_reason.as_deref());
        let status = refresh.status.as_str();
        let words = match why {
            Some(why) => format!("the instance refresh is {status}: {}", why.trim_end_matches('.')),
            None => format!("the instance refresh is {status}"),
        };
        Some(Self { rolled_back: refresh.status == RefreshStatus::RollbackSuccessful, words })
    }

    /// AWS lists it no more.
    #[must_use]
    pub fn unknown() -> Self {
        Self { rolled_back: false, words: "an earlier attempt did not succeed".to_owned() }
    }

    /// Refreshes succeed and replace nothing that is outdated.
    #[must_use]
    pub fn in_vain() -> Self {
        let words = "instance refreshes succeed and leave instances outdated".to_owned();
        Self { rolled_back: false, words }
    }
}

/// Where a deletion stands, and what it waits for (E5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeletionPhase {
    /// Machines are being drained; the names still there.
    DrainingMachines(Vec<String>),
    /// The group is being deleted.
    DeletingGroup,
    /// The launch template is being deleted.
    DeletingLaunchTemplate,
    /// Nothing is left: the finalizer may go.
    Done,
}

impl Plan {
    /// Whether one of the steps ends instances.
    #[must_use]
    pub fn ends_instances(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Cloud(Write::TerminateInstances { .. })))
    }

    /// Whether one of the steps changes the group's bounds.
    #[must_use]
    pub fn sets_bounds(&self) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Cloud(Write::UpdateGroup { change, .. }) => change.min.is_some() || change.max.is_some(),
            _ => false,
        })
    }

    /// What somebody else changed.
    pub fn drift(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|difference| difference.outside)
    }

    /// Adds a change in the cloud.
    pub fn cloud(&mut self, write: Write) {
        self.steps.push(Step::Cloud(write));
    }

    /// Adds a change in Kubernetes.
    pub fn kubernetes(&mut self, write: KubeWrite) {
        self.steps.push(Step::Kubernetes(write));
    }

    /// Looks again after `delay` at the latest.
    pub fn look_again_within(&mut self, delay: TimeDelta) {
        self.look_again = Some(self.look_again.map_or(delay, |d| d.min(delay)));
    }
}
