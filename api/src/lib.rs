//! The kinds, names, conditions and minimal foreign types of the provider; knows nothing of AWS or IO.
//!
//! * [`pool`] and [`machine`]: `ASGMachinePool` and `ASGMachine`, with accessors that fill in defaults.
//! * [`template`]: `ASGMachinePoolTemplate`, what a `ClusterClass` makes pools from.
//! * [`conditions`] and [`reasons`]: what the kinds say about themselves.
//! * [`admission`]: what is refused or warned of at admission beyond what the definitions can say.
//! * [`names`]: every label, annotation, finalizer, tag and derived name, each in one place.
//! * [`capi`]: the little that is read of Cluster API's own kinds.
//! * [`crd`]: the `CustomResourceDefinition`s, as they are shipped.

pub mod admission;
pub mod capi;
pub mod conditions;
pub mod crd;
pub mod machine;
pub mod names;
pub mod pool;
pub mod reasons;
pub mod template;
#[doc(hidden)]
pub mod testing;
pub mod time;

mod values;

pub use machine::{ASGMachine, ASGMachineSpec, ASGMachineStatus};
pub use pool::{ASGMachinePool, ASGMachinePoolSpec, ASGMachinePoolStatus};
pub use template::{ASGMachinePoolTemplate, ASGMachinePoolTemplateSpec};

/// The API group of our kinds; core Cluster API has access to it without extra roles (A7).
pub const GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// The only served version, of pools and of their instances (A6).
pub const VERSION: &str = "v1alpha1";
