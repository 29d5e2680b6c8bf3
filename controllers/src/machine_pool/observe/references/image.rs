//! Resolves the image of a spec: an ID, or the parameter that holds one.

use capasg_api::{
    ASGMachinePool,
    capi::MachinePool,
    conditions::LAUNCH_TEMPLATE_READY,
    pool::{Image, ImageUpdatePolicy},
    reasons::launch_template_ready::IMAGE_NOT_FOUND,
};
use capasg_cloud::{ErrorClass, Inventory};

use super::place::Place;
use crate::machine_pool::model::{NamedImage, References, ResolvedImage};

impl References {
    /// Resolves the image; `pinned` is the image of the version that the group is pinned to, from the same source.
    pub(super) async fn resolve_image(
        &mut self,
        place: &Place<'_>,
        owner: &MachinePool,
        pinned: Option<&str>,
        named: &mut Option<NamedImage>,
    ) {
        let inventory = place.inventory;
        let image = &place.spec().machine.image;
        let id = match (&image.id, pinned) {
            (Some(id), _) => id.clone(),
            (None, Some(pinned)) => {
                self.available_image = named_now(inventory, image, owner.version(), named).await;
                let available = self.available_image.clone();
                let rolls_out = image.update_policy() == ImageUpdatePolicy::RollOut;
                available.filter(|_| rolls_out).unwrap_or_else(|| pinned.to_owned())
            }
            (None, None) => match image.ssm_parameter_for(owner.version()) {
                Err(error) => return self.miss(LAUNCH_TEMPLATE_READY, IMAGE_NOT_FOUND, error.to_string()),
                Ok(None) => return,
                Ok(Some(name)) => match self.image_of_parameter(place, &name).await {
                    Some(id) => id,
                    None => return,
                },
            },
        };
        match inventory.image(&id).await {
            Ok(Some(image)) => {
                self.image = Some(ResolvedImage {
                    id,
                    root_device: image.root_device_name.unwrap_or_else(|| "/dev/xvda".to_owned()),
                    architecture: image.architecture,
                    is_windows: image.is_windows,
                    block_devices: image.block_devices,
                });
            }
            Ok(None) => {
                let (region, origin) = (place.name().await, place.origin().await);
                let missing = format!(
                    "image {id} does not exist in {region}, is not available, or is not shared with this account"
                );
                let parameter = image.ssm_parameter_for(owner.version()).ok().flatten();
                let message = match (parameter.filter(|_| image.id.is_none()), &self.available_image) {
                    (None, _) => format!("{missing}. Correct spec.machine.image; {origin}."),
                    (Some(parameter), Some(now)) if *now != id => {
                        let by_version =
                            image.ssm_parameter.as_ref().is_some_and(|name| name.contains("{version}"));
                        let or = if by_version {
                            ", or change spec.template.spec.version of the MachinePool"
                        } else {
                            ""
                        };
                        format!(
                            "{missing}. SSM parameter {parameter} names image {now} now. To launch from it, set \
                             spec.machine.image.updatePolicy to RollOut{or}; {origin}."
                        )
                    }
                    (Some(parameter), _) => format!(
                        "{missing}. SSM parameter {parameter} names no other image. Write a usable image to it, or \
                         correct spec.machine.image.ssmParameter; {origin}."
                    ),
                };
                self.miss(LAUNCH_TEMPLATE_READY, IMAGE_NOT_FOUND, message);
            }
            Err(error) => self.fail(LAUNCH_TEMPLATE_READY, &format!("image {id}"), place, &error),
        }
    }

    /// The image ID that a parameter holds.
    async fn image_of_parameter(&mut self, place: &Place<'_>, name: &str) -> Option<String> {
        let message = match place.inventory.parameter(name).await {
            Ok(Some(id)) => return Some(id),
            Ok(None) => format!(
                "SSM parameter {name} does not exist in {}. Correct spec.machine.image.ssmParameter or \
                 spec.template.spec.version of the MachinePool; {}.",
                place.name().await,
                place.origin().await
            ),
            Err(error) if error.class == ErrorClass::Invalid => format!(
                "{}. Correct the parameter, or spec.machine.image.ssmParameter.",
                error.message.trim_end_matches('.')
            ),
            Err(error) => {
                self.fail(LAUNCH_TEMPLATE_READY, &format!("SSM parameter {name}"), place, &error);
                return None;
            }
        };
        self.miss(LAUNCH_TEMPLATE_READY, IMAGE_NOT_FOUND, message);
        None
    }
}

/// The image of the parameter that the previous leader reported.
#[must_use]
pub fn reported_image(pool: &ASGMachinePool, version: Option<&str>) -> Option<String> {
    pool.spec.machine.image.ssm_parameter_for(version).ok()??;
    pool.status.as_ref()?.image.as_ref()?.available_id.clone()
}

/// The image that the parameter names now. If it cannot be read, it is the one that was read last, so that the desired
/// state does not alternate.
async fn named_now(
    inventory: &Inventory,
    image: &Image,
    version: Option<&str>,
    named: &mut Option<NamedImage>,
) -> Option<String> {
    let name = image.ssm_parameter_for(version).ok()??;
    match inventory.parameter(&name).await {
        Ok(id) => *named = id.map(|id| (name, id)),
        Err(error) => {
            tracing::debug!(
                %error,
                name,
                "failed to read the SSM parameter; the last image that was read is kept"
            );
            named.take_if(|(known, _)| *known != name);
        }
    }
    named.as_ref().map(|(_, id)| id.clone())
}
