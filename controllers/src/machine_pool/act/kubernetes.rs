//! One write to the API server: makes it, records it, and publishes its event.

use crate::Context;
use crate::kubernetes::{DeletionReason, KubeError, KubeWrite};
use crate::machine_pool::act::events;
use crate::machine_pool::model::PoolObjects;
use crate::machine_pool::model::memory::PoolMemory;
use crate::machine_pool::model::memory::record::Entry;

/// Makes a write.
pub async fn write(
    context: &Context,
    objects: &PoolObjects,
    write: &KubeWrite,
    memory: &mut PoolMemory,
) -> Result<(), KubeError> {
    let resource_version = match context.kubernetes.write(write).await {
        Ok(resource_version) => resource_version,
        Err(error) => {
            memory.record(Entry::NotWritten { write, error: &error }, context.clock.now());
            let is_done = matches!(error, KubeError::NotFound { .. }) && is_done_without_object(write);
            return if is_done { Ok(()) } else { Err(error) };
        }
    };
    let resource_version = resource_version.as_deref();
    memory.record(Entry::Written { write, resource_version }, context.clock.now());
    events::written(context, objects, write).await;
    Ok(())
}

/// Whether a write deletes an object, which cannot be undone.
pub fn is_deletion(write: &KubeWrite) -> bool {
    matches!(write, KubeWrite::DeleteMachine { .. } | KubeWrite::DeleteAsgMachine { .. })
}

/// Whether a write takes an instance away that works: how many may go is counted.
pub fn is_disruption(write: &KubeWrite) -> bool {
    let KubeWrite::DeleteMachine { reason, .. } = write else { return false };
    match reason {
        DeletionReason::ScaleIn | DeletionReason::Outdated | DeletionReason::Unhealthy => true,
        DeletionReason::Terminated | DeletionReason::PoolDeleted => false,
    }
}

/// Whether a write is an annotation that later steps depend on.
pub fn is_annotation(write: &KubeWrite) -> bool {
    matches!(
        write,
        KubeWrite::RemoveNothingCreated { .. }
            | KubeWrite::AnnotateBlockMove { blocked: true, .. }
            | KubeWrite::AnnotateTerminationRequested { .. }
            | KubeWrite::AnnotateDeleteMachine { .. }
            | KubeWrite::AnnotateRolloutStopped { .. }
    )
}

/// Whether the write is unnecessary if the object is deleted already.
fn is_done_without_object(write: &KubeWrite) -> bool {
    matches!(
        write,
        KubeWrite::DeleteMachine { .. }
            | KubeWrite::DeleteAsgMachine { .. }
            | KubeWrite::RemoveAsgMachineFinalizer { .. }
            | KubeWrite::AnnotateDeleteMachine { .. }
            | KubeWrite::AnnotateExcludeNodeDraining { .. }
            | KubeWrite::AnnotateDesiredState { .. }
            | KubeWrite::AnnotateBlockMove { blocked: false, .. }
            | KubeWrite::PatchMachineTimeouts { .. }
            | KubeWrite::PatchMachineOwners { .. }
    )
}
