//! The changes that an adoption makes.

use capasg_api::pool::PendingChange;
use capasg_cloud::{Capacity, Group, TemplateRef};

use crate::machine_pool::decide::capacity::replica_handover;
use crate::machine_pool::decide::launch_template::Pin;
use crate::machine_pool::decide::pending::{change, in_place, outdates, sorted};
use crate::machine_pool::decide::settings::{self, LAUNCH_TEMPLATE};
use crate::machine_pool::model::{Desired, Input, counted, instances};

/// The changes that the adoption makes, by path.
pub(super) fn changes(input: &Input<'_>, group: &Group) -> Vec<PendingChange> {
    let desired = Desired { previews: false, ..input.desired.clone() };
    let input = Input { desired: &desired, ..*input };
    let pin = Pin::Version(TemplateRef { id: desired.template.clone(), version: Some(1) });
    let compared = settings::compare(&input, group, &pin, false).comparison(&input);
    let runs = instances::live_listed(group);
    let mut changes = vec![change(
        "Auto Scaling group",
        &format!("{}, without an owner", group.name),
        "owned by this pool",
        format!("Adopts {}", counted(runs, "instance")),
    )];
    for difference in compared.differences {
        changes.push(if difference.path == LAUNCH_TEMPLATE {
            change(LAUNCH_TEMPLATE, &difference.seen, &desired.template, outdates(runs))
        } else {
            change(&difference.path, &difference.seen, &difference.wanted, in_place())
        });
    }
    let (have, Capacity { min, max, .. }) = (group.capacity, replica_handover::at_creation(&desired));
    for (path, seen, wanted) in
        [("status.group.minSize", have.min, min), ("status.group.maxSize", have.max, max)]
    {
        if seen != wanted {
            changes.push(change(path, &seen.to_string(), &wanted.to_string(), in_place()));
        }
    }
    sorted(changes)
}
