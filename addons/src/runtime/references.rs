//! The watches of what other objects refer to: the kinds of Clusters' references, of which templates use objects, and
//! `ConfigMaps` and Secrets with archives of charts or values. Each runs while an object refers to it. Metadata is enough to
//! know that an object has changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use capasg_api::{
    capi::{ContractReference, bootstrap_resource, contract_version, crd_name},
    errors,
};
use futures::StreamExt as _;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt as _,
    core::{ApiResource, DynamicObject, PartialObjectMeta},
    runtime::watcher::{self, Config},
};
use tokio::{sync::watch::Receiver, time::sleep};
use tokio_util::task::AbortOnDropHandle;

use super::{
    index::Seen,
    views::{Kind, Referenced},
    watches::{Source, config},
};
use crate::decide::{LocalKind, LocalReference};

/// The pause before the definition of a kind is read again.
const PAUSE: Duration = Duration::from_secs(5);
/// The same after repeated failures.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Objects of any kind, with their metadata alone.
type Objects = Api<PartialObjectMeta<DynamicObject>>;

fn reference(kind: &Kind) -> ContractReference {
    ContractReference { api_group: kind.group.clone(), kind: kind.kind.clone(), name: String::new() }
}

/// Watches what is in use. The watches end with the future.
pub(super) async fn follow(source: Source, mut in_use: Receiver<BTreeSet<Referenced>>) {
    let mut started: BTreeMap<Referenced, AbortOnDropHandle<()>> = BTreeMap::new();
    loop {
        let all = in_use.borrow_and_update().clone();
        started.retain(|referenced, _| all.contains(referenced));
        for referenced in all {
            let task = || AbortOnDropHandle::new(tokio::spawn(watch(source.clone(), referenced.clone())));
            started.entry(referenced.clone()).or_insert_with(task);
        }
        if in_use.changed().await.is_err() {
            return;
        }
    }
}

/// Watches one of them. After each error the version of a kind is determined again: it may have changed.
async fn watch(source: Source, referenced: Referenced) {
    let mut pause = PAUSE;
    loop {
        match watched(&source, &referenced).await {
            Ok(Some((api, config))) => {
                if follow_one(&source, &referenced, api, config).await {
                    pause = PAUSE;
                }
            }
            Ok(None) => tracing::debug!(?referenced, "a kind has no CRD with a contract"),
            Err(error) => {
                let error = errors::of_request(&error);
                tracing::warn!(error, ?referenced, "cannot read a CRD");
            }
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// What a watch requests: none if the kind has no version with a contract.
async fn watched(source: &Source, referenced: &Referenced) -> Result<Option<(Objects, Config)>, kube::Error> {
    Ok(match referenced {
        Referenced::Kind(kind) => version(source, kind)
            .await?
            .map(|version| (source.dynamic(&bootstrap_resource(&reference(kind), &version)), config())),
        Referenced::Object { namespace, reference: LocalReference { kind, name } } => {
            let resource = match kind {
                LocalKind::ConfigMap => ApiResource::erase::<ConfigMap>(&()),
                LocalKind::Secret => ApiResource::erase::<Secret>(&()),
            };
            let api = Api::namespaced_with(source.client.clone(), namespace, &resource);
            Some((api, config().fields(&format!("metadata.name={name}"))))
        }
    })
}

async fn version(source: &Source, kind: &Kind) -> Result<Option<String>, kube::Error> {
    let api: Api<CustomResourceDefinition> = Api::all(source.client.clone());
    let found = api.get_metadata_opt(&crd_name(&reference(kind))).await?;
    Ok(found.and_then(|found| contract_version(found.labels()).map(str::to_owned)))
}

/// Sends events until an error; whether there were any.
async fn follow_one(source: &Source, referenced: &Referenced, api: Objects, config: Config) -> bool {
    let mut stream = std::pin::pin!(watcher::watcher(api, config));
    let mut any = false;
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => {
                any |= matches!(event, watcher::Event::InitDone);
                let _ = source.events.send(Seen::Referenced(referenced.clone(), event)).await;
            }
            Err(error) => {
                let error = errors::of_watch(&error);
                tracing::warn!(error, ?referenced, "a watch failed and is restarted");
                return any;
            }
        }
    }
    any
}
