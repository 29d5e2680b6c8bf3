//! The facts from AWS that only report requires: why launches fail, why AWS terminates instances, the instance types.
//! No decision depends on them.

use std::collections::BTreeMap;

use capasg_cloud::{CloudError, Inventory, ScalingActivity, TerminationCause};

use crate::Context;
use crate::machine_pool::model::memory::launch_watch::show_launches;
use crate::machine_pool::model::{Observation, ReportNeeds, ReportReads};

/// Reads what report requires. A failure is reported as well.
pub async fn read_for_report(
    context: &Context,
    observation: &Observation,
    needs: &ReportNeeds,
) -> ReportReads {
    let (Some(facts), Some(place)) = (observation.facts(), observation.objects.place()) else {
        return ReportReads::default();
    };
    let inventory = context.inventories.inventory(&place);
    let group = &facts.desired.group;
    let mut reads = ReportReads { queue: Some(inventory.queue()), ..ReportReads::default() };
    if needs.launch_activities {
        reads.launch_activities = Some(activities(&inventory, group, show_launches).await);
    }
    if needs.instance_types {
        let types = observation.pool().spec.instance_type_names();
        reads.instance_types = Some(inventory.instance_types(&types).await);
    }
    if !needs.termination_causes.is_empty() {
        reads.termination_causes = termination_causes(&inventory, group, &needs.termination_causes).await;
    }
    reads
}

/// Why AWS terminates these instances. A read that fails is not repeated: the termination is reported without its
/// cause.
async fn termination_causes(
    inventory: &Inventory,
    group: &str,
    instances: &[String],
) -> BTreeMap<String, TerminationCause> {
    let of = |id: &String, listed: &[ScalingActivity]| {
        listed.iter().find(|activity| activity.is_termination_of(id)).map(TerminationCause::of)
    };
    // Those of instances that terminate are in progress, which AWS lists first.
    let enough = |listed: &[ScalingActivity]| {
        let is_past = listed.last().is_some_and(|last| last.status.is_finished());
        is_past || instances.iter().all(|id| of(id, listed).is_some())
    };
    let read = activities(inventory, group, enough).await;
    let cause = |id: &String| match &read {
        Ok(activities) => of(id, activities).unwrap_or(TerminationCause::Unknown),
        Err(_) => TerminationCause::Unread,
    };
    instances.iter().map(|id| (id.clone(), cause(id))).collect()
}

async fn activities(
    inventory: &Inventory,
    group: &str,
    enough: impl Fn(&[ScalingActivity]) -> bool,
) -> Result<Vec<ScalingActivity>, CloudError> {
    let read = inventory.scaling_activities(group, enough).await;
    if let Err(error) = &read {
        tracing::warn!(api = error.api, code = %error.code, error_message = %error.message, "failed to read the scaling activities");
    }
    read
}
