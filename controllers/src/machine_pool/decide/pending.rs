//! Changes that are reported before they are made: `status.pendingChanges`.

use capasg_api::pool::{MAX_PENDING_CHANGES, PendingChange};

use crate::machine_pool::model::counted;

/// Longest value that is reported, in characters.
const LONGEST: usize = 512;

/// A change, with its values truncated.
#[must_use]
pub fn change(path: &str, from: &str, to: &str, effect: String) -> PendingChange {
    let shown = |text: &str| text.chars().take(LONGEST).collect::<String>();
    PendingChange { path: shown(path), from: shown(from), to: shown(to), effect }
}

/// The effect of a change that replaces nothing.
#[must_use]
pub fn in_place() -> String {
    "InPlace".to_owned()
}

/// The effect of a change that makes this many instances outdated.
#[must_use]
pub fn outdates(count: usize) -> String {
    format!("Makes {} outdated", counted(count, "instance"))
}

/// Changes by path, as many as the status holds.
#[must_use]
pub fn sorted(mut changes: Vec<PendingChange>) -> Vec<PendingChange> {
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes.truncate(MAX_PENDING_CHANGES);
    changes
}
