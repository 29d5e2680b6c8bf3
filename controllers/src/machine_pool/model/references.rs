//! What a spec names by id, tag or parameter, as AWS resolved it.

use std::collections::BTreeSet;

use capasg_api::{ASGMachinePoolSpec, conditions::Finding};
use capasg_cloud::{CloudError, Subnet};

use crate::machine_pool::model::stamp::hash;

/// The resolved references, and what could not be resolved.
#[derive(Debug, Clone, Default)]
pub struct References {
    /// Subnets to launch into; empty if none could be resolved.
    pub subnets: BTreeSet<String>,
    /// The subnets with their zones, for status.
    pub zones: Vec<Subnet>,
    /// Security groups, sorted.
    pub security_groups: Vec<String>,
    /// The image, pinned or just resolved.
    pub image: Option<ResolvedImage>,
    /// The image that the parameter names now, where one is pinned.
    pub available_image: Option<String>,
    /// What could not be resolved, one finding per condition.
    pub findings: Vec<Finding>,
    /// A look-up that failed, so that the answer is not whole: nobody will wake the pool when it would succeed.
    pub failed: Option<CloudError>,
}

/// An image and the device that its root volume hangs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedImage {
    /// The image's id.
    pub id: String,
    /// `RootDeviceName`.
    pub root_device: String,
    /// `Architecture`, for example `x86_64`.
    pub architecture: Option<String>,
    /// Whether it boots Windows.
    pub is_windows: bool,
    /// The size of its root volume in GiB.
    pub root_volume_gib: Option<i32>,
}

/// Hash of where the image comes from: while it stays, the pinned image stays, whatever the parameter says now.
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
