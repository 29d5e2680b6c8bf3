//! The changes that an adoption makes.

use capasg_api::{names::tags::OWNER_ID, pool::PendingChange};
use capasg_cloud::{Capacity, Group, TemplateRef};

use crate::machine_pool::decide::capacity::replica_handover;
use crate::machine_pool::decide::launch_template::Pin;
use crate::machine_pool::decide::pending::{change, in_place, outdates, sorted};
use crate::machine_pool::decide::settings::{self, LAUNCH_TEMPLATE, tag_path};
use crate::machine_pool::model::{Desired, Input, counted, instances};

/// The changes that the adoption makes, by path.
pub(super) fn changes(input: &Input<'_>, group: &Group) -> Vec<PendingChange> {
    let desired = Desired { previews: false, ..input.desired.clone() };
    let input = Input { desired: &desired, ..*input };
    let pin = Pin::Version(TemplateRef { id: desired.template.clone(), version: Some(1) });
    let compared = settings::compare(&input, group, &pin, false).comparison(&input);
    let runs = instances::live_listed(group);
    let adopts = format!("Adopts {}", counted(runs, "instance"));
    let mut changes = Vec::new();
    for difference in compared.differences {
        changes.push(if difference.path == LAUNCH_TEMPLATE {
            change(LAUNCH_TEMPLATE, &difference.seen, &desired.template, outdates(runs))
        } else if difference.path == tag_path(OWNER_ID) {
            change(&difference.path, &difference.seen, &difference.wanted, adopts.clone())
        } else {
            change(&difference.path, &difference.seen, &difference.wanted, in_place())
        });
    }
    let (have, Capacity { min, max, .. }) = (group.capacity, replica_handover::at_creation(&desired));
    for (path, seen, wanted) in [(settings::MIN_SIZE, have.min, min), (settings::MAX_SIZE, have.max, max)] {
        if seen != wanted {
            changes.push(change(path, &seen.to_string(), &wanted.to_string(), in_place()));
        }
    }
    sorted(changes)
}
