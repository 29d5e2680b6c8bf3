//! The `Paused` condition, with the same messages as on core's own kinds (F2).

use super::{Finding, PAUSED};
use crate::{capi::PauseState, reasons};

/// The condition `Paused` of an object of `kind`.
#[must_use]
pub fn paused(state: PauseState, kind: &str) -> Finding {
    let mut causes = Vec::new();
    if state.cluster {
        causes.push("Cluster spec.paused is set to true".to_owned());
    }
    if state.annotation {
        causes.push(format!("{kind} has the cluster.x-k8s.io/paused annotation"));
    }
    if state.delete_for_move {
        causes.push(format!("{kind} has the clusterctl.cluster.x-k8s.io/delete-for-move annotation"));
    }
    if causes.is_empty() {
        Finding::plain(PAUSED, false, reasons::paused::NOT_PAUSED)
    } else {
        Finding::new(PAUSED, true, reasons::paused::PAUSED, causes.join(", "))
    }
}
