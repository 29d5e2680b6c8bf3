//! Each write of the controllers, on the real API server and on that of the simulation: it has the same effect, and is
//! refused for the same reason.

use std::{collections::BTreeSet, fmt::Debug, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use capasg_api::{
    ASGMachine, ASGMachinePool, ASGMachineSpec, GROUP, VERSION,
    capi::{Machine, MachineDeletion, MachinePool},
    names::finalizers,
};
use capasg_controllers::{
    ObjectKey,
    client::{ApiServer, Caches, Index},
    kubernetes::{DeletionReason, KubeError, KubeWrite, Kubernetes as _},
};
use capasg_e2e::{Rig, Setup, rule};
use capasg_environment::dynamic;
use capasg_simulation::{Journal, Objects, Random, VirtualClock};
use capasg_test_objects::{machine, minimal_pool, with};
use chrono::DateTime;
use kube::{
    Api, Error, Resource,
    api::{Patch, PatchParams, PostParams},
    core::NamespaceResourceScope,
    runtime::{reflector, watcher::Event},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// Somebody else's finalizer: what is deleted stays, and it must not be lost.
const THEIRS: &str = "example.com/keeps-it";
const ID: &str = "aws:///eu-west-1a/i-0a1b2c3d4e5f60718";
const INSTANCE: &str = "i-0a1b2c3d4e5f60718";

/// A write for the objects of a name as they were read.
type Case = (&'static str, fn(&ObjectKey, &Objects) -> KubeWrite);

fn pool(objects: &Objects) -> (String, String) {
    identity(objects.pool.as_ref())
}

/// The uid and the resourceVersion of an object.
fn identity<T: Resource>(object: Option<&T>) -> (String, String) {
    let meta = object.map(|object| object.meta().clone()).unwrap_or_default();
    (meta.uid.unwrap_or_default(), meta.resource_version.unwrap_or_default())
}

const POOLS: [Case; 9] = [
    ("finalizer-added", |key, objects| KubeWrite::AddPoolFinalizer {
        pool: key.clone(),
        resource_version: pool(objects).1,
        finalizers: vec![THEIRS.to_owned(), finalizers::POOL.to_owned()],
        owner_id: "0123456789abcdef".to_owned(),
    }),
    ("finalizer-removed", |key, objects| KubeWrite::RemovePoolFinalizer {
        pool: key.clone(),
        resource_version: pool(objects).1,
        finalizers: vec![THEIRS.to_owned()],
    }),
    ("provider-ids", |key, _| KubeWrite::PatchPoolProviderIds {
        pool: key.clone(),
        provider_id: None,
        list: Some(vec![ID.to_owned()]),
    }),
    ("no-provider-ids", |key, _| KubeWrite::PatchPoolProviderIds {
        pool: key.clone(),
        provider_id: None,
        list: Some(Vec::new()),
    }),
    ("move-blocked", |key, objects| KubeWrite::AnnotateBlockMove {
        pool: key.clone(),
        uid: pool(objects).0,
        blocked: true,
    }),
    ("move-not-blocked", |key, objects| KubeWrite::AnnotateBlockMove {
        pool: key.clone(),
        uid: pool(objects).0,
        blocked: false,
    }),
    ("rollout-stopped", |key, _| KubeWrite::AnnotateRolloutStopped {
        pool: key.clone(),
        revision: Some("0123456789abcdef".to_owned()),
        reason: "it made no progress".to_owned(),
        rolled_back: false,
    }),
    ("rollout-resumed", |key, _| KubeWrite::AnnotateRolloutStopped {
        pool: key.clone(),
        revision: None,
        reason: "it goes on".to_owned(),
        rolled_back: false,
    }),
    ("status", |key, objects| {
        let mut status = objects.pool.as_ref().and_then(|pool| pool.status.clone()).unwrap_or_default();
        // One is changed, one is removed, one is added.
        status.replicas = 7;
        status.node_info = None;
        status.desired_replicas = 7;
        KubeWrite::PatchPoolStatus {
            pool: key.clone(),
            resource_version: Some(pool(objects).1),
            status: Box::new(status),
        }
    }),
];

const MACHINES: [Case; 10] = [
    ("replicas", |key, objects| {
        let (uid, resource_version) = identity(objects.machine_pool.as_ref());
        KubeWrite::PatchMachinePoolReplicas { machine_pool: key.clone(), uid, resource_version, replicas: 0 }
    }),
    ("created", |key, _| {
        let spec = ASGMachineSpec { provider_id: ID.to_owned(), instance_id: INSTANCE.to_owned() };
        let mut created = ASGMachine::new(&format!("{}-created", key.name), spec);
        created.metadata.namespace = Some(key.namespace.clone());
        created.metadata.finalizers = Some(vec![finalizers::MACHINE.to_owned()]);
        KubeWrite::CreateAsgMachine(Box::new(created))
    }),
    ("machine-status", |key, objects| {
        let mut status = objects.asg_machine.as_ref().and_then(|one| one.status.clone()).unwrap_or_default();
        status.failure_domain = None;
        status.instance_type = Some("m7i.large".to_owned());
        KubeWrite::PatchAsgMachineStatus {
            machine: key.clone(),
            resource_version: Some(identity(objects.asg_machine.as_ref()).1),
            status: Box::new(status),
        }
    }),
    ("asg-machine-deleted", |key, objects| KubeWrite::DeleteAsgMachine {
        machine: key.clone(),
        uid: identity(objects.asg_machine.as_ref()).0,
    }),
    ("termination-requested", |key, objects| KubeWrite::AnnotateTerminationRequested {
        machine: key.clone(),
        uid: identity(objects.asg_machine.as_ref()).0,
        instance: INSTANCE.to_owned(),
        at: DateTime::UNIX_EPOCH,
    }),
    ("machine-finalizer-removed", |key, objects| KubeWrite::RemoveAsgMachineFinalizer {
        machine: key.clone(),
        uid: identity(objects.asg_machine.as_ref()).0,
        instance: INSTANCE.to_owned(),
        terminated: true,
    }),
    ("marked", |key, objects| KubeWrite::AnnotateDeleteMachine {
        machine: key.clone(),
        uid: identity(objects.machine.as_ref()).0,
        annotated: true,
    }),
    ("not-drained", |key, objects| KubeWrite::AnnotateExcludeNodeDraining {
        machine: key.clone(),
        uid: identity(objects.machine.as_ref()).0,
    }),
    ("timeouts", |key, objects| KubeWrite::PatchMachineTimeouts {
        machine: key.clone(),
        uid: identity(objects.machine.as_ref()).0,
        deletion: MachineDeletion {
            node_drain_timeout_seconds: Some(600),
            node_volume_detach_timeout_seconds: None,
            node_deletion_timeout_seconds: Some(10),
        },
    }),
    ("machine-deleted", |key, objects| KubeWrite::DeleteMachine {
        machine: key.clone(),
        uid: identity(objects.machine.as_ref()).0,
        reason: DeletionReason::ScaleIn,
    }),
];

/// The kind of a write; a new one has to get a name here, and a case above.
fn kind(write: &KubeWrite) -> &'static str {
    match write {
        KubeWrite::AddPoolFinalizer { .. } => "AddPoolFinalizer",
        KubeWrite::RemovePoolFinalizer { .. } => "RemovePoolFinalizer",
        KubeWrite::PatchPoolProviderIds { .. } => "PatchPoolProviderIds",
        KubeWrite::AnnotateBlockMove { .. } => "AnnotateBlockMove",
        KubeWrite::AnnotateRolloutStopped { .. } => "AnnotateRolloutStopped",
        KubeWrite::PatchMachinePoolReplicas { .. } => "PatchMachinePoolReplicas",
        KubeWrite::PatchPoolStatus { .. } => "PatchPoolStatus",
        KubeWrite::CreateAsgMachine(_) => "CreateAsgMachine",
        KubeWrite::PatchAsgMachineStatus { .. } => "PatchAsgMachineStatus",
        KubeWrite::DeleteAsgMachine { .. } => "DeleteAsgMachine",
        KubeWrite::AnnotateTerminationRequested { .. } => "AnnotateTerminationRequested",
        KubeWrite::RemoveAsgMachineFinalizer { .. } => "RemoveAsgMachineFinalizer",
        KubeWrite::AnnotateDeleteMachine { .. } => "AnnotateDeleteMachine",
        KubeWrite::AnnotateExcludeNodeDraining { .. } => "AnnotateExcludeNodeDraining",
        KubeWrite::PatchMachineTimeouts { .. } => "PatchMachineTimeouts",
        KubeWrite::DeleteMachine { .. } => "DeleteMachine",
    }
}
const KINDS: usize = 16;

/// What is compared: all but what an API server counts and tells by itself, and core's own status.
fn compared<T: Resource + Serialize>(object: Option<&T>, with_status: bool) -> Result<Value> {
    let Some(object) = object else { return Ok(Value::Null) };
    let mut json = serde_json::to_value(object)?;
    let meta = json["metadata"].as_object_mut().context("metadata")?;
    for key in ["resourceVersion", "uid", "generation", "creationTimestamp", "managedFields", "selfLink"] {
        meta.remove(key);
    }
    meta.remove("deletionGracePeriodSeconds");
    if let Some(at) = meta.get_mut("deletionTimestamp") {
        *at = json!("some time");
    }
    // An empty map or list is written by one side where the other writes none.
    meta.retain(|_, value| *value != json!({}) && *value != json!([]));
    if !with_status {
        json.as_object_mut().context("an object")?.remove("status");
    }
    Ok(json)
}

fn effect(objects: &Objects) -> Result<[Value; 4]> {
    Ok([
        compared(objects.pool.as_ref(), true)?,
        compared(objects.machine_pool.as_ref(), false)?,
        compared(objects.asg_machine.as_ref(), true)?,
        compared(objects.machine.as_ref(), false)?,
    ])
}

fn answer<T>(result: Result<T, KubeError>) -> String {
    result.map_or_else(|error| error.reason().to_owned(), |_| "done".to_owned())
}

/// The real API server, with the objects of one name.
struct Real<'a> {
    rig: &'a Rig<'a>,
}

impl Real<'_> {
    fn api<T>(&self) -> Api<T>
    where
        T: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.rig.scenario.client.clone(), &self.rig.scenario.namespace)
    }

    fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::new(&self.rig.scenario.namespace, name)
    }

    async fn create(&self, group: &str, version: &str, object: &Value) -> Result<()> {
        let Rig { scenario, .. } = self.rig;
        let kind = object["kind"].as_str().context("a kind")?;
        let api = dynamic(&scenario.client, &scenario.namespace, group, version, kind);
        api.create(&PostParams::default(), &serde_json::from_value(object.clone())?)
            .await
            .with_context(|| format!("creating a {kind}"))?;
        if object.get("status").is_some() {
            let name = object["metadata"]["name"].as_str().context("a name")?;
            let status = json!({"status": object["status"]});
            api.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
        }
        Ok(())
    }

    /// Creates one object of each kind. There is no Cluster, so that core leaves them alone.
    async fn create_all(&self, name: &str) -> Result<()> {
        let core = "cluster.x-k8s.io";
        let meta = |finalizers: &[&str]| {
            json!({
                "name": name,
                "finalizers": finalizers,
                "annotations": {"example.com/theirs": "kept"},
                "labels": {"cluster.x-k8s.io/cluster-name": "absent"},
            })
        };
        let pool = with(minimal_pool(), "metadata", meta(&[THEIRS, finalizers::POOL]));
        let pool = with(pool, "status", json!({"replicas": 3, "nodeInfo": {"architecture": "amd64"}}));
        self.create(GROUP, VERSION, &pool).await?;
        let own = with(machine(), "metadata", meta(&[finalizers::MACHINE, THEIRS]));
        let own = with(own, "status", json!({"failureDomain": "eu-west-1a"}));
        self.create(GROUP, VERSION, &own).await?;
        let spec = |kind: &str| {
            json!({
                "clusterName": "absent",
                "bootstrap": {"dataSecretName": "absent"},
                "infrastructureRef": {"apiGroup": GROUP, "kind": kind, "name": name},
            })
        };
        let machine = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": meta(&[THEIRS]), "spec": spec("ASGMachine"),
        });
        let machine = with(machine, "spec/deletion", json!({"nodeVolumeDetachTimeoutSeconds": 5}));
        self.create(core, "v1beta2", &machine).await?;
        let machine_pool = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool",
            "metadata": meta(&[]),
            "spec": {
                "clusterName": "absent", "replicas": 3,
                "template": {"spec": spec("ASGMachinePool")},
            },
        });
        self.create(core, "v1beta2", &machine_pool).await
    }

    async fn read<T>(&self, name: &str) -> Result<Option<T>, Error>
    where
        T: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        self.api::<T>().get_opt(name).await
    }

    async fn objects(&self, name: &str) -> Result<Objects> {
        Ok(Objects {
            pool: self.read::<ASGMachinePool>(name).await?,
            machine_pool: self.read::<MachinePool>(name).await?,
            asg_machine: self.read::<ASGMachine>(name).await?,
            machine: self.read::<Machine>(name).await?,
        })
    }

    /// The adapter of the release, whose caches show these objects.
    fn adapter(&self, objects: &Objects) -> ApiServer {
        fn store<T>(object: Option<&T>) -> reflector::Store<T>
        where
            T: Resource<DynamicType = ()> + reflector::Lookup<DynamicType = ()> + Clone + 'static,
        {
            let (store, mut writer) = reflector::store();
            if let Some(one) = object {
                writer.apply_watcher_event(&Event::Apply(one.clone()));
            }
            store
        }
        let caches = Caches {
            watch_filter: None,
            pools: store(objects.pool.as_ref()),
            asg_machines: store(objects.asg_machine.as_ref()),
            asg_machines_of: Index::default(),
            machine_pools: store(objects.machine_pool.as_ref()),
            machines: store(objects.machine.as_ref()),
            machines_of: Index::default(),
            clusters: store(None),
            secrets: store(None),
        };
        ApiServer::new(self.rig.scenario.client.clone(), caches)
    }
}

/// Other objects of these names, or older ones.
fn with_identity(mut objects: Objects, uid: Option<&str>, version: Option<&str>) -> Objects {
    fn edit<T: Resource>(object: Option<&mut T>, uid: Option<&str>, version: Option<&str>) {
        let Some(meta) = object.map(Resource::meta_mut) else { return };
        meta.uid = uid.map(str::to_owned).or(meta.uid.take());
        meta.resource_version = version.map(str::to_owned).or(meta.resource_version.take());
    }
    edit(objects.pool.as_mut(), uid, version);
    edit(objects.machine_pool.as_mut(), uid, version);
    edit(objects.asg_machine.as_mut(), uid, version);
    edit(objects.machine.as_mut(), uid, version);
    objects
}

// Rules: C2, C6
#[tokio::test]
async fn the_simulated_api_server_does_what_the_real_one_does() -> Result<()> {
    rule("kube-writes", Setup::bare().without_manager(), async |rig| {
        let real = Real { rig };
        let model = capasg_simulation::ApiServer::new(
            VirtualClock::begin(),
            Arc::new(Journal::default()),
            Random::new(0),
        );
        let (mut wrong, mut kinds) = (Vec::new(), BTreeSet::new());
        for (case, write) in POOLS.into_iter().chain(MACHINES) {
            real.create_all(case).await?;
            let key = real.key(case);
            let created = format!("{case}-created");
            // The last is repeated, as after a reply that was lost.
            let runs = [
                ("another object", Some("00000000-0000-4000-8000-00000000ffff"), None),
                ("an older version", None, Some("1")),
                ("as read", None, None),
                ("again", None, None),
            ];
            for (how, uid, version) in runs {
                let before = real.objects(case).await?;
                model.restore(before.clone());
                let of_model = write(&key, &with_identity(model.objects(&key), uid, version.map(|_| "0")));
                let of_real = write(&key, &with_identity(before.clone(), uid, version));
                kinds.insert(kind(&of_real));
                let answers = (
                    answer(real.adapter(&before).write(&of_real).await),
                    answer(model.write(&of_model).await),
                );
                let after = (effect(&real.objects(case).await?)?, effect(&model.objects(&key))?);
                let made = (
                    compared(real.read::<ASGMachine>(&created).await?.as_ref(), true)?,
                    compared(model.objects(&real.key(&created)).asg_machine.as_ref(), true)?,
                );
                if answers.0 != answers.1 {
                    wrong.push(format!("{case}, {how}: {answers:?}"));
                }
                for (of_real, of_model) in after.0.into_iter().zip(after.1).chain([made]) {
                    if of_real != of_model {
                        wrong.push(format!("{case}, {how}:\n{of_real}\n{of_model}"));
                    }
                }
            }
            let absent = real.key("absent");
            let gone = write(&absent, &Objects::default());
            if !matches!(gone, KubeWrite::CreateAsgMachine(_)) {
                let adapter = real.adapter(&Objects::default());
                let answers = (answer(adapter.write(&gone).await), answer(model.write(&gone).await));
                if answers.0 != "KubernetesNotFound" || answers.0 != answers.1 {
                    wrong.push(format!("{case}, absent: {answers:?}"));
                }
            }
        }
        ensure!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
        ensure!(kinds.len() == KINDS, "writes without a case: there are {kinds:?}");
        Ok(())
    })
    .await
}
