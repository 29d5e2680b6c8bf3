//! Resolves the references of a spec (by ID, tag or parameter) in AWS: subnets, security groups, the image. What is not
//! found is reported with the place of the lookup, and before anything is created.

mod fit;
mod image;
mod place;
mod security_groups;
mod subnets;
mod volumes;
mod vpc;

use std::{collections::BTreeSet, time::Duration};

use capasg_api::{
    ASGMachinePool,
    capi::MachinePool,
    conditions::{Finding, LAUNCH_TEMPLATE_READY, Status},
    reasons,
};
use capasg_cloud::{CloudError, Inventory};

pub use image::reported_image;
use place::Place;

use crate::kubernetes::{Kubernetes, Result as KubeResult};
use crate::machine_pool::model::{NamedImage, PoolObjects, References};

/// What the group launches with, if it exists: it is not looked up again.
#[derive(Debug, Clone, Copy, Default)]
pub struct InUse<'a> {
    /// The image of the version that the group is pinned to, as long as the spec takes it from the same source.
    pub image: Option<&'a str>,
    /// The security groups of that version.
    pub security_groups: Option<&'a BTreeSet<String>>,
}

impl References {
    /// Resolves the references of the spec. Failures of AWS become findings: existing instances keep running.
    ///
    /// # Errors
    /// A read of the API server failed.
    pub async fn observe(
        kubernetes: &dyn Kubernetes,
        inventory: &Inventory,
        objects: &PoolObjects,
        owner: &MachinePool,
        in_use: InUse<'_>,
        named: &mut Option<NamedImage>,
    ) -> KubeResult<Self> {
        let place = Place::new(kubernetes, inventory, objects);
        let mut references = Self::default();
        references.check_guards(objects);
        references.resolve_subnets(&place, owner).await?;
        references.resolve_security_groups(&place, in_use.security_groups).await;
        references.resolve_image(&place, owner, in_use.image, named).await;
        references.check_instance_types(&place).await;
        references.check_instance_profile(&place).await;
        references.check_volumes(&place).await;
        // Nothing is created from a spec of which something is known to be wrong.
        references.holds_launch |= !place.is_created() && !references.findings.is_empty();
        Ok(references)
    }

    /// What was looked up for the references of the spec is read again, and what was for the image that the parameter `named`.
    /// Other pools may share it, and then read it again as well.
    pub fn forget(
        inventory: &Inventory,
        pool: &ASGMachinePool,
        version: Option<&str>,
        named: Option<&NamedImage>,
    ) {
        let spec = &pool.spec;
        for selector in subnets::subnet_selectors(spec) {
            inventory.forget_subnets(&selector);
        }
        for selector in security_groups::security_group_selectors(&spec.machine.security_groups) {
            inventory.forget_security_groups(&selector);
        }
        if let Ok(Some(name)) = spec.machine.image.ssm_parameter_for(version) {
            inventory.forget_parameter(&name);
        }
        images(pool, named).for_each(|id| inventory.forget_image(id));
        let snapshots = spec.machine.data_volumes.iter().filter_map(|volume| volume.snapshot_id.as_ref());
        snapshots.for_each(|id| inventory.forget_snapshot(id));
    }

    /// The images are read again if they were read at least this long ago.
    pub fn forget_older_images(
        inventory: &Inventory,
        pool: &ASGMachinePool,
        named: Option<&NamedImage>,
        age: Duration,
    ) {
        images(pool, named).for_each(|id| inventory.forget_older_image(id, age));
    }

    /// Reports what is missing. A launch template must not be made without it.
    pub(super) fn miss(&mut self, condition: &'static str, reason: &'static str, message: String) {
        self.holds_launch |= condition == LAUNCH_TEMPLATE_READY;
        self.find(Finding::new(condition, false, reason, message));
    }

    fn find(&mut self, found: Finding) {
        if self.findings.iter().all(|finding| finding.type_ != found.type_) {
            self.findings.push(found);
        }
    }

    /// Reports a read that failed.
    fn fail(&mut self, condition: &'static str, what: &str, place: &Place<'_>, error: &CloudError) {
        let message = unread(what, place, error);
        self.holds_launch |= condition == LAUNCH_TEMPLATE_READY;
        self.find(Finding::new(condition, Status::Unknown, reasons::INTERNAL_ERROR, message));
        self.retry(error);
    }

    /// Has a read that failed retried.
    fn retry(&mut self, error: &CloudError) {
        if self.failed.iter().all(|known| known.api != error.api) {
            self.failed.push(error.clone());
        }
    }
}

/// The message for a read that failed.
fn unread(what: &str, place: &Place<'_>, error: &CloudError) -> String {
    format!("{what} cannot be read in region {}: {error}", place.spec().region)
}

/// The images of a spec: that of the spec, the one that its parameter `named`, and those that the status reports.
fn images<'a>(pool: &'a ASGMachinePool, named: Option<&'a NamedImage>) -> impl Iterator<Item = &'a String> {
    let reported = pool.status.as_ref().and_then(|status| status.image.as_ref());
    let reported = reported.into_iter().flat_map(|image| [Some(&image.id), image.available_id.as_ref()]);
    reported.chain([pool.spec.machine.image.id.as_ref(), named.map(|(_, id)| id)]).flatten()
}
