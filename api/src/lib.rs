//! The kinds, names and conditions of the provider, and the fields that it reads of Cluster API's kinds. Depends neither on
//! AWS nor on IO.
//!
//! * [`pool`] and [`machine`]: `ASGMachinePool` and `ASGMachine`, with accessors that fill in defaults.
//! * [`identity`] and [`guard`]: `ASGIdentity` and `ASGGuard`, by which an operator says what namespaces may use in AWS.
//! * [`template`]: `ASGMachinePoolTemplate`, the template of the pools of a `ClusterClass`.
//! * [`conditions`] and [`reasons`]: the conditions of the kinds and their reasons.
//! * [`admission`]: the admission rules and warnings that the CRDs cannot express.
//! * [`names`]: every label, annotation, finalizer, tag, event reason and derived name.
//! * [`capi`]: the fields that are read of Cluster API's own kinds.
//! * [`errors`]: errors of the Kubernetes client in words, without bodies of responses.
//! * [`fit`]: what cuts a status to the limits of its schema.
//! * [`crd`]: the `CustomResourceDefinition`s, as they are shipped.

pub mod admission;
pub mod capi;
pub mod conditions;
pub mod crd;
pub mod errors;
pub mod fit;
pub mod guard;
pub mod identity;
pub mod machine;
pub mod names;
pub mod pool;
pub mod reasons;
pub mod template;
pub mod time;

mod values;

pub use guard::{ASGGuard, ASGGuardSpec};
pub use identity::{ASGIdentity, ASGIdentitySpec, ASGIdentityStatus};
pub use machine::{ASGMachine, ASGMachineSpec, ASGMachineStatus};
pub use pool::{ASGMachinePool, ASGMachinePoolSpec, ASGMachinePoolStatus};
pub use template::{ASGMachinePoolTemplate, ASGMachinePoolTemplateSpec};

/// The API group of our kinds; core Cluster API has access to it without extra roles (A7).
pub const GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// The only served version, of pools and of their instances (A6).
pub const VERSION: &str = "v1alpha1";
