//! The Cluster controller's part in deletion: `MachinePool`s first, then the Cluster.

use super::State;
use crate::api_server::{self, Expect};

/// Core's finalizer on a Cluster.
pub(crate) const FINALIZER: &str = "cluster.cluster.x-k8s.io";

impl State {
    pub(super) fn clusters(api: &mut api_server::State) {
        for (key, cluster) in api.clusters.all() {
            if !cluster.is_deleting() || cluster.is_paused() {
                continue;
            }
            let pools = api.machine_pools.all();
            let own: Vec<_> = pools
                .into_iter()
                .filter(|(pool, object)| {
                    pool.namespace == key.namespace && object.spec.cluster_name == key.name
                })
                .collect();
            let api_server::State { ledger, machine_pools, clusters, .. } = api;
            for (pool, _) in &own {
                // Gone meanwhile is as good.
                let _ = machine_pools.delete(ledger, pool, Expect::default());
            }
            if own.is_empty() {
                let _ = clusters.update(ledger, &key, Expect::default(), |cluster| {
                    cluster.metadata.finalizers = Some(Vec::new());
                });
            }
        }
    }
}
