//! M: `clusterctl move` of a pool that has settled, to a second management cluster; both managers run all the time.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use capasg_api::names::annotations;
use capasg_e2e::{Rig, Setup, condition, eventually, rule, target};
use capasg_environment::{Look, Runner};
use kube::{
    ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

const NEW_IMAGE: &str = "ami-0b1c2d3e";

/// The kinds that make up a cluster and its pools.
const KINDS: [&str; 7] = [
    "clusters.cluster.x-k8s.io",
    "machinepools.cluster.x-k8s.io",
    "machines.cluster.x-k8s.io",
    "asgmachinepools",
    "asgmachines",
    "stubcontrolplanes.controlplane.cluster.x-k8s.io",
    "secrets",
];

/// All objects by kind and name, with the kinds and names of their owners, and what they ask for.
async fn objects(kubectl: &Runner, namespace: &str) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for kind in KINDS {
        let list = kubectl.run(["get", kind, "--output=json", "--namespace", namespace]).await?;
        let list: Value = serde_json::from_str(&list)?;
        for item in list["items"].as_array().into_iter().flatten() {
            let owners = item["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
            let mut owners: Vec<Value> = owners
                .iter()
                .map(|owner| json!([owner["kind"], owner["name"], owner["controller"]]))
                .collect();
            owners.sort_by_key(Value::to_string);
            let metadata = &item["metadata"];
            let mut spec = item["spec"].clone();
            if let Some(spec) = spec.as_object_mut() {
                spec.remove("paused");
            }
            all.insert(
                format!("{kind}/{}", metadata["name"].as_str().unwrap_or_default()),
                json!({"owners": owners, "spec": spec, "finalizers": metadata["finalizers"], "labels": metadata["labels"]}),
            );
        }
    }
    Ok(all)
}

/// Whoever else acted on the cloud since: nobody but the manager on the target may.
fn strangers(rig: &Rig<'_>, mark: u64) -> Vec<String> {
    let calls = rig.mutations_since(mark).into_iter();
    calls
        .filter(|call| call.access_key.as_deref() != Some(target::ACCESS_KEY))
        .map(|call| format!("{:?} {} {:?}", call.access_key, call.action, call.instances))
        .collect()
}

/// An identity with an access key that it owns, and a guard: their kinds, names and namespaces.
async fn operators_objects(rig: &Rig<'_>) -> Result<[(&'static str, String, String); 3]> {
    let secret = format!("{}-moved", rig.scenario.namespace);
    let home = rig.manager_namespace().to_owned();
    let identity = rig.identity("moved", &json!({"type": "Secret", "secret": {"name": secret}})).await?;
    let uid =
        rig.scenario.kubectl(&["get", "asgidentity", &identity, "--output=jsonpath={.metadata.uid}"]).await?;
    let object = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": secret, "namespace": home, "ownerReferences": [{
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "ASGIdentity", "name": identity, "uid": uid,
        }]},
        "stringData": {"AccessKeyID": "AKIA444455556666MOVE", "SecretAccessKey": "simulated"},
    });
    let kubectl = rig.scenario.environment.management().api().kubectl();
    kubectl.feed(["apply", "--filename=-"], &object.to_string()).await?;
    let guard = rig.guard("moved", &json!({"sshKeyNames": ["ops"]})).await?;
    let nowhere = rig.scenario.namespace.clone();
    Ok([("asgidentity", identity, nowhere.clone()), ("asgguard", guard, nowhere), ("secret", secret, home)])
}

// Rules: M1, M2, M3, M4, M5, M7, M8
#[tokio::test]
async fn moving_a_settled_pool_changes_nothing_in_aws() -> Result<()> {
    rule("m4-move", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        let target = rig.target().await?;
        let source = rig.scenario.environment.management().api().kubectl();
        let namespace = rig.scenario.namespace.as_str();
        let before = rig.pools().get("workers").await?;
        let (group, templates) = (rig.group()?, rig.templates());
        let instances: Vec<String> = rig.instances().into_iter().map(|one| one.id).collect();
        let had = objects(source, namespace).await?;
        let operators = operators_objects(rig).await?;

        // M2: nothing happens in the cloud from here until somebody asks for something.
        let (mark, begun) = (rig.mark(), rig.writes()?.len());
        target.move_here().await?;
        // What operators made comes along, with the access key of an identity.
        for (kind, name, namespace) in &operators {
            // The move of another namespace may have taken the identity along before: clusterctl then creates the Secret with
            // an owner that does not exist there, and the garbage collector deletes it (docs/users/move.md).
            if *kind == "secret" {
                let writes = target.management.api().writes()?;
                let mut of_secret =
                    writes.iter().filter(|write| write.resource == "secrets" && write.name == *name);
                ensure!(of_secret.any(|write| write.code < 300), "clusterctl creates the Secret {name}");
                continue;
            }
            let namespace = format!("--namespace={namespace}");
            target.management.api().kubectl().run(["get", *kind, name.as_str(), &namespace]).await?;
        }
        // M1: what was there is there, with the same owners, and nothing of it is left behind.
        let has = objects(target.management.api().kubectl(), namespace).await?;
        for (name, object) in &had {
            ensure!(has.get(name) == Some(object), "{name} was {object}, is {:?}", has.get(name));
        }
        let left: Vec<String> = objects(source, namespace).await?.into_keys().collect();
        ensure!(left.is_empty(), "left on the source: {left:?}");

        target.running("workers", 2).await?;
        let after = eventually("its status is back", async || {
            let pool = target.pools().get("workers").await?;
            let status = pool.status.clone().unwrap_or_default();
            let same = status.replicas == 2 && status.group.is_some() && status.launch_template.is_some();
            Ok(Look::from_option(same.then_some(pool), format!("{status:?}")))
        })
        .await?;
        ensure!(rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));
        ensure!(rig.group()? == group && rig.templates() == templates);
        ensure!(after.uid() != before.uid() && after.spec == before.spec);
        let owner_id = |pool: &capasg_api::ASGMachinePool| pool.annotations()[annotations::OWNER_ID].clone();
        ensure!(owner_id(&after) == owner_id(&before));
        // M3: the source deleted its objects under our eyes, and we wrote nothing there but that they are paused.
        let ours: Vec<_> =
            rig.writes()?.split_off(begun).into_iter().filter(|one| one.user == rig.user()).collect();
        ensure!(!ours.is_empty() && ours.iter().all(|one| one.subresource == "status"), "{ours:?}");
        // M7: nothing that we make needs to be taken along: no Secret and no ConfigMap is ours.
        for write in rig.writes()?.into_iter().chain(target.writes()?) {
            let secret = ["secrets", "configmaps"].contains(&write.resource.as_str());
            ensure!(!secret || (write.user != rig.user() && write.user != target.user()), "{write:?}");
        }

        // M4: and it can be scaled there, both ways.
        let scale = async |replicas: usize| {
            target.patch_owner("workers", &json!({"spec": {"replicas": replicas}})).await?;
            target.running("workers", replicas).await
        };
        scale(3).await?;
        let kept = rig.instances().iter().filter(|one| instances.contains(&one.id)).count();
        ensure!(kept == 2, "machines were replaced");
        // M5: clusterctl owns all fields now, and the list is emptied all the same.
        scale(0).await?;
        let list = target.pools().get("workers").await?.spec.provider_id_list;
        ensure!(list.is_empty(), "{list:?}");
        scale(1).await?;
        // M8: both managers run to this moment, and only one has acted.
        ensure!(
            !rig.mutations_since(mark).is_empty() && strangers(rig, mark).is_empty(),
            "{:?}",
            strangers(rig, mark)
        );
        target.delete("workers").await?;
        target.stop().await
    })
    .await
}

/// It comes back in the middle of a rolling update: the first manager, which ran on, read the launch template before.
// Rules: M2, M4, M8
// Pains: P22
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn a_pool_moved_back_during_a_rollout_keeps_no_outdated_instance() -> Result<()> {
    rule("m8-back", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(3), 3).await?;
        let target = rig.target().await?;
        target.move_here().await?;
        target.running("workers", 3).await?;
        let image = json!({"spec": {"machine": {"image": {"id": NEW_IMAGE}}}});
        target.pools().patch("workers", &PatchParams::default(), &Patch::Merge(image)).await?;
        let new = || rig.instances().iter().filter(|one| one.image == NEW_IMAGE).count();
        eventually("the rollout is under way", async || {
            Ok(Look::when(new() > 0, format!("{:?}", rig.instances())))
        })
        .await?;
        let mark = rig.mark();
        target.move_back().await?;
        eventually("all are replaced", async || {
            let status = rig.pools().get("workers").await?.status.unwrap_or_default();
            let up_to_date = condition(&status.conditions, "UpToDate");
            let done = new() == 3 && rig.instances().len() == 3 && up_to_date == "True/UpToDate";
            Ok(Look::when(done, format!("{} new, {up_to_date}, {:?}", new(), status.conditions)))
        })
        .await?;
        rig.running("workers", 3).await?;
        let created = rig
            .mutations_since(mark)
            .into_iter()
            .filter(|call| {
                // A version, too: one with the same content as that of the rollout, which this manager does not know.
                call.action.starts_with("CreateLaunchTemplate") || call.action == "CreateAutoScalingGroup"
            })
            .count();
        ensure!(created == 0, "a move creates nothing");
        target.stop().await
    })
    .await
}

// Rules: M1, M4
#[tokio::test]
async fn a_backup_in_a_directory_is_restored_in_either_cluster() -> Result<()> {
    rule("m4-directory", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        let folder = rig.scenario.environment.run().path().join(format!("backup-{}", rig.scenario.namespace));
        std::fs::create_dir_all(&folder)?;
        let folder = folder.display().to_string();
        let (mark, instances) = (rig.mark(), rig.instances().len());
        let saved = rig.clusterctl_move(&["--to-directory", &folder]).await?;
        ensure!(saved.success, "{}", saved.stderr);
        // The pool that was saved goes on.
        rig.running("workers", 2).await?;
        ensure!(rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));

        // Back into the same cluster, over what is there.
        let restored = rig.clusterctl_move(&["--from-directory", &folder]).await?;
        ensure!(restored.success, "{}", restored.stderr);
        rig.running("workers", 2).await?;
        ensure!(rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));

        // Into another one, when the first is lost: its manager does not run any more.
        let control_plane = rig.control_plane().await?;
        rig.stop_manager().await?;
        let target = rig.target().await?;
        let args = ["move", "--namespace", &rig.scenario.namespace, "--from-directory", &folder];
        let restored = target.management.clusterctl().runner().output(args, None).await?;
        ensure!(restored.success, "{}", restored.stderr);
        target.settle(&control_plane).await?;
        target.running("workers", 2).await?;
        ensure!(rig.mutations_since(mark).is_empty(), "{:?}", rig.mutations_since(mark));
        ensure!(rig.instances().len() == instances);
        target.patch_owner("workers", &json!({"spec": {"replicas": 3}})).await?;
        target.running("workers", 3).await?;
        ensure!(strangers(rig, mark).is_empty(), "{:?}", strangers(rig, mark));
        target.delete("workers").await?;
        target.stop().await
    })
    .await
}
