//! Scale-in protection of single instances.

use super::{Lifecycle, instance_not_found, membership, modifiable};
use crate::{ApiError, Tree, region::Region};

pub(crate) fn set(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    let name = params.text_of("AutoScalingGroupName").unwrap_or_default().to_owned();
    let ids = params.texts_of("InstanceIds");
    let protect = params.flag_of("ProtectedFromScaleIn") == Some(true);
    if ids.len() > 50 {
        return Err(ApiError::validation(
            "The number of instance ids that may be passed in is limited to 50",
        ));
    }
    modifiable(region, &name)?.blocked_at = None;
    for id in &ids {
        let own =
            membership(region, id).filter(|own| own.group == name).ok_or_else(|| instance_not_found(id))?;
        let states = [Lifecycle::InService, Lifecycle::EnteringStandby, Lifecycle::Standby];
        if !states.contains(&own.lifecycle) {
            return Err(ApiError::validation(format!(
                "The instance {id} is not in InService or EnteringStandby or Standby."
            )));
        }
    }
    for id in &ids {
        if let Some(own) = membership(region, id) {
            own.protected = protect;
        }
    }
    // A scale-in that protection held up may go on now.
    region.reconsider(&name);
    Ok(Tree::new())
}
