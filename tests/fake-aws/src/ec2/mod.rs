//! The part of EC2 that groups of instances need: networks, images, launch templates and instances.

pub(crate) mod console;
mod filters;
mod image;
mod image_describe;
mod instance;
pub(crate) mod instances;
mod network;
mod network_describe;
mod status;
pub(crate) mod tags;
mod template;
pub(crate) mod template_data;
mod template_versions;
pub(crate) mod templates;
pub(crate) mod volumes;

pub(crate) use filters::Filters;
pub use image::{Image, ImageDevice, ImageVolume, Snapshot};
pub(crate) use image_describe::{images, snapshots};
pub(crate) use instance::{Ec2State, Instance, Market};
pub use network::{Accelerators, Capacity, InstanceType, Network, SecurityGroup, Subnet};
pub(crate) use network_describe::{
    instance_type_offerings, instance_types, security_group_vpc_associations, security_groups, subnets, vpcs,
};
pub(crate) use status::describe_status;
pub(crate) use template::{Template, Version};
pub(crate) use template_versions::{create_version, delete_versions, describe_versions};
pub use volumes::Volume;

use crate::{ApiError, Tree};

/// Refuses a dry run as EC2 does: the caller would have been allowed.
pub(crate) fn dry_run(params: &Tree) -> Result<(), ApiError> {
    if params.flag_of("DryRun") == Some(true) {
        return Err(ApiError::new(
            412,
            "DryRunOperation",
            "Request would have succeeded, but DryRun flag is set.",
        ));
    }
    Ok(())
}
