//! What the desired state was last made from: the bootstrap data, the image, the spec; and the group that the pool is
//! registered for.

use capasg_cloud::Place;

use crate::machine_pool::model::{BootstrapDigest, NamedImage};

/// What a hash of the desired state was made from: the spec by its generation, and the version.
pub type DesiredSource = (i64, Option<String>);

/// What the pool is registered for with the inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The identity and the region.
    pub place: Place,
    /// The name of the group.
    pub group: String,
    /// The name of the launch template.
    pub template: String,
}

/// What was last read.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The bootstrap data.
    bootstrap: Option<BootstrapDigest>,
    /// The image that the spec's parameter named.
    named_image: Option<NamedImage>,
    /// Hash of all inputs that a user can edit (spec, version, ...), computed once for each edit.
    desired_key: Option<(DesiredSource, String)>,
    /// What the pool is registered for.
    registered: Option<Registration>,
}

impl Sources {
    /// The bootstrap data as last read.
    #[must_use]
    pub fn bootstrap(&self) -> Option<&BootstrapDigest> {
        self.bootstrap.as_ref()
    }

    /// The image that the spec's parameter named when it was last read.
    #[must_use]
    pub fn named_image(&self) -> Option<&NamedImage> {
        self.named_image.as_ref()
    }

    /// The hash of all inputs that a user can edit, if it was computed from `source`. One without a generation is made
    /// again.
    #[must_use]
    pub fn desired_key(&self, source: &DesiredSource) -> Option<&String> {
        let known = self.desired_key.as_ref().filter(|(of, _)| of == source && of.0 > 0);
        known.map(|(_, key)| key)
    }

    /// What the pool is registered for.
    #[must_use]
    pub fn registered(&self) -> Option<&Registration> {
        self.registered.as_ref()
    }

    /// Records that the bootstrap data was read.
    pub(super) fn set_bootstrap(&mut self, digest: BootstrapDigest) {
        self.bootstrap = Some(digest);
    }

    /// Records that the parameter was read.
    pub(super) fn set_named_image(&mut self, image: Option<NamedImage>) {
        self.named_image = image;
    }

    /// Records the hash of all inputs that a user can edit.
    pub(super) fn set_desired_key(&mut self, source: DesiredSource, key: String) {
        self.desired_key = Some((source, key));
    }

    /// Records that the pool is not registered any more.
    pub(super) fn unregister(&mut self) {
        self.registered = None;
    }

    /// Records that the pool is registered for this group.
    pub(super) fn register(&mut self, registered: Registration) {
        self.registered = Some(registered);
    }
}
