//! What decide works on: the wish (`Desired`), the facts (`Observed`) and the answer (`Plan`).

use std::collections::{BTreeMap, BTreeSet};

use capasg_cloud::{
    Group, GroupSettings, GroupTag, Instance, InstanceFacts, InstanceState, LaunchTemplateData,
    LaunchTemplateVersion, LifecycleHook, LifecycleState, MixedInstances, Write,
};
use chrono::{DateTime, TimeDelta, Utc};

use super::stamp::Stamp;
use crate::{ObjectKey, kubernetes::KubeWrite};

/// What the pool should be, with every default and reference resolved.
#[derive(Debug, Clone)]
pub struct Desired {
    /// Name of the Auto Scaling group.
    pub group: String,
    /// Name of the launch template.
    pub template: String,
    /// The random id that says which object owns group and template.
    pub owner_id: String,
    /// The wished number of instances, within the limits of the spec.
    pub replicas: i32,
    /// Settings of the group; the pinned template version is filled in by decide.
    pub settings: WantedSettings,
    /// The instance types allowed; an instance of another type is outdated.
    pub instance_types: Vec<String>,
    /// Tags of the group by key.
    pub tags: BTreeMap<String, GroupTag>,
    /// Processes that stay suspended.
    pub suspended_processes: BTreeSet<String>,
    /// The terminate hook; `None` removes ours.
    pub hook: Option<LifecycleHook>,
    /// The launch template's content, or why it cannot be told yet.
    pub launch: LaunchWish,
    /// How long a drain may take.
    pub drain_limit: TimeDelta,
    /// Which instances end first among equals.
    pub scale_in_order: ScaleInOrder,
    /// What happens to the cloud side when the pool is deleted.
    pub orphan_on_deletion: bool,
    /// Whether Machines are drained when the pool is deleted.
    pub drain_on_deletion: bool,
    /// `spec.providerID`: the ARN of the group once it was created.
    pub provider_id: Option<String>,
}

/// Settings of the group without the template version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedSettings {
    /// `MixedInstancesPolicy` without its template.
    pub mixed: Option<MixedInstances>,
    /// `VPCZoneIdentifier`.
    pub subnets: BTreeSet<String>,
    /// `HealthCheckType`.
    pub health_check_types: BTreeSet<String>,
    /// `HealthCheckGracePeriod`, in seconds.
    pub health_check_grace_period: i32,
    /// `DefaultCooldown`, in seconds.
    pub default_cooldown: i32,
    /// `DefaultInstanceWarmup`, in seconds.
    pub default_instance_warmup: Option<i32>,
}

/// The launch template's content.
#[derive(Debug, Clone)]
pub enum LaunchWish {
    /// Everything is known; without the user data if only its digest was needed so far.
    Known {
        /// The content; the user data is empty unless `has_user_data`.
        data: Box<LaunchTemplateData>,
        /// The hashes of the content.
        stamp: Stamp,
        /// Whether `data` holds the user data, so that it can be sent.
        has_user_data: bool,
    },
    /// Something is missing (bootstrap data, image, a reference): what exists is kept running.
    Unknown,
}

/// Which instance ends first among equals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScaleInOrder {
    /// The oldest first.
    #[default]
    Oldest,
    /// The newest first.
    Newest,
}

/// The facts.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The group.
    pub group: GroupView,
    /// The launch template; `None` while it was not read.
    pub template: TemplateView,
    /// The account of the credentials, once asked for.
    pub account: Option<String>,
    /// Our hook as the cloud has it, once asked for.
    pub hook: Option<Option<LifecycleHook>>,
    /// Every instance that the group, an ASGMachine or a Machine names, by instance id.
    pub members: BTreeMap<String, Member>,
    /// Whether Machines and ASGMachines were listed live after the MachinePool was read.
    pub live_machines: bool,
    /// Whether the group was read on its own for this very decision.
    pub fresh_group: bool,
    /// Machines of the pool whose ASGMachine is gone.
    pub stray_machines: Vec<MachineRef>,
}

/// The group as last seen.
#[derive(Debug, Clone)]
pub enum GroupView {
    /// No answer yet.
    Unknown,
    /// Not there.
    Absent {
        /// When the request that said so started.
        as_of: DateTime<Utc>,
        /// Whether it started after our last write was answered.
        settled: bool,
    },
    /// There.
    Present {
        /// The group.
        group: std::sync::Arc<Group>,
        /// When the request that said so started.
        as_of: DateTime<Utc>,
        /// Whether it started after our last write was answered.
        settled: bool,
    },
}

/// The launch template as last seen.
#[derive(Debug, Clone)]
pub enum TemplateView {
    /// Not read.
    Unknown,
    /// Not there.
    Absent,
    /// There.
    Present {
        /// `LaunchTemplateId`.
        id: String,
        /// The owner id in its tags.
        owner_id: Option<String>,
        /// The default version, which AWS does not delete.
        default_version: i64,
        /// Versions by number.
        versions: BTreeMap<i64, LaunchTemplateVersion>,
    },
}

/// One instance with everything that is known of it.
#[derive(Debug, Clone, Default)]
pub struct Member {
    /// As the group lists it.
    pub instance: Option<Instance>,
    /// As a machine.
    pub facts: Option<MemberFacts>,
    /// Its ASGMachine.
    pub asg_machine: Option<AsgMachineRef>,
    /// Its Machine.
    pub machine: Option<MachineRef>,
}

/// The machine behind an instance.
#[derive(Debug, Clone)]
pub struct MemberFacts {
    /// What `DescribeInstances` said; `None` if it does not know the id (any more).
    pub facts: Option<InstanceFacts>,
    /// When the request that said so started.
    pub as_of: DateTime<Utc>,
}

/// An ASGMachine, as far as decisions need it.
#[derive(Debug, Clone)]
pub struct AsgMachineRef {
    /// The instance that it stands for.
    pub instance: String,
    /// Object name.
    pub name: String,
    /// Object uid.
    pub uid: String,
    /// `aws:///<zone>/<id>`.
    pub provider_id: String,
    /// When its deletion began: its Machine is drained, or a person deleted it directly.
    pub deleting_since: Option<DateTime<Utc>>,
    /// Whether our finalizer holds it.
    pub held: bool,
    /// The durable mark of an end that was asked for.
    pub end_requested_at: Option<DateTime<Utc>>,
}

/// A Machine, as far as decisions need it.
#[derive(Debug, Clone)]
pub struct MachineRef {
    /// Object name.
    pub name: String,
    /// Object uid.
    pub uid: String,
    /// When its deletion (the drain) began.
    pub deleting_since: Option<DateTime<Utc>>,
    /// Whether a Node joined.
    pub has_node: bool,
    /// Condition Ready.
    pub ready: bool,
    /// Value of `cluster.x-k8s.io/delete-machine`.
    pub delete_mark: Option<String>,
    /// Whether the drain is skipped by annotation.
    pub drain_excluded: bool,
    /// When it was created.
    pub created_at: Option<DateTime<Utc>>,
}

impl Member {
    /// The group's lifecycle state.
    #[must_use]
    pub fn lifecycle(&self) -> Option<&LifecycleState> {
        self.instance.as_ref().map(|i| &i.lifecycle)
    }

    /// Counted in desired capacity.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.lifecycle().is_some_and(LifecycleState::is_live)
    }

    /// Its end has begun on our side: its Machine or its ASGMachine is being deleted.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.machine.as_ref().is_some_and(|m| m.deleting_since.is_some()) || self.is_drained()
    }

    /// Its ASGMachine is being deleted: core drained its Node, or a person wants no drain (D12).
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.asg_machine.as_ref().is_some_and(|m| m.deleting_since.is_some())
    }

    /// The machine is known to be gone, by an answer not older than `since`.
    #[must_use]
    pub fn is_gone_since(&self, since: DateTime<Utc>) -> Option<bool> {
        let facts = self.facts.as_ref().filter(|f| f.as_of >= since)?;
        Some(facts.facts.as_ref().is_none_or(|f| f.state == InstanceState::Gone))
    }
}

/// One case to decide: everything that decisions depend on.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The wish.
    pub desired: &'a Desired,
    /// The facts.
    pub observed: &'a Observed,
    /// What this process remembers.
    pub memory: &'a Memory,
    /// The namespace of the pool and of its Machines.
    pub namespace: &'a str,
    /// The time.
    pub now: DateTime<Utc>,
}

impl Case<'_> {
    /// When an instance was first seen ending or missing.
    #[must_use]
    pub fn first_seen(&self, id: &str) -> DateTime<Utc> {
        self.memory.first_seen.get(id).copied().unwrap_or(self.now)
    }

    /// The key of a Machine or ASGMachine of the pool.
    #[must_use]
    pub fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::new(self.namespace, name)
    }
}

/// What this process remembers of a pool between reconciles; losing it costs time, never correctness.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// Desired capacity that this process wrote last.
    pub desired_written: Option<i32>,
    /// When an instance was first seen ending or missing.
    pub first_seen: BTreeMap<String, DateTime<Utc>>,
    /// When the end of an instance was asked for.
    pub end_requested: BTreeMap<String, DateTime<Utc>>,
    /// When our finalizer was removed from an instance's ASGMachine.
    pub released: BTreeMap<String, DateTime<Utc>>,
    /// When an instance's lifecycle action was last completed.
    pub completed: BTreeMap<String, DateTime<Utc>>,
    /// When an instance's lifecycle action was last extended by a heartbeat.
    pub extended: BTreeMap<String, DateTime<Utc>>,
}

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
    /// The phase of a deletion.
    pub deletion: Option<DeletionPhase>,
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
        matches!(self, Self::ForeignGroup { .. } | Self::ForeignTemplate { .. } | Self::WrongAccount { .. })
    }
}

/// Where a deletion stands.
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

impl GroupView {
    /// The group, if it is there.
    #[must_use]
    pub fn present(&self) -> Option<&Group> {
        match self {
            Self::Present { group, .. } => Some(group),
            _ => None,
        }
    }

    /// When the request that gave this view started.
    #[must_use]
    pub fn as_of(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Unknown => None,
            Self::Absent { as_of, .. } | Self::Present { as_of, .. } => Some(*as_of),
        }
    }

    /// Whether the view is newer than everything that we wrote.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        matches!(self, Self::Absent { settled: true, .. } | Self::Present { settled: true, .. })
    }
}

impl WantedSettings {
    /// The settings with the template version filled in.
    #[must_use]
    pub fn with_template(&self, template: capasg_cloud::TemplateRef) -> GroupSettings {
        GroupSettings {
            launch: capasg_cloud::Launch { template, mixed: self.mixed.clone() },
            subnets: self.subnets.clone(),
            health_check_types: self.health_check_types.clone(),
            health_check_grace_period: self.health_check_grace_period,
            default_cooldown: self.default_cooldown,
            default_instance_warmup: self.default_instance_warmup,
            protect_new_instances: true,
        }
    }
}

impl Plan {
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
