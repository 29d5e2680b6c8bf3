//! A region of AWS in memory, and a class whose pools use it, for tests.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use capasg_api::{
    identity::{ClusterIdentity, IdentityRequest},
    pool::{InstancesDistribution, ResolvedInstancesDistribution},
};
use capasg_cloud::{Identity, Place, Selector};
use capasg_test_objects::with;
use serde_json::{Value, json};

use crate::{
    lookups::{Access, Answer, ImageSource, Lookups, NoAnswer, NotAllowed, Question, Reader, SubnetFacts},
    ports::Kind,
    protocol::Hook,
    testing::{World, ready_pool, request},
};

/// A region of AWS.
#[derive(Default)]
pub(crate) struct Region {
    /// VPC, zone and free addresses by ID.
    pub(crate) subnets: BTreeMap<&'static str, (&'static str, &'static str, i32)>,
    /// VPCs by ID.
    pub(crate) groups: BTreeMap<&'static str, &'static str>,
    pub(crate) images: BTreeSet<&'static str>,
    /// Zones by type.
    pub(crate) types: BTreeMap<&'static str, Vec<&'static str>>,
    /// Values of quotas by code, and what is in use of them.
    pub(crate) quotas: BTreeMap<&'static str, (i64, i64)>,
    pub(crate) denies_quotas: bool,
    pub(crate) denies: bool,
    /// How long the read of an image or a quota waits for its turn.
    pub(crate) queue: Duration,
    /// The identities with which something was asked.
    pub(crate) asked: BTreeSet<String>,
    /// What determined the identity of each check.
    pub(crate) requests: Vec<IdentityRequest>,
    /// Reads of identities do not end.
    pub(crate) hangs_identities: bool,
}

/// Identities by the name that a request has; one without a name is `default`. What is called `other` is denied.
#[async_trait]
impl Access for Aws {
    async fn place(&self, request: &IdentityRequest, region: &str) -> Result<Place, NotAllowed> {
        if self.0.lock().unwrap().hangs_identities {
            std::future::pending::<()>().await;
        }
        self.0.lock().unwrap().requests.push(request.clone());
        let of_cluster = match &request.cluster {
            ClusterIdentity::Named(named) => named.clone().map(|named| named.name),
            ClusterIdentity::Of(holder) => Some(format!("of {} {}", holder.kind, holder.name)),
            ClusterIdentity::Absent => None,
        };
        let own = request.own.clone().map(|own| own.name);
        let name = own.or(of_cluster).unwrap_or_else(|| "default".to_owned());
        if name == "other" {
            return Err(NotAllowed(format!(
                "ASGIdentity other does not allow namespace {}",
                request.namespace
            )));
        }
        let identity = Arc::new(Identity { name, ..Identity::process() });
        Ok(Place { identity, region: region.to_owned() })
    }
}

pub(crate) struct Aws(Arc<Mutex<Region>>);

#[async_trait]
impl Reader for Aws {
    async fn read(&self, question: &Question) -> Result<Answer, NoAnswer> {
        let queue = self.0.lock().unwrap().queue;
        if !queue.is_zero() && matches!(question, Question::Image { .. } | Question::Quota { .. }) {
            tokio::time::sleep(queue).await;
        }
        let mut region = self.0.lock().unwrap();
        region.asked.insert(question.place().identity.name.clone());
        if region.denies {
            return Err(NoAnswer);
        }
        Ok(match question {
            Question::Identity { .. } => Answer::Identity,
            Question::Subnets { selector, .. } => {
                let is_selected = |id: &str| match selector {
                    Selector::Ids(ids) => ids.contains(id),
                    Selector::Tags(_) | Selector::Name(_) => true,
                };
                let found = region.subnets.iter().filter(|(id, _)| is_selected(id));
                let facts = found.map(|(id, (vpc, zone, free))| {
                    let facts = SubnetFacts { zone: (*zone).to_owned(), vpc: (*vpc).to_owned(), free: *free };
                    ((*id).to_owned(), facts)
                });
                Answer::Subnets(facts.collect())
            }
            Question::SecurityGroups { ids, .. } => {
                let found = region.groups.iter().filter(|(id, _)| ids.contains(**id));
                Answer::SecurityGroups(found.map(|(id, vpc)| ((*id).to_owned(), (*vpc).to_owned())).collect())
            }
            Question::Image { source: ImageSource::Id(name) | ImageSource::Parameter(name), .. } => {
                Answer::Image(region.images.contains(name.as_str()))
            }
            Question::Offerings { types, .. } => {
                let found = region.types.iter().filter(|(name, _)| types.contains(**name));
                let zones = |zones: &[&str]| zones.iter().map(|zone| (*zone).to_owned()).collect();
                Answer::Offerings(found.map(|(name, of)| ((*name).to_owned(), zones(of))).collect())
            }
            Question::Vcpus { types, .. } => {
                Answer::Vcpus(types.iter().map(|name| (name.clone(), 2)).collect())
            }
            Question::Quota { .. } if region.denies_quotas => return Err(NoAnswer),
            Question::Quota { quota, .. } => {
                let (value, used) = region.quotas.get(quota.code).copied().unwrap_or_default();
                Answer::Quota { value, used }
            }
        })
    }
}

/// A region in which everything of [`world`] exists.
pub(crate) fn region() -> Region {
    Region {
        subnets: [
            ("subnet-0a1b2c3d", ("vpc-1", "eu-west-1a", 10)),
            ("subnet-0b1c2d3e", ("vpc-1", "eu-west-1b", 10)),
        ]
        .into(),
        groups: [("sg-0a1b2c3d", "vpc-1")].into(),
        images: ["/images/node/v1.36.3"].into(),
        types: [("m7i.large", vec!["eu-west-1a", "eu-west-1b"]), ("m7a.large", vec!["eu-west-1a"])].into(),
        quotas: [("L-1216C47A", (1000, 0)), ("L-34B43A08", (1000, 0))].into(),
        ..Region::default()
    }
}

pub(crate) fn template() -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "ASGMachinePoolTemplate",
        "metadata": {"name": "workers", "namespace": "teams"},
        "spec": {"template": {"spec": {
            "region": "eu-west-1", "subnets": [{"id": "subnet-0a1b2c3d"}, {"id": "subnet-0b1c2d3e"}],
            "instanceTypes": [{"type": "m7i.large"}, {"type": "m7a.large"}],
            "machine": {
                "image": {"ssmParameter": "/images/node/v{version}"}, "securityGroups": [{"id": "sg-0a1b2c3d"}],
            },
        }}},
    })
}

/// A world with a class of one kind of pool, and access to a region.
pub(crate) fn world(region: Region) -> (Arc<World>, Arc<Mutex<Region>>) {
    let world = World::empty();
    let class = json!({"spec": {"workers": {"machinePools": [{
        "class": "default",
        "infrastructure": {"templateRef": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "ASGMachinePoolTemplate", "name": "workers",
        }},
    }]}}});
    world.objects.lock().unwrap().extend([
        ((Kind::ClusterClass, "teams/prod".to_owned()), class),
        ((Kind::PoolTemplate, "teams/workers".to_owned()), template()),
    ]);
    let region = Arc::new(Mutex::new(region));
    let aws = || Arc::new(Aws(Arc::clone(&region)));
    *world.lookups.lock().unwrap() = Some(Lookups::new(aws(), aws()));
    (world, region)
}

/// The creation of a Cluster with these machine pools.
pub(crate) fn creation(pools: &Value) -> Value {
    let mut request = request(Hook::BeforeClusterCreate, json!({}));
    request["cluster"]["spec"]["topology"] =
        json!({"classRef": {"name": "prod"}, "version": "v1.36.3", "workers": {"machinePools": pools}});
    request
}

pub(crate) fn workers() -> Value {
    json!([{"class": "default", "name": "workers", "replicas": 3}])
}

pub(crate) fn pool(name: &str, surge: i32) -> Value {
    let pool =
        with(ready_pool(name), "spec/machine/image", json!({"ssmParameter": "/images/node/v{version}"}));
    let pool = with(pool, "spec/subnets", json!([{"tags": {"role": "private"}}]));
    let pool = with(pool, "spec/rollout", json!({"strategy": {"rollingUpdate": {"maxSurge": surge}}}));
    with(pool, "status/desiredReplicas", json!(3))
}

/// Names of instance types.
pub(crate) fn types(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

/// A distribution with an On-Demand base, and a percentage of On-Demand instances above it.
pub(crate) fn distribution(base: i32, percentage: i32) -> ResolvedInstancesDistribution {
    let distribution = InstancesDistribution {
        on_demand_base_capacity: Some(base),
        on_demand_percentage_above_base_capacity: Some(percentage),
        ..InstancesDistribution::default()
    };
    distribution.resolve()
}
