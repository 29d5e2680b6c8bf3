//! What a deletion waits for: condition `Deleting`. Pure.

use capasg_api::{
    conditions::{DELETING, Finding},
    names::TERMINATE_HOOK,
    reasons::deleting,
};

use crate::machine_pool::model::{DeletionPhase, Observed};
use crate::machine_pool::report::input::Input;
use crate::machine_pool::report::text::{paused_text, some_of};

/// At most this many characters of what core reports about a Machine are shown.
const MAX_PROGRESS: usize = 512;

/// What core reports about the deletion of one of the Machines; of one that a PodDisruptionBudget blocks, if there is one.
fn deletion_progress(observed: &Observed) -> Option<String> {
    let machines = observed.instances.values().filter_map(|instance| instance.machine.as_ref());
    let machines = machines.chain(&observed.unmatched_machines);
    let all: Vec<(&str, &str)> = machines
        .filter_map(|machine| Some((machine.name.as_str(), machine.deletion_progress.as_deref()?)))
        .collect();
    let blocked = all.iter().find(|(_, progress)| progress.contains("disruption budget"));
    let (name, progress) = blocked.or(all.first())?;
    let shown: String = progress.chars().take(MAX_PROGRESS).collect();
    let rest = if shown.len() < progress.len() { "..." } else { "" };
    Some(format!(". Machine {name}: {shown}{rest}"))
}

/// Condition `Deleting`.
#[must_use]
pub fn deleting(input: &Input<'_>) -> Finding {
    if !input.objects.is_deleting() {
        return Finding::plain(DELETING, false, deleting::NOT_DELETING);
    }
    let (reason, message) = match &input.plan.deletion {
        None => (deleting::DELETING, String::new()),
        Some(DeletionPhase::DrainingMachines(names)) => {
            let noun = if names.len() == 1 { "Machine" } else { "Machines" };
            let progress = input.observed.and_then(deletion_progress).unwrap_or_default();
            let paused =
                input.observed.map(|observed| paused_text(observed.instances.iter())).unwrap_or_default();
            let message = format!("waiting for {noun} {} to be deleted{progress}{paused}", some_of(names));
            (deleting::DRAINING_MACHINES, message)
        }
        Some(DeletionPhase::DeletingGroup)
            if input.desired.is_some_and(|desired| desired.orphan_on_deletion) =>
        {
            let message = format!(
                "waiting for the lifecycle hook {TERMINATE_HOOK} to be deleted; the Auto Scaling group is kept"
            );
            (deleting::DELETING_LIFECYCLE_HOOK, message)
        }
        Some(DeletionPhase::DeletingGroup) => {
            (deleting::DELETING_GROUP, "waiting for the Auto Scaling group to be deleted".to_owned())
        }
        Some(DeletionPhase::DeletingLaunchTemplate) => {
            (deleting::DELETING_LAUNCH_TEMPLATE, "deleting the launch template".to_owned())
        }
        Some(DeletionPhase::Done) => (deleting::DELETION_COMPLETED, String::new()),
    };
    Finding::new(DELETING, true, reason, message)
}
