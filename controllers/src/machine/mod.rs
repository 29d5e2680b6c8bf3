//! ASGMachines are the pool controller's business, as long as there is a pool. This looks after those without one.

use std::time::Duration;

use capasg_api::{
    ASGMachine, ASGMachinePool,
    capi::{pause_state, pool_owner_of_machine},
    names::{finalizers, labels},
};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{ObjectKey, client::Caches};

/// How often orphans are looked for: they exist only after somebody took the pool's finalizer away by hand.
const EVERY: Duration = Duration::from_mins(1);

/// Takes our finalizer off ASGMachines that are being deleted while their pool does not exist any more: nobody else
/// would, and the namespace could never be deleted.
pub async fn release_orphans(client: Client, caches: Caches, shutdown: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = shutdown.cancelled() => return,
        }
        for machine in caches.asg_machines.state_filter(|machine| is_orphan(&caches, machine)) {
            if let Err(error) = release(&client, &machine).await {
                tracing::warn!(%error, machine = %ObjectKey::of(machine.as_ref()), "an orphan could not be released");
            }
        }
    }
}

fn is_orphan(caches: &Caches, machine: &ASGMachine) -> bool {
    let held = machine.finalizers().iter().any(|f| f == finalizers::MACHINE);
    if machine.metadata.deletion_timestamp.is_none() || !held {
        return false;
    }
    let namespace = machine.namespace().unwrap_or_default();
    let cluster = machine.labels().get(labels::CLUSTER_NAME);
    let cluster = cluster.and_then(|name| caches.cluster(&ObjectKey::new(&namespace, name)));
    let paused = pause_state(cluster.as_deref(), machine.annotations()).is_paused();
    let pool = pool_owner_of_machine(machine).map(|owner| ObjectKey::new(&namespace, &owner.name));
    !paused && pool.is_none_or(|pool| caches.pool(&pool).is_none())
}

/// Asks the API server itself before letting go: a cache may lag.
async fn release(client: &Client, machine: &ASGMachine) -> kube::Result<()> {
    let namespace = machine.namespace().unwrap_or_default();
    if let Some(owner) = pool_owner_of_machine(machine) {
        let pools: Api<ASGMachinePool> = Api::namespaced(client.clone(), &namespace);
        if pools.get_metadata_opt(&owner.name).await?.is_some() {
            return Ok(());
        }
    }
    let left: Vec<&String> = machine.finalizers().iter().filter(|f| *f != finalizers::MACHINE).collect();
    let body = json!({"metadata": {"resourceVersion": machine.resource_version(), "finalizers": left}});
    let machines: Api<ASGMachine> = Api::namespaced(client.clone(), &namespace);
    machines
        .patch_metadata(&machine.name_any(), &PatchParams::default(), &Patch::Merge(body))
        .await
        .map(|_| ())
}
