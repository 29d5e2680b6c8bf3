//! The facts: the group, the launch template, and every instance of the pool.

use std::collections::BTreeMap;

use capasg_api::capi::{MachineDeletion, NodeReport};
use capasg_cloud::{
    CloudError, Group, HealthStatus, Instance, InstanceFacts, InstanceState, LaunchTemplateVersion,
    LifecycleHook, LifecycleState, NoticeKind, RefreshesView, TerminationCause,
};
use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::machine_pool::model::known::Known;
use crate::machine_pool::model::launch_record::LaunchRecord;

/// The facts.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which holds or does not")]
pub struct Observed {
    /// The group.
    pub group: GroupView,
    /// The launch template.
    pub template: Known<ObservedTemplate>,
    /// Whether it was read for this decision alone.
    pub template_was_read: bool,
    /// The account of the credentials; `None` while it was not read.
    pub account: Option<String>,
    /// Our lifecycle hook in AWS.
    pub hook: Known<LifecycleHook>,
    /// How long it counts as known; `None` if it is not known.
    pub hook_known_for: Option<TimeDelta>,
    /// The group's instance refreshes as last read; `None` while they were not.
    pub refreshes: Option<RefreshesView>,
    /// Whether they were read for this decision alone. The request may have waited for the rate limit, so that their age
    /// does not show it.
    pub refreshes_were_read: bool,
    /// Every instance that the group, an ASGMachine or a Machine names, by instance ID.
    pub instances: BTreeMap<String, PoolInstance>,
    /// Whether Machines and ASGMachines were listed live after the MachinePool was read.
    pub live_machines: bool,
    /// Whether the group was read for this decision alone, or a poll within the last second shows all our writes.
    pub fresh_group: bool,
    /// Whether the group was read for this decision alone.
    pub group_was_read: bool,
    /// Whether our hook was read for this decision.
    pub fresh_hook: bool,
    /// Machines of the pool whose ASGMachine does not exist.
    pub unmatched_machines: Vec<MachineRef>,
}

/// The group as last observed.
#[derive(Debug, Clone)]
pub enum GroupView {
    /// It was not read yet.
    Unknown,
    /// It does not exist.
    Absent {
        /// When the read started.
        as_of: DateTime<Utc>,
        /// Whether the read started after the answer to our last write.
        settled: bool,
    },
    /// It exists.
    Present {
        /// The group.
        group: std::sync::Arc<Group>,
        /// When the read started.
        as_of: DateTime<Utc>,
        /// Whether the read started after the answer to our last write.
        settled: bool,
    },
}

/// A launch template.
#[derive(Debug, Clone)]
pub struct ObservedTemplate {
    /// `LaunchTemplateId`.
    pub id: String,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// The default version, which AWS does not delete.
    pub default_version: i64,
    /// Versions by number.
    pub versions: BTreeMap<i64, LaunchTemplateVersion>,
    /// Whether these are all versions; else the latest is among them, and others may be missing.
    pub has_all_versions: bool,
    /// When the read began: versions that another actor created later may be missing.
    pub as_of: DateTime<Utc>,
}

/// EC2 describes every instance that was launched at least this long ago.
const KNOWN_TO_EC2_AFTER: TimeDelta = TimeDelta::minutes(5);

/// An instance of a pool, joined from what the group, EC2, ASGMachines and Machines show.
#[derive(Debug, Clone, Default)]
pub struct PoolInstance {
    /// The instance as the group lists it.
    pub listed: Option<Instance>,
    /// The instance as EC2 describes it; `None` while it was not read.
    pub ec2: Option<Ec2Answer>,
    /// Its ASGMachine.
    pub asg_machine: Option<AsgMachineRef>,
    /// Its Machine.
    pub machine: Option<MachineRef>,
    /// When its Machine was created, while core has not reconciled the Machine: `machine` is empty.
    pub unreconciled_since: Option<DateTime<Utc>>,
    /// The AWS event about it that counts.
    pub notice: Option<NoticeKind>,
    /// Whether the status of its ASGMachine reports that event, so that a new leader knows it as well.
    pub notice_is_reported: bool,
    /// Whether an AWS event about it counts only if EC2 describes it as a Spot instance, which was not read yet.
    pub notice_is_unverified: bool,
}

/// The answer of `DescribeInstances` about an instance.
#[derive(Debug, Clone)]
pub struct Ec2Answer {
    /// The description; `None` if EC2 does not know the ID.
    pub facts: Option<InstanceFacts>,
    /// When the read started.
    pub as_of: DateTime<Utc>,
}

/// The fields of an ASGMachine that decisions depend on.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which holds or does not")]
pub struct AsgMachineRef {
    /// The ID of its instance.
    pub instance_id: String,
    /// Object name.
    pub name: String,
    /// Object UID.
    pub uid: String,
    /// `aws:///<zone>/<id>`.
    pub provider_id: String,
    /// When its deletion began: its Machine is drained, or a user deleted it directly.
    pub deleting_since: Option<DateTime<Utc>>,
    /// Whether it has our finalizer.
    pub has_finalizer: bool,
    /// Whether it references a pool as its owner.
    pub has_owner: bool,
    /// The label `cluster.x-k8s.io/pool-name`, by which core creates its Machine.
    pub pool_name: Option<String>,
    /// Whether its own annotation pauses it: then nothing is done about its instance (F4).
    pub paused: bool,
    /// Whether the annotation `replace` requests the replacement of the instance.
    pub replace_requested: bool,
    /// Whether the annotation `do-not-disrupt` requests that the instance is disrupted last.
    pub do_not_disrupt: bool,
    /// The annotation `end-requested-at`: when the termination of the instance was requested.
    pub termination_requested_at: Option<DateTime<Utc>>,
    /// Whether its status reports that an instance refresh terminates the instance.
    pub terminated_by_refresh: bool,
    /// The annotation `desired-state`.
    pub launch_record: Option<LaunchRecord>,
    /// When it was created, shortly after the group first listed its instance.
    pub created_at: Option<DateTime<Utc>>,
    /// When its instance was launched, as its status reports.
    pub launched_at: Option<DateTime<Utc>>,
}

/// The fields of a Machine that decisions depend on.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which holds or does not")]
pub struct MachineRef {
    /// Object name.
    pub name: String,
    /// Object UID.
    pub uid: String,
    /// The resourceVersion that was read.
    pub resource_version: String,
    /// Its owner references.
    pub owners: Vec<OwnerReference>,
    /// When its deletion (the drain) began.
    pub deleting_since: Option<DateTime<Utc>>,
    /// What core reports about its deletion. Only report uses it.
    pub deletion_progress: Option<String>,
    /// Whether a Node joined.
    pub has_node: bool,
    /// Condition Ready.
    pub ready: bool,
    /// Since when condition Ready has its status.
    pub ready_since: Option<DateTime<Utc>>,
    /// What core reports about its Node.
    pub node: NodeReport,
    /// Whether an annotation pauses it, so that core does not reconcile it.
    pub paused: bool,
    /// Whether a `MachineHealthCheck` requests its replacement (D15).
    pub needs_remediation: bool,
    /// The timeouts for its deletion (D14).
    pub timeouts: MachineDeletion,
    /// Value of `cluster.x-k8s.io/delete-machine`.
    pub delete_annotation: Option<String>,
    /// Whether an annotation excludes it from draining.
    pub drain_excluded: bool,
    /// When it was created.
    pub created_at: Option<DateTime<Utc>>,
}

impl Observed {
    /// The reads that failed, so that a fact is unknown.
    pub fn failed_reads(&self) -> impl Iterator<Item = &CloudError> {
        [self.template.error(), self.hook.error()].into_iter().flatten()
    }

    /// The Machine of an instance whose ASGMachine is not observed. Both objects have the same name.
    #[must_use]
    pub fn unmatched_machine(&self, instance: &str) -> Option<&MachineRef> {
        let of_instance = |name: &str| name.strip_suffix(instance).is_some_and(|pool| pool.ends_with('-'));
        self.unmatched_machines.iter().find(|machine| of_instance(&machine.name))
    }

    /// Whether an instance refresh terminates instances, whichever actor requested it.
    #[must_use]
    pub fn has_terminations_by_refresh(&self) -> bool {
        let is_terminated = |one: &PoolInstance| {
            one.lifecycle().is_some_and(LifecycleState::is_terminating)
                && one.asg_machine.as_ref().is_some_and(|machine| machine.terminated_by_refresh)
        };
        self.instances.values().any(is_terminated)
    }
}

impl PoolInstance {
    /// The group's lifecycle state.
    #[must_use]
    pub fn lifecycle(&self) -> Option<&LifecycleState> {
        self.listed.as_ref().map(|i| &i.lifecycle)
    }

    /// Why AWS terminates it, as far as the group shows it.
    #[must_use]
    pub fn shown_cause(&self) -> Option<TerminationCause> {
        let listed = self.listed.as_ref()?;
        (listed.health == HealthStatus::Unhealthy).then_some(TerminationCause::Unhealthy)
    }

    /// Whether it counts towards desired capacity.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.lifecycle().is_some_and(LifecycleState::is_live)
    }

    /// Whether its ASGMachine or its Machine is paused. Core does not reconcile a paused Machine, so that its deletion
    /// would not complete (F4).
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.asg_machine.as_ref().is_some_and(|m| m.paused) || self.machine.as_ref().is_some_and(|m| m.paused)
    }

    /// Whether its Machine or its ASGMachine is being deleted, or it is terminated, or EC2 reclaims it, so that the same
    /// decision deletes its Machine, or one a moment later, unless that is paused.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        let deleted = self.machine.as_ref().is_some_and(|m| m.deleting_since.is_some());
        deleted || self.is_drained() || self.is_terminated() || self.is_interrupted()
    }

    /// Whether its ASGMachine is being deleted: core drained its Node, or a user deleted the ASGMachine directly (D12).
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.asg_machine.as_ref().is_some_and(|m| m.deleting_since.is_some())
    }

    /// When it was launched: as EC2 describes it or did before, else when its ASGMachine was created, which may be later.
    #[must_use]
    pub fn launched_at(&self) -> Option<DateTime<Utc>> {
        let described = self.ec2.as_ref().and_then(|facts| facts.facts.as_ref()?.launched_at);
        let own = self.asg_machine.as_ref();
        described.or_else(|| own?.launched_at).or_else(|| own?.created_at)
    }

    /// Since when its Node may join: its launch, or the creation of its Machine, without which core does not look for the
    /// Node. An instance is older than its Machine after an adoption or a move.
    #[must_use]
    pub fn awaits_node_since(&self) -> Option<DateTime<Utc>> {
        let created =
            self.machine.as_ref().and_then(|machine| machine.created_at).or(self.unreconciled_since);
        self.launched_at().into_iter().chain(created).max()
    }

    /// Whether the annotation `do-not-disrupt` requests that it is disrupted last. `delete-machine` on its Machine
    /// overrides it: that instance is chosen first.
    #[must_use]
    pub fn has_do_not_disrupt(&self) -> bool {
        let has_delete_machine = self.machine.as_ref().is_some_and(|m| m.delete_annotation.is_some());
        self.asg_machine.as_ref().is_some_and(|m| m.do_not_disrupt) && !has_delete_machine
    }

    /// Whether EC2 describes it as terminated, which is final, so that the age of the answer does not matter.
    #[must_use]
    pub fn is_terminated(&self) -> bool {
        let facts = self.ec2.as_ref().and_then(|answer| answer.facts.as_ref());
        facts.is_some_and(|facts| facts.state == InstanceState::Terminated)
    }

    /// Whether EC2 reclaims the Spot instance within two minutes.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.notice == Some(NoticeKind::SpotInterruption)
    }

    /// Whether it is terminated by an answer of EC2 that is not older than `since`; `None` if there is no such answer.
    /// EC2 describes terminated instances for about an hour, and may not know an instance yet that was just launched.
    #[must_use]
    pub fn is_terminated_since(&self, since: DateTime<Utc>) -> Option<bool> {
        let answer = self.ec2.as_ref().filter(|f| f.as_of >= since)?;
        if let Some(facts) = &answer.facts {
            return Some(facts.state == InstanceState::Terminated);
        }
        let created = self.asg_machine.as_ref().and_then(|m| m.created_at);
        created.is_none_or(|created| answer.as_of - created >= KNOWN_TO_EC2_AFTER).then_some(true)
    }
}

impl GroupView {
    /// The group, if it exists.
    #[must_use]
    pub fn present(&self) -> Option<&Group> {
        match self {
            Self::Present { group, .. } => Some(group),
            _ => None,
        }
    }

    /// When the read that this view is from started.
    #[must_use]
    pub fn as_of(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Unknown => None,
            Self::Absent { as_of, .. } | Self::Present { as_of, .. } => Some(*as_of),
        }
    }

    /// Whether the view is newer than all our writes.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        matches!(self, Self::Absent { settled: true, .. } | Self::Present { settled: true, .. })
    }
}
