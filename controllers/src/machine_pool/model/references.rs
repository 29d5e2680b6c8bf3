//! The references of a spec (by ID, tag or parameter), as AWS resolved them.

use std::collections::BTreeSet;

use capasg_api::{ASGMachinePoolSpec, conditions::Finding};
use capasg_cloud::{CloudError, Subnet};

use crate::machine_pool::model::ResolvedImage;
use crate::machine_pool::model::stamp::hash;

/// The resolved references, and those that could not be resolved.
#[derive(Debug, Clone, Default)]
pub struct References {
    /// Subnets to launch into; empty if none could be resolved.
    pub subnets: BTreeSet<String>,
    /// The subnets with their zones, for status.
    pub zones: Vec<Subnet>,
    /// Security groups, sorted.
    pub security_groups: Vec<String>,
    /// The image, pinned or resolved now.
    pub image: Option<ResolvedImage>,
    /// The size in GiB of the volume on which a new node stores the data of pods, as far as it is known.
    pub ephemeral_storage_gib: Option<i32>,
    /// Whether that is the size of a snapshot which could not be read, so that it stays as reported.
    pub ephemeral_storage_is_unread: bool,
    /// The image that the parameter names now, if an image is pinned.
    pub available_image: Option<String>,
    /// Why no other image is rolled out although `updatePolicy` is `RollOut`. The pool keeps the image that it has.
    pub update_problem: Option<Finding>,
    /// What could not be resolved, or does not fit, one finding for each condition.
    pub findings: Vec<Finding>,
    /// Whether a launch template must not be made of them: what it names is missing, or cannot be launched.
    pub holds_launch: bool,
    /// Whether a guard of the namespace does not allow something of them: nothing more is launched.
    pub denied: bool,
    /// The reads that failed, one for each operation, so that the references are incomplete. They are retried, since nothing wakes the pool.
    pub failed: Vec<CloudError>,
}

impl References {
    /// Whether the subnets could not be read.
    #[must_use]
    pub fn lacks_subnets(&self) -> bool {
        !self.failed.is_empty() && self.subnets.is_empty()
    }
}

/// Hash of the source of the image: while it is the same, the pinned image stays, whatever the parameter names now.
#[must_use]
pub fn image_source(spec: &ASGMachinePoolSpec, version: Option<&str>) -> Option<String> {
    let image = &spec.machine.image;
    match &image.id {
        Some(id) => Some(hash(&("id", id))),
        None => Some(hash(&("ssmParameter", image.ssm_parameter_for(version).ok()??))),
    }
}

/// A parameter, and the image that it named when it was last read.
pub type NamedImage = (String, String);
