//! Storage versions: our objects that are stored in an older version are rewritten, and the version is removed from the
//! definition, so that a later release may drop it (rule K14). clusterctl does this for no provider, core only for itself.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use capasg_api::errors::of_request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, Error, ResourceExt as _,
    api::{ApiResource, ListParams, Patch, PatchParams},
    core::DynamicObject,
};
use serde_json::json;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::errors;

/// Objects are listed in pages of this many.
const PAGE: u32 = 500;
/// How long to wait after a failure: nothing depends on the migration.
const AGAIN: Duration = Duration::from_mins(1);
/// How long a definition must have had its storage version, so that every API server writes it.
const SETTLED: Duration = Duration::from_secs(10);

/// Migrates each of our kinds, one after the other, until all are done. Without anything to do this is one read per kind.
///
/// For the leader alone: other replicas would only repeat its writes.
pub async fn migrate(client: Client) {
    for definition in capasg_api::crd::crds() {
        let name = definition.name_any();
        while let Err(error) = migrate_kind(&client, &name, SETTLED).await {
            let error = errors::line(&error);
            warn!(name, error, retry = ?AGAIN, "failed to migrate the stored objects to the storage version");
            sleep(AGAIN).await;
        }
    }
}

async fn migrate_kind(client: &Client, name: &str, settled: Duration) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let Some(definition) = definitions.get_opt(name).await.context("cannot read the definition")? else {
        return Ok(());
    };
    let Some(stored) = outdated(&definition) else { return Ok(()) };
    info!(name, ?stored, "rewriting the objects of older versions");
    // An API server that has not observed the definition yet would write the old version again.
    sleep(settled).await;

    let version =
        storage_version(&definition).context("the CustomResourceDefinition has no storage version")?;
    let kind = resource(&definition, version);
    let rewritten = rewrite(client, &kind).await?;

    // Only if the definition is as it was when the objects were rewritten.
    let patch = json!({
        "metadata": {"resourceVersion": definition.resource_version()},
        "status": {"storedVersions": [version]},
    });
    definitions
        .patch_status(name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .context("cannot remove the old versions from the definition")?;
    info!(name, version, rewritten, "all objects are stored in the storage version");
    Ok(())
}

/// Writes each object as it is; the API server stores it in the storage version. Returns how many there are.
async fn rewrite(client: &Client, kind: &ApiResource) -> Result<usize> {
    let all: Api<DynamicObject> = Api::all_with(client.clone(), kind);
    let mut params = ListParams::default().limit(PAGE);
    let (mut rewritten, mut failed) = (0, Vec::new());
    loop {
        let page = all.list_metadata(&params).await.context("cannot list the objects")?;
        for object in &page.items {
            let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
            let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, kind);
            // A patch that changes nothing is written if and only if the stored bytes would differ.
            match api.patch(&name, &PatchParams::default(), &Patch::Merge(json!({}))).await {
                Ok(_) => rewritten += 1,
                // It was deleted meanwhile.
                Err(Error::Api(status)) if status.code == 404 => {}
                Err(error) => failed.push(format!("{namespace}/{name}: {}", of_request(&error))),
            }
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    ensure!(failed.is_empty(), "{} objects could not be rewritten: {}", failed.len(), failed.join("; "));
    Ok(rewritten)
}

/// The versions that objects may still be stored in besides the one that is written now; `None` if there are none.
fn outdated(definition: &CustomResourceDefinition) -> Option<Vec<String>> {
    let now = storage_version(definition)?;
    let mut stored = definition.status.as_ref()?.stored_versions.clone()?;
    stored.retain(|version| version != now);
    (!stored.is_empty()).then_some(stored)
}

fn storage_version(definition: &CustomResourceDefinition) -> Option<&str> {
    definition.spec.versions.iter().find(|version| version.storage).map(|version| version.name.as_str())
}

fn resource(definition: &CustomResourceDefinition, version: &str) -> ApiResource {
    let spec = &definition.spec;
    ApiResource {
        group: spec.group.clone(),
        version: version.to_owned(),
        api_version: format!("{}/{version}", spec.group),
        kind: spec.names.kind.clone(),
        plural: spec.names.plural.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(storage: &str, stored: &[&str]) -> CustomResourceDefinition {
        let version = |name: &str| json!({"name": name, "served": true, "storage": name == storage});
        serde_json::from_value(json!({
            "metadata": {},
            "spec": {
                "group": "g", "names": {"kind": "K", "plural": "ks"}, "scope": "Namespaced",
                "versions": [version("v1"), version("v2")],
            },
            "status": {"storedVersions": stored, "conditions": [], "acceptedNames": {"kind": "", "plural": ""}},
        }))
        .unwrap()
    }

    // Rules: K14
    #[test]
    fn older_stored_versions_are_seen() {
        assert_eq!(outdated(&definition("v1", &["v1"])), None);
        assert_eq!(outdated(&definition("v2", &["v1", "v2"])), Some(vec!["v1".to_owned()]));
        // Written back by an older release.
        assert_eq!(outdated(&definition("v1", &["v1", "v2"])), Some(vec!["v2".to_owned()]));
        assert_eq!(outdated(&definition("v2", &[])), None);
    }
}
