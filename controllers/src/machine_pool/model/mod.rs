//! The types that the four steps share: the desired state, the facts, the memory and the plan.

pub mod adoption;
mod bootstrap;
pub mod call_kind;
mod decision;
mod desired;
mod error;
pub mod event_note;
mod input;
pub mod instance_notice;
pub mod instances;
mod known;
pub mod launch_content;
pub mod launch_record;
pub mod memory;
mod objects;
mod observation;
mod observed;
pub mod other_tags;
mod outdated;
pub mod ownership;
mod plan;
mod plural;
pub mod provider_ids;
mod read_lag;
mod references;
mod replica_owner;
mod report_reads;
mod resolved_image;
pub mod retry_key;
pub mod revision;
pub mod stamp;
pub mod stopped_rollout;
pub mod template_versions;
pub mod termination_cause;

pub use bootstrap::{BootstrapDigest, BootstrapProblem, Format, LIMIT as USER_DATA_LIMIT, Oversized};
pub use decision::{Acted, Decision};
pub use desired::{
    Bounds, Desired, DesiredBootstrap, DesiredLaunch, DesiredSettings, MachinePoolRef, ReplicaOwner,
    ScaleInOrder, replicas,
};
pub use error::ReconcileError;
pub use input::Input;
pub use known::Known;
pub use memory::PoolMemory;
pub use objects::{Machines, PoolObjects};
pub use observation::{Facts, Observation, PoolState};
pub use observed::{
    AsgMachineRef, Ec2Answer, GroupView, MachineRef, Observed, ObservedTemplate, PoolInstance,
};
pub use outdated::{Outdated, OutdatedReason};
pub use plan::{
    Blocker, Comparison, DeletionPhase, Difference, Needs, Part, Phase, Plan, RolloutPhase, Step, StopCause,
};
pub use plural::{counted, is_or_are};
pub use read_lag::{LIST_LAG, reads_behind, unless_set_back};
pub use references::{NamedImage, References, image_source};
pub use report_reads::{ReportNeeds, ReportReads};
pub use resolved_image::ResolvedImage;
