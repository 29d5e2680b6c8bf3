//! A: the definitions of our kinds, as the API server and core see them.

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{CLUSTER, Rig, Setup, eventually, rule, text};
use capasg_environment::{Look, dynamic};
use capasg_test_objects::{machine, maximal_pool, minimal_pool, minimal_template, with};
use k8s_openapi::{
    api::{
        authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
        rbac::v1::ClusterRole,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt as _,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

const GROUP: &str = "infrastructure.cluster.x-k8s.io";
const CONTRACT: &str = "cluster.x-k8s.io/v1beta2";
const OURS: [(&str, &str); 3] = [
    ("ASGMachinePool", "asgmachinepools.infrastructure.cluster.x-k8s.io"),
    ("ASGMachine", "asgmachines.infrastructure.cluster.x-k8s.io"),
    ("ASGMachinePoolTemplate", "asgmachinepooltemplates.infrastructure.cluster.x-k8s.io"),
];

fn no_manager() -> Setup {
    Setup::bare().without_manager()
}

async fn definition(rig: &Rig<'_>, name: &str) -> Result<CustomResourceDefinition> {
    Ok(Api::<CustomResourceDefinition>::all(rig.scenario.client.clone()).get(name).await?)
}

fn ours(rig: &Rig<'_>, kind: &str) -> Api<DynamicObject> {
    dynamic(&rig.scenario.client, &rig.scenario.namespace, GROUP, "v1alpha1", kind)
}

fn object(value: Value) -> Result<DynamicObject> {
    Ok(serde_json::from_value(value)?)
}

// Rules: A1
#[tokio::test]
async fn kinds_are_namespaced_with_a_status_subresource() -> Result<()> {
    rule("a1-namespaced", no_manager(), async |rig| {
        for (kind, name) in OURS {
            let definition = definition(rig, name).await?;
            ensure!(definition.spec.scope == "Namespaced", "{kind} is {}", definition.spec.scope);
        }
        let claimed = json!({"ready": true, "initialization": {"provisioned": true}, "replicas": 3});
        let api = ours(rig, "ASGMachinePool");
        let created = api
            .create(&PostParams::default(), &object(with(minimal_pool(), "status", claimed.clone()))?)
            .await?;
        ensure!(created.data.get("status").is_none(), "a create wrote status: {}", created.data);

        let status = Patch::Merge(json!({"status": claimed, "spec": {"maxSize": 7}}));
        let patched = api.patch_status("workers", &PatchParams::default(), &status).await?;
        ensure!(patched.data["status"]["replicas"] == 3);
        ensure!(patched.data["spec"].get("maxSize").is_none(), "a write of status wrote spec");
        ensure!(patched.metadata.generation == Some(1));

        let edit = Patch::Merge(json!({"status": {"replicas": 9}, "spec": {"maxSize": 7}}));
        let edited = api.patch("workers", &PatchParams::default(), &edit).await?;
        ensure!(edited.data["status"]["replicas"] == 3, "a write of spec wrote status");
        ensure!(edited.data["spec"]["maxSize"] == 7 && edited.metadata.generation == Some(2));
        Ok(())
    })
    .await
}

// Rules: A2
#[tokio::test]
async fn definition_names_are_those_that_clusterctl_computes() -> Result<()> {
    rule("a2-names", no_manager(), async |rig| {
        // `clusterctl init` ran in strict order: it refuses a definition under any other name.
        let installed = rig.scenario.environment.management().installed();
        ensure!(installed.contains("infrastructure-asg"), "{installed}");
        for (kind, name) in OURS {
            let found = definition(rig, name).await?;
            ensure!(found.spec.names.kind == kind && found.spec.group == GROUP);
            ensure!(!installed.contains(&format!("invalid name {name}")), "{installed}");
        }
        Ok(())
    })
    .await
}

// Rules: A3
#[tokio::test]
async fn contract_label_names_a_served_version_and_core_needs_it() -> Result<()> {
    rule("a3-label", Setup::default().without_manager(), async |rig| {
        for (kind, name) in OURS {
            let definition = definition(rig, name).await?;
            let label = definition.labels().get(CONTRACT).cloned().unwrap_or_default();
            ensure!(!label.is_empty(), "{kind} has no label {CONTRACT}");
            for version in label.split('_') {
                let served = definition.spec.versions.iter().any(|one| one.name == version && one.served);
                ensure!(served, "{kind}: {version} is not served");
            }
        }

        // The same definition under another name and without the label: core does not touch its objects.
        let definitions = Api::<CustomResourceDefinition>::all(rig.scenario.client.clone());
        let mut copy = definition(rig, OURS[0].1).await?;
        copy.metadata =
            kube::api::ObjectMeta { name: Some(format!("unlabelledpools.{GROUP}")), ..Default::default() };
        copy.spec.names.kind = "UnlabelledPool".to_owned();
        copy.spec.names.list_kind = None;
        copy.spec.names.plural = "unlabelledpools".to_owned();
        copy.spec.names.singular = Some("unlabelledpool".to_owned());
        copy.spec.names.short_names = None;
        copy.status = None;
        definitions.create(&PostParams::default(), &copy).await?;

        let pool = rig.pool("workers").replicas(0);
        let kind = json!({"apiGroup": GROUP, "kind": "UnlabelledPool", "name": "workers"});
        let owner = pool.clone().with_owner("spec/template/spec/infrastructureRef", kind);
        let unlabelled = with(pool.ours(), "kind", "UnlabelledPool");
        eventually("the copy is served", async || {
            rig.scenario.apply(&unlabelled.to_string()).await.map(|_| Look::Done(()))
        })
        .await?;
        rig.scenario.apply(&owner.owner().to_string()).await?;
        eventually("core says that the label is missing", async || {
            let log = rig.scenario.environment.management().upstream_log("cluster-api").await?;
            let said = log.lines().any(|line| {
                line.contains("UnlabelledPool")
                    && line.contains("contract version label(s) are either missing or empty")
            });
            Ok(Look::when(said, "it does not"))
        })
        .await?;
        let copies = ours(rig, "UnlabelledPool");
        ensure!(copies.get("workers").await?.owner_references().is_empty());

        let labels = Patch::Merge(json!({"metadata": {"labels": {CONTRACT: "v1alpha1"}}}));
        definitions.patch(&format!("unlabelledpools.{GROUP}"), &PatchParams::default(), &labels).await?;
        eventually("core owns the object", async || {
            let owners = copies.get("workers").await?.owner_references().to_vec();
            Ok(Look::when(owners.iter().any(|owner| owner.kind == "MachinePool"), format!("{owners:?}")))
        })
        .await
    })
    .await
}

// Rules: A5
#[tokio::test]
async fn lists_have_the_usual_kinds() -> Result<()> {
    rule("a5-lists", no_manager(), async |rig| {
        for (kind, name) in OURS {
            let plural = name.split('.').next().unwrap_or_default();
            let path = format!("/apis/{GROUP}/v1alpha1/namespaces/{}/{plural}", rig.scenario.namespace);
            let list: Value = rig.scenario.client.request(http::Request::get(path).body(Vec::new())?).await?;
            ensure!(list["kind"] == format!("{kind}List"), "{}", list["kind"]);
            ensure!(definition(rig, name).await?.spec.names.list_kind == Some(format!("{kind}List")));
        }
        Ok(())
    })
    .await
}

// Rules: A6
#[tokio::test]
async fn instances_have_the_group_and_the_version_of_the_pool() -> Result<()> {
    rule("a6-version", Setup::default(), async |rig| {
        let mut labels = Vec::new();
        for (_, name) in OURS {
            let definition = definition(rig, name).await?;
            labels.push((definition.spec.group.clone(), definition.labels().get(CONTRACT).cloned()));
        }
        ensure!(labels.windows(2).all(|two| two[0] == two[1]), "{labels:?}");

        // Core lists instances at the version that it knows the pool by, and makes their Machines.
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        for machine in rig.machines_of("workers").await? {
            let reference = &machine.data["spec"]["infrastructureRef"];
            ensure!(reference["apiGroup"] == GROUP && reference["kind"] == "ASGMachine", "{reference}");
            ensure!(reference["name"] == machine.name_any(), "{reference}");
        }
        rig.delete("workers").await
    })
    .await
}

/// Core manages our kinds under the role that it ships: nothing of ours is aggregated to it.
// Rules: A7
#[tokio::test]
async fn core_may_do_everything_with_our_kinds() -> Result<()> {
    rule("a7-rights", no_manager(), async |rig| {
        let reviews = Api::<SubjectAccessReview>::all(rig.scenario.client.clone());
        for (_, name) in OURS {
            let resource = name.split('.').next().unwrap_or_default();
            for verb in ["get", "list", "watch", "create", "update", "patch", "delete"] {
                let attributes = ResourceAttributes {
                    group: Some(GROUP.to_owned()),
                    resource: Some(resource.to_owned()),
                    namespace: Some(rig.scenario.namespace.clone()),
                    verb: Some(verb.to_owned()),
                    ..ResourceAttributes::default()
                };
                let review = SubjectAccessReview {
                    spec: SubjectAccessReviewSpec {
                        user: Some("system:serviceaccount:capi-system:capi-manager".to_owned()),
                        resource_attributes: Some(attributes),
                        ..SubjectAccessReviewSpec::default()
                    },
                    ..SubjectAccessReview::default()
                };
                let answer = reviews.create(&PostParams::default(), &review).await?.status;
                ensure!(answer.is_some_and(|answer| answer.allowed), "core may not {verb} {resource}");
            }
        }
        let roles = Api::<ClusterRole>::all(rig.scenario.client.clone());
        let aggregated = "cluster.x-k8s.io/aggregate-to-manager,cluster.x-k8s.io/provider=infrastructure-asg";
        let ours = ListParams::default().labels(aggregated);
        ensure!(roles.list(&ours).await?.items.is_empty(), "a role of ours widens core's");
        Ok(())
    })
    .await
}

// Rules: A8
#[tokio::test]
async fn users_find_the_kinds_by_category_and_columns() -> Result<()> {
    rule("a8-columns", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(1), 1).await?;
        let all = rig.scenario.kubectl(&["get", "cluster-api"]).await?;
        ensure!(all.contains("asgmachinepool.infrastructure.cluster.x-k8s.io/workers"), "{all}");
        ensure!(all.contains("asgmachine.infrastructure.cluster.x-k8s.io/workers-i-"), "{all}");

        let pools = rig.scenario.kubectl(&["get", "asgmp"]).await?;
        let mut lines = pools.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let header = lines.next().context("no header")?;
        ensure!(
            header
                == [
                    "NAME",
                    "CLUSTER",
                    "DESIRED",
                    "CURRENT",
                    "READY",
                    "UP-TO-DATE",
                    "PHASE",
                    "AGE",
                    "VERSION"
                ],
            "{pools}"
        );
        let row = lines.next().context("no row")?;
        ensure!(row[..7] == ["workers", CLUSTER, "1", "1", "1", "1", "Running"], "{pools}");
        ensure!(row[8] == rig.scenario.environment.tools().kubernetes_version(), "{pools}");

        let wide = rig.scenario.kubectl(&["get", "asgmp", "--output=wide"]).await?;
        for column in ["MIN", "MAX", "GROUP", "PAUSED"] {
            ensure!(wide.lines().next().is_some_and(|header| header.contains(column)), "{wide}");
        }
        rig.scenario.apply(&minimal_template().to_string()).await?;
        let templates = rig.scenario.kubectl(&["get", "asgmpt"]).await?;
        let mut lines = templates.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        ensure!(lines.next() == Some(vec!["NAME", "CLUSTERCLASS", "TYPE", "AGE"]), "{templates}");
        ensure!(lines.next().is_some_and(|row| row[..2] == ["workers", "m7i.large"]), "{templates}");
        let machines = rig.scenario.kubectl(&["get", "asgm"]).await?;
        let header: Vec<_> = machines.lines().next().unwrap_or_default().split_whitespace().collect();
        let wanted = "NAME CLUSTER POOL TYPE ZONE PURCHASE STATE UP-TO-DATE READY AGE INSTANCE-ID";
        ensure!(header.join(" ") == wanted, "{machines}");
        ensure!(machines.contains("InService") && machines.contains("m7i.large"), "{machines}");

        let described =
            rig.scenario.clusterctl(&["describe", "cluster", CLUSTER, "--show-conditions=all"]).await?;
        // Before v1.14 there is no namespace in it.
        let shown = described.replace(&format!(" {}/", rig.scenario.namespace), "/");
        ensure!(shown.contains("MachinePool/workers"), "{described}");
        ensure!(shown.contains("Machine/workers-i-"), "{described}");
        rig.delete("workers").await
    })
    .await
}

// Rules: A9
#[tokio::test]
async fn limits_are_at_least_as_strict_as_cores() -> Result<()> {
    rule("a9-limits", no_manager(), async |rig| {
        let api = ours(rig, "ASGMachinePool");
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let id = "aws:///eu-west-1a/i-0a1b2c3d";
        let list =
            |entry: String, count: usize| with(minimal_pool(), "spec/providerIDList", vec![entry; count]);
        for (what, wrong) in [
            ("10001 entries", list(id.to_owned(), 10_001)),
            ("an empty entry", list(String::new(), 1)),
            ("an entry of 513 characters", list(format!("{id}{}", "0".repeat(513 - id.len())), 1)),
        ] {
            let refused = api.create(&dry, &object(wrong)?).await;
            ensure!(refused.is_err(), "{what} was taken");
        }
        // Every list says how it merges; the API server has judged the schema structural when it took it.
        for (_, name) in OURS {
            let definition = definition(rig, name).await?;
            let established = definition.status.iter().flat_map(|status| status.conditions.iter().flatten());
            ensure!(
                !established.clone().any(|one| one.type_ == "NonStructuralSchema" && one.status == "True")
            );
            for version in &definition.spec.versions {
                let schema = serde_json::to_value(&version.schema)?;
                let mut lists = Vec::new();
                untyped_lists(&schema, "", &mut lists);
                ensure!(lists.is_empty(), "{name}: no list type on {lists:?}");
            }
        }
        Ok(())
    })
    .await
}

fn untyped_lists(schema: &Value, path: &str, found: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            let is_list = members.get("type").is_some_and(|kind| kind == "array");
            if is_list && !members.contains_key("x-kubernetes-list-type") {
                found.push(path.to_owned());
            }
            for (name, value) in members {
                untyped_lists(value, &format!("{path}/{name}"), found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| untyped_lists(item, path, found)),
        _ => {}
    }
}

// Rules: A10
#[tokio::test]
async fn nothing_that_core_reads_is_pruned() -> Result<()> {
    rule("a10-pruning", no_manager(), async |rig| {
        let api = ours(rig, "ASGMachinePool");
        // Every field that there is comes back as it went.
        let maximal = with(maximal_pool(), "metadata/namespace", rig.scenario.namespace.clone());
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let returned = api.create(&dry, &object(maximal.clone())?).await?;
        ensure!(returned.data["spec"] == maximal["spec"], "pruned or defaulted: {}", returned.data["spec"]);

        api.create(&PostParams::default(), &object(minimal_pool())?).await?;
        let status = json!({
            "ready": false,
            "initialization": {"provisioned": false},
            "replicas": 0,
            "infrastructureMachineKind": "ASGMachine",
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "Ready", "message": "",
                "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
        });
        let patch = Patch::Merge(json!({"status": status}));
        let pool = api.patch_status("workers", &PatchParams::default(), &patch).await?;
        ensure!(pool.data["status"] == status, "{}", pool.data["status"]);

        let machines = ours(rig, "ASGMachine");
        machines.create(&PostParams::default(), &object(machine())?).await?;
        let status = json!({
            "initialization": {"provisioned": false},
            "interruptible": false,
            "failureDomain": "eu-west-1a",
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        });
        let name = machine()["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let patch = Patch::Merge(json!({"status": status}));
        let made = machines.patch_status(&name, &PatchParams::default(), &patch).await?;
        ensure!(made.data["status"] == status, "{}", made.data["status"]);
        ensure!(text(&made, "/spec/instanceID") == machine()["spec"]["instanceID"]);
        Ok(())
    })
    .await
}
