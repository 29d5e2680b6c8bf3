//! Each write of the controllers, on the real API server and on that of the simulation: it has the same effect, and is
//! refused for the same reason.

mod cases;

use std::{collections::BTreeSet, fmt::Debug, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use capasg_api::{
    ASGMachine, ASGMachinePool, GROUP, VERSION,
    capi::{Machine, MachinePool},
    names::finalizers,
};
use capasg_controllers::{
    ObjectKey,
    client::{ApiServer, Caches, Index, Namespaces},
    kubernetes::{KubeError, KubeWrite, Kubernetes as _},
};
use capasg_e2e::{Rig, Setup, rule};
use capasg_environment::dynamic;
use capasg_simulation::{Journal, Objects, Random, VirtualClock};
use capasg_test_objects::{machine, minimal_pool, with};
use kube::{
    Api, Error, Resource,
    api::{Patch, PatchParams, PostParams},
    core::NamespaceResourceScope,
    runtime::{reflector, watcher::Event},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use cases::{KINDS, MACHINES, POOLS, kind};

/// Somebody else's finalizer: what is deleted stays, and it must not be lost.
const THEIRS: &str = "example.com/keeps-it";

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
            identities: store(None),
            guards: store(None),
            namespaces: store(None),
        };
        let namespaces =
            Namespaces { own: "capasg-system".to_owned(), aws_provider: "capa-system".to_owned() };
        ApiServer::new(self.rig.scenario.client.clone(), caches, namespaces)
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
    Box::pin(rule("kube-writes", Setup::bare().without_manager(), async |rig| {
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
    }))
    .await
}
