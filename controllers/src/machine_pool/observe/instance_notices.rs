//! The AWS events about single instances: those that the inventory received, and those that a status reports, which
//! survive a restart.

use crate::machine_pool::model::Machines;
use std::collections::BTreeMap;

use capasg_api::{
    ASGMachine, conditions,
    reasons::{termination_pending, up_to_date},
};
use capasg_cloud::{Inventory, NoticeKind};

use crate::machine_pool::model::PoolInstance;
use crate::machine_pool::model::instance_notice::accepted;

/// Sets the AWS event that counts for each instance.
pub fn set_notices(
    inventory: &Inventory,
    machines: &Machines,
    instances: &mut BTreeMap<String, PoolInstance>,
) {
    let mut reports: BTreeMap<&str, NoticeKind> = BTreeMap::new();
    for machine in &machines.asg_machines {
        if let Some(kind) = reported(machine) {
            reports.insert(&machine.spec.instance_id, kind);
        }
    }
    for (id, instance) in instances {
        let received = inventory.instance_notice(id).map(|notice| notice.kind);
        let reported = reports.get(id.as_str()).copied();
        (instance.notice, instance.notice_is_unverified) =
            accepted(received, reported, instance.ec2.as_ref());
        instance.notice_is_reported = instance.notice.is_some() && instance.notice == reported;
    }
}

/// The event that the status reports. Its message is deleted from the queue once it is reported.
fn reported(machine: &ASGMachine) -> Option<NoticeKind> {
    let conditions = &machine.status.as_ref()?.conditions;
    let reason = |kind: &str, status: &str| {
        let condition = conditions::get(conditions, kind).filter(|one| one.status == status);
        condition.map(|condition| condition.reason.as_str())
    };
    if reason(conditions::TERMINATION_PENDING, "True") == Some(termination_pending::SPOT_INTERRUPTION) {
        return Some(NoticeKind::SpotInterruption);
    }
    match reason(conditions::UP_TO_DATE, "False") {
        Some(up_to_date::RETIREMENT_SCHEDULED) => Some(NoticeKind::ScheduledRetirement),
        Some(up_to_date::REBALANCE_RECOMMENDED) => Some(NoticeKind::RebalanceRecommendation),
        _ => None,
    }
}
