//! Whether what a spec names fits together: the architectures of image and instance types, the account of the instance
//! profile.

use capasg_api::{
    conditions::{Finding, LAUNCH_TEMPLATE_READY},
    reasons::launch_template_ready::{IMAGE_ARCHITECTURE_MISMATCH, INSTANCE_PROFILE_IN_ANOTHER_ACCOUNT},
};
use capasg_cloud::InstanceTypes;

use super::place::Place;
use crate::machine_pool::model::{References, ResolvedImage};
use crate::names::account_of;

impl References {
    /// Reports an image that instance types cannot boot. If the types cannot be read, AWS validates them.
    pub(super) async fn check_instance_types(&mut self, place: &Place<'_>) {
        let names = place.spec().instance_type_names();
        let types = match place.inventory.instance_types(&names).await {
            Ok(types) => types,
            Err(error) => {
                return tracing::debug!(%error, "failed to read the instance types; AWS validates them");
            }
        };
        // GroupReady names them. Nothing could be launched.
        self.holds_launch |= types.offered.is_empty() && !place.is_created();
        let Some(mismatch) = self.image.as_ref().and_then(|image| mismatch(image, &types)) else { return };
        // Types that fit are launched, and require the token of new bootstrap data.
        self.holds_launch |= mismatch.is_complete;
        self.find(Finding::new(LAUNCH_TEMPLATE_READY, false, IMAGE_ARCHITECTURE_MISMATCH, mismatch.message));
    }

    /// Reports an instance profile of another account, which no instance can have.
    pub(super) async fn check_instance_profile(&mut self, place: &Place<'_>) {
        let spec = place.spec();
        let profile = spec.machine.iam_instance_profile.as_deref().filter(|name| name.starts_with("arn:"));
        let Some((profile, of_profile)) = profile.and_then(|arn| Some((arn, account_of(arn)?))) else {
            return;
        };
        let account = match spec.provider_id.as_deref().and_then(account_of) {
            Some(account) => account.to_owned(),
            None => match place.inventory.account().await {
                Ok(account) => account,
                Err(_) => return,
            },
        };
        if of_profile != account {
            let message = format!(
                "instance profile {profile} is in account {of_profile}, and the pool is in account {account}. Correct \
                 spec.machine.iamInstanceProfile, or use AWS credentials of account {of_profile}."
            );
            self.miss(LAUNCH_TEMPLATE_READY, INSTANCE_PROFILE_IN_ANOTHER_ACCOUNT, message);
        }
    }
}

/// An image that instance types cannot boot.
struct Mismatch {
    message: String,
    /// Whether no type can boot it.
    is_complete: bool,
}

/// The types of another architecture than the image, as far as AWS names both.
fn mismatch(image: &ResolvedImage, types: &InstanceTypes) -> Option<Mismatch> {
    let architecture = image.architecture.as_ref()?;
    let (others, fitting): (Vec<_>, Vec<_>) = types
        .offered
        .iter()
        .partition(|kind| !kind.architectures.is_empty() && !kind.architectures.contains(architecture));
    let first = others.first()?;
    let names: Vec<&str> = others.iter().map(|kind| kind.name.as_str()).collect();
    let of_types: Vec<&str> = first.architectures.iter().map(String::as_str).collect();
    let (noun, verb) = if names.len() == 1 { ("type", "is") } else { ("types", "are") };
    let message = format!(
        "image {} is for {architecture}, and instance {noun} {} {verb} {}. Use an image for {} in spec.machine.image, or \
         instance types for {architecture} in spec.instanceTypes.",
        image.id,
        names.join(", "),
        of_types.join(", "),
        of_types.join(" or "),
    );
    Some(Mismatch { message, is_complete: fitting.is_empty() })
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc};

    use capasg_cloud::InstanceType;

    use super::*;

    fn image(architecture: Option<&str>) -> ResolvedImage {
        ResolvedImage {
            id: "ami-0a1b2c3d".to_owned(),
            root_device: "/dev/xvda".to_owned(),
            architecture: architecture.map(str::to_owned),
            is_windows: false,
            block_devices: Vec::new(),
        }
    }

    fn types(kinds: &[(&str, &[&str])]) -> InstanceTypes {
        let kind = |(name, architectures): &(&str, &[&str])| {
            Arc::new(InstanceType {
                name: (*name).to_owned(),
                vcpus: 2,
                memory_mib: 8192,
                architectures: architectures.iter().map(|name| (*name).to_owned()).collect(),
                gpus: Vec::new(),
                neuron_devices: 0,
                neuron_cores: 0,
            })
        };
        InstanceTypes { offered: kinds.iter().map(kind).collect(), unknown: BTreeSet::new() }
    }

    #[test]
    fn the_types_of_another_architecture_are_named() {
        let found = mismatch(&image(Some("arm64")), &types(&[("m7i.large", &["x86_64"])])).unwrap();
        assert_eq!(
            found.message,
            "image ami-0a1b2c3d is for arm64, and instance type m7i.large is x86_64. Use an image for x86_64 in \
             spec.machine.image, or instance types for arm64 in spec.instanceTypes."
        );
        assert!(found.is_complete);
        let some = types(&[("m7g.large", &["arm64"]), ("t2.micro", &["i386", "x86_64"])]);
        let found = mismatch(&image(Some("arm64")), &some).unwrap();
        assert!(!found.is_complete && found.message.contains("instance type t2.micro is i386, x86_64"));
        assert!(found.message.contains("an image for i386 or x86_64 in"), "{}", found.message);
    }

    #[test]
    fn what_fits_or_is_not_known_is_no_mismatch() {
        let both = types(&[("t2.micro", &["i386", "x86_64"]), ("odd.large", &[])]);
        for architecture in [Some("x86_64"), Some("i386"), None] {
            assert!(mismatch(&image(architecture), &both).is_none(), "{architecture:?}");
        }
        assert!(mismatch(&image(Some("arm64")), &types(&[])).is_none());
    }
}
