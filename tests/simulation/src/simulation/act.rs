//! What can happen in a story.

use capasg_api::{ASGMachinePoolSpec, pool::InstanceRefresh};

use crate::Setup;

/// A run, as its seed makes it.
#[derive(Debug, Clone)]
pub struct Story {
    /// The seed.
    pub seed: u64,
    /// Caches, views and times.
    pub setup: Setup,
    /// The pool.
    pub spec: ASGMachinePoolSpec,
    /// Its first replicas.
    pub replicas: i32,
    /// Whether bootstrap data are a Secret of its owner's, which holds no token.
    pub fixed: bool,
    /// How many seconds after the next token a token is valid, if it ever expires.
    pub expiry: Option<i64>,
    /// How long drains take, in seconds.
    pub drain_seconds: i64,
    /// What happens, each after so many milliseconds.
    pub acts: Vec<(i64, Act)>,
    /// A group of others that has the name of the pool's group before the pool exists.
    pub existing_group: Option<ExistingGroup>,
    /// A second pool.
    pub second: Option<SecondPool>,
    /// How it ends.
    pub finale: Finale,
    /// What happens during a deletion.
    pub last_acts: Vec<(i64, Act)>,
    /// Whether it is looked for long whether nothing is written any more.
    pub quiet: bool,
}

impl Story {
    /// Whether something of this kind happens before the end.
    pub(super) fn has(&self, kind: impl Fn(&Act) -> bool) -> bool {
        self.acts.iter().any(|(_, act)| kind(act))
    }
}

/// A group of others that has the name of the pool's group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingGroup {
    /// The pool waits until others delete it.
    Foreign,
    /// The pool adopts it.
    Adoptable,
}

/// A second pool, whose bootstrap data have tokens.
#[derive(Debug, Clone)]
pub struct SecondPool {
    /// Whether it is of a Cluster of its own.
    pub elsewhere: bool,
    /// The pool.
    pub spec: ASGMachinePoolSpec,
    /// Its first replicas.
    pub replicas: i32,
}

/// How a story ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finale {
    /// The pool goes on.
    Stays,
    /// Its `MachinePool` is deleted.
    DeleteMachinePool,
    /// The `ASGMachinePool` is deleted, then its `MachinePool`.
    DeletePool,
    /// The Cluster is deleted.
    DeleteCluster,
    /// The Cluster is gone all at once, then the `MachinePool` is deleted.
    ClusterVanishes,
    /// The namespace is deleted with all that is in it.
    DeleteNamespace,
}

/// Something that happens. A number `which` chooses one of what there is then.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// `kubectl scale`.
    Scale(i32),
    /// As the Cluster Autoscaler does: some Machines are marked, then replicas lowered by as many.
    ScaleDownMarked(Vec<u64>),
    /// Part of the spec is edited.
    Spec(SpecEdit),
    /// The `MachinePool`'s version.
    Version(&'static str),
    /// `nodeDrainTimeoutSeconds` of the `MachinePool`.
    NodeDrainTimeout(Option<i32>),
    /// `rollout.after` is set to so many seconds from then on.
    RolloutAfter(i64),
    /// A person lets a stopped rollout go on.
    LetGoOn,
    /// A person asks for an instance to be replaced.
    Replace(u64),
    /// A person wants an instance to be disrupted last, or no longer.
    Shield(u64, bool),
    /// `minReadySeconds` of the `MachinePool`.
    MinReady(i32),
    /// The bootstrap config is edited; rendered with the next token.
    BootstrapEdit(&'static str),
    /// A new bootstrap token.
    Token,
    /// `kubectl delete machine`.
    DeleteMachine(u64),
    /// `kubectl delete asgmachine`: no drain.
    DeleteAsgMachine(u64),
    /// `cluster.x-k8s.io/delete-machine` on a Machine, by a person.
    Mark(u64),
    /// A person excludes a Machine's drain.
    ExcludeDrain(u64),
    /// A `MachineHealthCheck` wants a Machine replaced.
    MarkUnhealthy(u64),
    /// It recovers.
    Recover(u64),
    /// The Cluster is paused, or goes on.
    PauseCluster(bool),
    /// The pool is paused, or goes on.
    PausePool(bool),
    /// Somebody else manages replicas, or no longer.
    Managed(bool),
    /// A `PodDisruptionBudget` blocks a drain.
    BlockDrain(u64),
    /// It blocks all drains, or none.
    BlockDrains(bool),
    /// How long drains take.
    DrainSeconds(i64),
    /// No Node joins any more, or they do again.
    Mute(bool),
    /// `kubectl delete node`.
    DeleteNode(u64),
    /// The kubelet of an instance goes down.
    KubeletDown(u64),
    /// The API server of the workload cluster does not answer, or does again.
    WorkloadUnreachable(bool),
    /// Nodes and kubelets are back.
    HealNodes,
    /// A machine is ended in EC2.
    Kill(u64),
    /// A machine's status checks fail.
    Impair(u64),
    /// Somebody reports an instance unhealthy.
    Unhealthy(u64),
    /// A spot machine is warned, and taken two minutes later.
    Interrupt(u64),
    /// EC2 recommends to replace a spot machine.
    Recommend(u64),
    /// AWS will retire a machine.
    Retire(u64),
    /// Somebody ends an instance through its group.
    EndByOthers(u64, bool),
    /// Somebody sets desired capacity this much higher or lower.
    DesiredByOthers(i64),
    /// Somebody sets the group's bounds.
    BoundsByOthers(i64, i64),
    /// Somebody deletes our hook.
    HookGone,
    /// Somebody removes our tags but the owner's.
    TagsGone,
    /// Somebody takes protection off an instance.
    Unprotect(u64),
    /// Somebody suspends a process, or resumes it.
    Suspend(&'static str, bool),
    /// Somebody puts an instance into standby.
    Standby(u64),
    /// What is in standby comes back.
    BackFromStandby,
    /// Somebody takes an instance out of its group.
    Detach(u64),
    /// Somebody starts an instance refresh that keeps so many percent, of all or of what does not match.
    RefreshByOthers(i64, bool),
    /// Somebody cancels an instance refresh.
    CancelRefresh,
    /// Somebody rolls an instance refresh back.
    RollRefreshBack,
    /// The alarm goes off, or no more.
    Alarm(bool),
    /// No more capacity than there is, or as much as is wanted.
    Shortage(bool),
    /// A call fails.
    Fault(&'static str, Failure, u32),
    /// Lists of groups come back empty.
    EmptyLists(u32),
    /// Every call of one operation fails the same way, until that ends.
    Outage(&'static str, Rejection),
    /// It ends.
    OutageEnds(&'static str, Rejection),
    /// AWS does not know an instance that its group lists: a call that names it is refused as a whole.
    Unknown(u64),
    /// It knows all again.
    Known,
    /// Machines are launched from the version before the one that the group names, or from that one again.
    OlderVersions(bool),
    /// Somebody has the group launch from another version: an older one or `$Latest`.
    LaunchByOthers(u64),
    /// Somebody makes a version with another image, and has the group launch from it.
    VersionByOthers(&'static str),
    /// Somebody sets the group's `InstanceMaintenancePolicy`: what is replaced ends after what replaces it serves.
    Maintenance(i64, i64),
    /// Somebody sets the group's `CapacityRebalance`.
    Rebalances(bool),
    /// A user stops a machine in EC2.
    Stop(u64),
    /// Calls are never answered.
    Hang(u32),
    /// Auto Scaling is throttled so that few calls get through, or no more.
    Throttle(bool),
    /// Writes to Kubernetes meet conflicts.
    Conflicts(u32),
    /// Calls to Kubernetes fail.
    ApiFailures(u32),
    /// A cache learns nothing, or again.
    Freeze(usize, bool),
    /// Core is down, or up again.
    CoreDown(bool),
    /// The process is killed between two reconciles.
    Restart,
    /// The process dies after a write.
    CrashAfterWrite(usize),
    /// The process dies before a call.
    CrashBeforeCall(usize),
    /// The process dies with a write, whose effect comes later.
    LandLate(usize, u64),
    /// The leader cannot renew its lease.
    LoseLease,
    /// AWS rejects the credentials of the pool's identity with this code.
    RejectCredentials(&'static str),
    /// An operator allows the pool's identity in other namespaces alone.
    WithdrawIdentity,
    /// An operator deletes the pool's identity.
    DeleteIdentity,
    /// The pool's identity is as it was.
    RestoreIdentity,
    /// The pool refers to another identity of the same account.
    SwitchIdentity,
    /// What others reported of pools in production.
    Field(Field),
    /// Something happens to the second pool.
    Second(Box<Act>),
    /// Writes to the API server take effect, and their replies are lost.
    LoseReplies(u32),
    /// The watch of a kind breaks and lists again.
    ListAgain(usize),
    /// The process is killed, and another lists from caches that are so many seconds behind, and catch up so many milliseconds
    /// later.
    RestartInThePast(i64, i64),
    /// The process is killed, and another follows on a host whose clock is so many seconds off.
    RestartWithClockOff(i64),
    /// The clock of the host is set while the process runs: it is so many seconds off.
    ClockSet(i64),
    /// Nothing.
    Wait,
}

/// Something that others reported of pools in production.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Somebody deletes the group that has the name of the pool's.
    NameFreed,
    /// Somebody deletes the launch template.
    TemplateGone,
    /// Somebody launches an instance by hand and attaches it to the group.
    Attach(u64),
    /// Somebody attaches again what was detached.
    Reattach,
    /// Instances die at launch of this, or no longer.
    LaunchesDie(Option<&'static str>),
    /// Somebody adds a lifecycle hook for launches that nobody completes, or deletes it.
    LaunchHook(bool),
    /// An image is deregistered, or shared again.
    ImageGone(&'static str, bool),
    /// AWS does not know a new launch template version yet, in so many calls.
    VersionUnknown(u32),
    /// A backup is restored: ASGMachines have no owner references.
    ReferencesLost,
}

/// How every call of an operation fails for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// Its parameters are not valid.
    Invalid,
    /// No permission.
    Denied,
    /// 500.
    Internal,
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Throttled.
    Throttled,
    /// 500.
    Internal,
    /// Something else is going on.
    Conflict,
    /// No permission.
    Denied,
    /// It has its effect, but its reply is lost.
    LostReply,
    /// It is lost before it has an effect.
    LostRequest,
    /// Its reply is lost, its effect comes some milliseconds later.
    Late(u64),
}

/// An edit of the spec.
#[derive(Debug, Clone, PartialEq)]
pub enum SpecEdit {
    /// The image.
    Image(&'static str),
    /// The root volume's size.
    Volume(i32),
    /// The instance types.
    Types(Vec<&'static str>),
    /// The subnets.
    Subnets(Vec<&'static str>),
    /// A tag.
    Tag(&'static str),
    /// Surge and unavailable of a rolling update, in percent if negative.
    Rolling(i32, i32),
    /// Outdated instances wait.
    OnDelete,
    /// AWS replaces outdated instances.
    Refresh(InstanceRefresh),
    /// The limit on drains, in seconds.
    DrainTimeout(Option<i32>),
    /// Whether ends by the cloud are held.
    HoldEnds(bool),
    /// Whether a deletion drains.
    DrainOnDeletion(bool),
    /// Bounds.
    Bounds(Option<i32>, Option<i32>),
    /// Which go first.
    Newest(bool),
    /// Whether unhealthy Machines are replaced.
    Remediate(bool),
    /// How many may be disrupted at once, in percent if negative.
    MaxDisrupted(Option<i32>),
    /// When a rollout may begin something.
    Windows(Vec<Opens>),
    /// Whether rollouts are paused.
    PauseRollouts(bool),
    /// Whether changes are only shown.
    Preview(bool),
    /// How long a rollout may wait for new instances, in seconds.
    ProgressDeadline(Option<i32>),
    /// How old an instance may become, in seconds.
    Lifetime(Option<i32>),
    /// Whether a deletion leaves group and instances as they are.
    Orphan(bool),
}

/// A window for rollouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opens {
    /// When, as cron says it.
    pub schedule: &'static str,
    /// For how many seconds.
    pub seconds: i32,
    /// How many may be disrupted in it.
    pub most: Option<i32>,
}
