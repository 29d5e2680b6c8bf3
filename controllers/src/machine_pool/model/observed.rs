//! The facts: the group, the template and every instance with all that is known of it.

use std::collections::BTreeMap;

use capasg_api::capi::MachineDeletion;
use capasg_cloud::{
    Group, Instance, InstanceFacts, InstanceState, LaunchTemplateVersion, LifecycleHook, LifecycleState,
    NoticeKind, RefreshesView,
};
use chrono::{DateTime, TimeDelta, Utc};

/// The facts.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which holds or does not")]
pub struct Observed {
    /// The group.
    pub group: GroupView,
    /// The launch template; `None` while it was not read.
    pub template: TemplateView,
    /// The account of the credentials, once asked for.
    pub account: Option<String>,
    /// Our hook as the cloud has it, once asked for.
    pub hook: Option<Option<LifecycleHook>>,
    /// The group's instance refreshes as last read; `None` while they were not.
    pub refreshes: Option<RefreshesView>,
    /// Every instance that the group, an ASGMachine or a Machine names, by instance id.
    pub members: BTreeMap<String, Member>,
    /// Whether Machines and ASGMachines were listed live after the MachinePool was read.
    pub live_machines: bool,
    /// Whether the group was read on its own for this very decision, or a poll that shows our writes has just been.
    pub fresh_group: bool,
    /// Whether the group was read on its own for this very decision.
    pub group_was_read: bool,
    /// Whether our hook was read for this very decision.
    pub fresh_hook: bool,
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

/// EC2 knows a machine that was launched this long ago.
const KNOWN_BY_THEN: TimeDelta = TimeDelta::minutes(5);

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
    /// What AWS announced for it, as far as it is believed.
    pub notice: Option<NoticeKind>,
    /// Its ASGMachine tells of the notice, so that another process knows of it as well.
    pub notice_is_told: bool,
    /// Something was announced that is believed or not once the machine is known.
    pub rumoured: bool,
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
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which holds or does not")]
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
    /// Whether it is paused on its own: then nothing is done about its instance (F4).
    pub paused: bool,
    /// Whether somebody wants the instance replaced.
    pub replace_requested: bool,
    /// Whether the instance is to be disrupted last.
    pub do_not_disrupt: bool,
    /// The durable mark of an end that was asked for.
    pub end_requested_at: Option<DateTime<Utc>>,
    /// Whether its status tells that AWS ends the instance by an instance refresh.
    pub refreshed: bool,
    /// When it was created, soon after its instance was first listed.
    pub created_at: Option<DateTime<Utc>>,
}

/// A Machine, as far as decisions need it.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which holds or does not")]
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
    /// Since when the condition Ready has its status.
    pub ready_since: Option<DateTime<Utc>>,
    /// Whether somebody paused it: core leaves it alone.
    pub paused: bool,
    /// Whether a `MachineHealthCheck` wants it replaced (D15).
    pub needs_remediation: bool,
    /// The limits on how it goes (D14).
    pub timeouts: MachineDeletion,
    /// Value of `cluster.x-k8s.io/delete-machine`.
    pub delete_mark: Option<String>,
    /// Whether the drain is skipped by annotation.
    pub drain_excluded: bool,
    /// When it was created.
    pub created_at: Option<DateTime<Utc>>,
}

impl Observed {
    /// The Machine of an instance whose ASGMachine does not show; both have one name.
    #[must_use]
    pub fn stray(&self, instance: &str) -> Option<&MachineRef> {
        let of_instance = |name: &str| name.strip_suffix(instance).is_some_and(|pool| pool.ends_with('-'));
        self.stray_machines.iter().find(|machine| of_instance(&machine.name))
    }
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

    /// Somebody paused its ASGMachine, or its Machine, which core then leaves alone as well: once deleted it would
    /// neither go nor stay (F4).
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.asg_machine.as_ref().is_some_and(|m| m.paused) || self.machine.as_ref().is_some_and(|m| m.paused)
    }

    /// Its end has begun on our side, its Machine or its ASGMachine being deleted, or it is dead, whose Machine goes by the
    /// same decision unless somebody paused it.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        let deleted = self.machine.as_ref().is_some_and(|m| m.deleting_since.is_some());
        deleted || self.is_drained() || self.is_dead()
    }

    /// Its ASGMachine is being deleted: core drained its Node, or a person wants no drain (D12).
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.asg_machine.as_ref().is_some_and(|m| m.deleting_since.is_some())
    }

    /// When it was launched: as EC2 says, else when its ASGMachine was made, soon after.
    #[must_use]
    pub fn launched_at(&self) -> Option<DateTime<Utc>> {
        let told = self.facts.as_ref().and_then(|facts| facts.facts.as_ref()?.launched_at);
        told.or_else(|| self.asg_machine.as_ref()?.created_at)
    }

    /// Somebody wants it to be disrupted last.
    #[must_use]
    pub fn is_shielded(&self) -> bool {
        self.asg_machine.as_ref().is_some_and(|m| m.do_not_disrupt)
    }

    /// The machine is known to be gone: nothing brings it back, however old the answer is.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        let facts = self.facts.as_ref().and_then(|answer| answer.facts.as_ref());
        facts.is_some_and(|facts| facts.state == InstanceState::Terminated)
    }

    /// EC2 takes the Spot instance back within two minutes.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.notice == Some(NoticeKind::SpotInterruption)
    }

    /// The machine is known to be gone, by an answer not older than `since`. EC2 shows what has ended for about an
    /// hour, and may not know yet what was just launched: its silence about a new instance tells nothing.
    #[must_use]
    pub fn is_gone_since(&self, since: DateTime<Utc>) -> Option<bool> {
        let answer = self.facts.as_ref().filter(|f| f.as_of >= since)?;
        if let Some(facts) = &answer.facts {
            return Some(facts.state == InstanceState::Terminated);
        }
        let created = self.asg_machine.as_ref().and_then(|m| m.created_at);
        created.is_none_or(|created| answer.as_of - created >= KNOWN_BY_THEN).then_some(true)
    }
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
