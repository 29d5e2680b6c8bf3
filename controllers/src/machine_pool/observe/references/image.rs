//! Resolves the image of a spec: an ID, or the parameter that holds one.

use capasg_api::{
    ASGMachinePool,
    capi::MachinePool,
    conditions::{Finding, LAUNCH_TEMPLATE_READY, Status},
    pool::ImageUpdatePolicy,
    reasons::{INTERNAL_ERROR, launch_template_ready::IMAGE_NOT_FOUND},
};
use capasg_cloud::{CloudError, ErrorClass};

use super::{place::Place, unread};
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
        let parameter = image.ssm_parameter_for(owner.version());
        let mut unnamed = None;
        let id = match (&image.id, pinned) {
            (Some(id), _) => id.clone(),
            (None, Some(pinned)) => {
                if let Ok(Some(name)) = &parameter {
                    unnamed = named_now(place, name, named).await.err();
                    self.available_image = named.as_ref().map(|(_, id)| id.clone());
                }
                let rolls_out = image.update_policy() == ImageUpdatePolicy::RollOut;
                let available = self.available_image.clone().filter(|_| rolls_out);
                let id = available.unwrap_or_else(|| pinned.to_owned());
                self.update_problem =
                    unnamed.as_ref().filter(|_| rolls_out).and_then(|why| why.stops_updates(&id));
                id
            }
            (None, None) => {
                let name = match &parameter {
                    Err(error) => {
                        return self.miss(LAUNCH_TEMPLATE_READY, IMAGE_NOT_FOUND, error.to_string());
                    }
                    Ok(None) => return,
                    Ok(Some(name)) => name,
                };
                match named_now(place, name, named).await {
                    Ok(id) => id,
                    Err(Unnamed::Unread { error, .. }) => {
                        let what = format!("SSM parameter {name}");
                        return self.fail(LAUNCH_TEMPLATE_READY, &what, place, &error);
                    }
                    Err(Unnamed::Absent(message) | Unnamed::Invalid(message)) => {
                        return self.miss(LAUNCH_TEMPLATE_READY, IMAGE_NOT_FOUND, message);
                    }
                }
            }
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
                let parameter = parameter.ok().flatten().filter(|_| image.id.is_none());
                let message = match (parameter, &self.available_image) {
                    (None, _) => format!("{missing}. Correct spec.machine.image; {origin}."),
                    (Some(_), _) if let Some(why) = &unnamed => {
                        format!("{missing}. {}.", why.message().trim_end_matches('.'))
                    }
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
}

/// Why a parameter names no image, with what to do.
enum Unnamed {
    /// It does not exist.
    Absent(String),
    /// It holds something else.
    Invalid(String),
    /// It cannot be read.
    Unread {
        /// The error.
        error: Box<CloudError>,
        /// The error with the parameter and the region.
        message: String,
    },
}

impl Unnamed {
    fn message(&self) -> &str {
        match self {
            Self::Absent(message) | Self::Invalid(message) | Self::Unread { message, .. } => message,
        }
    }

    /// What is reported of a pool that rolls out each image that the parameter names, and keeps `image` meanwhile. A transient
    /// failure is retried.
    fn stops_updates(&self, image: &str) -> Option<Finding> {
        let (status, reason) = match self {
            Self::Unread { error, .. } if !error.class.is_permanent() => return None,
            Self::Unread { .. } => (Status::Unknown, INTERNAL_ERROR),
            Self::Absent(_) | Self::Invalid(_) => (Status::False, IMAGE_NOT_FOUND),
        };
        let why = self.message().trim_end_matches('.');
        let message =
            format!("{why}. No new image is rolled out, and the group continues to launch {image}.");
        Some(Finding::new(LAUNCH_TEMPLATE_READY, status, reason, message))
    }
}

/// The image ID that a parameter holds.
async fn image_of_parameter(place: &Place<'_>, name: &str) -> Result<String, Unnamed> {
    match place.inventory.parameter(name).await {
        Ok(Some(id)) => Ok(id),
        Ok(None) => Err(Unnamed::Absent(format!(
            "SSM parameter {name} does not exist in {}. Correct spec.machine.image.ssmParameter or \
             spec.template.spec.version of the MachinePool; {}.",
            place.name().await,
            place.origin().await
        ))),
        Err(error) if error.class == ErrorClass::Invalid => Err(Unnamed::Invalid(format!(
            "{}. Correct the parameter, or spec.machine.image.ssmParameter.",
            error.message.trim_end_matches('.')
        ))),
        Err(error) => {
            let message = unread(&format!("SSM parameter {name}"), place, &error);
            Err(Unnamed::Unread { error: Box::new(error), message })
        }
    }
}

/// The image of the parameter that the previous leader reported.
#[must_use]
pub fn reported_image(pool: &ASGMachinePool, version: Option<&str>) -> Option<String> {
    pool.spec.machine.image.ssm_parameter_for(version).ok()??;
    pool.status.as_ref()?.image.as_ref()?.available_id.clone()
}

/// The image that the parameter names now, which is recorded in `named`. If it cannot be read, that remains the one that was
/// read last, so that the desired state does not alternate.
async fn named_now(place: &Place<'_>, name: &str, named: &mut Option<NamedImage>) -> Result<String, Unnamed> {
    match image_of_parameter(place, name).await {
        Ok(id) => {
            *named = Some((name.to_owned(), id.clone()));
            Ok(id)
        }
        Err(why) => {
            tracing::debug!(why = why.message(), name, "the SSM parameter names no image");
            let is_absent = matches!(why, Unnamed::Absent(_));
            named.take_if(|(known, _)| is_absent || *known != name);
            Err(why)
        }
    }
}
