//! The watches of the kinds that Clusters refer to, of which templates use objects: started while a Cluster refers to the
//! kind. Metadata is enough to know that an object has changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use capasg_api::capi::{ContractReference, bootstrap_resource, contract_version, crd_name};
use futures::StreamExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt as _,
    core::{ApiResource, DynamicObject, PartialObjectMeta},
    runtime::watcher,
};
use tokio::{sync::watch::Receiver, time::sleep};
use tokio_util::task::AbortOnDropHandle;

use super::{
    index::Seen,
    views::Kind,
    watches::{Source, config},
};

/// The pause before the definition of a kind is read again.
const PAUSE: Duration = Duration::from_secs(5);
/// The same after repeated failures.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

fn reference(kind: &Kind) -> ContractReference {
    ContractReference { api_group: kind.group.clone(), kind: kind.kind.clone(), name: String::new() }
}

fn resource(kind: &Kind, version: &str) -> ApiResource {
    bootstrap_resource(&reference(kind), version)
}

/// Watches the kinds that are wanted. The watches end with the future.
pub(super) async fn follow(source: Source, mut wanted: Receiver<BTreeSet<Kind>>) {
    let mut started: BTreeMap<Kind, AbortOnDropHandle<()>> = BTreeMap::new();
    loop {
        let kinds = wanted.borrow_and_update().clone();
        started.retain(|kind, _| kinds.contains(kind));
        for kind in kinds {
            let task = || AbortOnDropHandle::new(tokio::spawn(watch(source.clone(), kind.clone())));
            started.entry(kind.clone()).or_insert_with(task);
        }
        if wanted.changed().await.is_err() {
            return;
        }
    }
}

/// Watches one kind. After each error its version is determined again: it may have changed.
async fn watch(source: Source, kind: Kind) {
    let mut pause = PAUSE;
    loop {
        match version(&source, &kind).await {
            Ok(Some(version)) => {
                if follow_kind(&source, &kind, &version).await {
                    pause = PAUSE;
                }
            }
            Ok(None) => {
                tracing::debug!(group = kind.group, kind = kind.kind, "a kind has no CRD with a contract");
            }
            Err(error) => tracing::warn!(%error, group = kind.group, kind = kind.kind, "cannot read a CRD"),
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn version(source: &Source, kind: &Kind) -> Result<Option<String>, kube::Error> {
    let api: Api<CustomResourceDefinition> = Api::all(source.client.clone());
    let found = api.get_metadata_opt(&crd_name(&reference(kind))).await?;
    Ok(found.and_then(|found| contract_version(found.labels()).map(str::to_owned)))
}

/// Sends events until an error; whether there were any.
async fn follow_kind(source: &Source, kind: &Kind, version: &str) -> bool {
    let api: Api<PartialObjectMeta<DynamicObject>> = source.dynamic(&resource(kind, version));
    let mut stream = std::pin::pin!(watcher::watcher(api, config()));
    let mut any = false;
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => {
                any |= matches!(event, watcher::Event::InitDone);
                let _ = source.events.send(Seen::Referenced(kind.clone(), event)).await;
            }
            Err(error) => {
                tracing::warn!(%error, group = kind.group, kind = kind.kind, "a watch failed and is restarted");
                return any;
            }
        }
    }
    any
}
