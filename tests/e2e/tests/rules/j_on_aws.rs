//! J7, K16: the class that we ship for clusters on AWS, with its flavor, reconciled by core and the kubeadm providers. The
//! kinds of Cluster API Provider AWS have definitions alone; the test reports their statuses.

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{
    CLASS_ON_AWS, CLUSTER, NODE_SECURITY_GROUPS, PRIVATE_SUBNET, Rig, Setup, Topology, TopologyPool,
    dynamic_list, eventually, rule, text,
};
use capasg_environment::Look;
use kube::{ResourceExt as _, api::DynamicObject};
use serde_json::{Value, json};

/// Not the placeholders of the class, so that the patches are what brings them.
const CONTROL_PLANE_TYPE: &str = "m7i.xlarge";
const NODE_TYPE: &str = "m6i.large";
const VOLUME_GIB: u32 = 123;

fn with_variables(cluster: &mut Value) {
    let variables = json!([
        {"name": "controlPlaneMachineType", "value": CONTROL_PLANE_TYPE},
        {"name": "instanceTypes", "value": [{"type": NODE_TYPE}]},
        {"name": "rootVolumeSizeGiB", "value": VOLUME_GIB},
        {"name": "tags", "value": {"team": "nights"}},
    ]);
    let named = |all: &Value, name: &Value| {
        all.as_array().is_some_and(|all| all.iter().any(|one| one["name"] == *name))
    };
    if let Some(own) = cluster["spec"]["topology"]["variables"].as_array_mut() {
        own.retain(|one| !named(&variables, &one["name"]));
        own.extend(variables.as_array().into_iter().flatten().cloned());
    }
}

// Rules: J7, K16
#[tokio::test]
async fn the_class_for_aws_runs_a_cluster() -> Result<()> {
    rule("j7-on-aws", Setup::bare(), async |rig| {
        let version = rig.scenario.environment.tools().kubernetes_version().to_owned();
        let topology = rig.topology_on_aws(2, with_variables).await?;
        let made = topology.running("workers", 2, &version).await?;
        topology.reconciled("True/ReconcileSucceeded", "").await?;
        let class = rig.clusters().get(CLUSTER).await?;
        ensure!(class.data["spec"]["topology"]["classRef"]["name"] == CLASS_ON_AWS, "another class");
        the_providers_objects_are_patched(rig).await?;
        the_pool_is_patched(rig, &made)?;
        the_group_is_in_the_clusters_network(rig, &made)?;

        // A change of the class's variables arrives in place.
        let instances = topology.instances_of(&made);
        topology.set_variable("tags", json!({"team": "days"})).await?;
        eventually("the group has the other tag", async || {
            let group = rig.group_of(&made.pool).context("no group")?;
            let team = group.tags.get("team").cloned();
            Ok(Look::when(team.as_deref() == Some("days"), format!("{team:?}")))
        })
        .await?;
        topology.reconciled("True/ReconcileSucceeded", "").await?;
        ensure!(topology.instances_of(&made) == instances, "instances were replaced");
        deleted(rig, &topology).await
    })
    .await
}

async fn the_one(rig: &Rig<'_>, kind: &str) -> Result<DynamicObject> {
    let mut all = dynamic_list(&rig.of_aws(&rig.scenario.client, kind), "").await?;
    ensure!(all.len() == 1, "{} of {kind}", all.len());
    all.pop().context("none")
}

/// Core and the control plane provider have made these of the templates of the class, with its patches.
async fn the_providers_objects_are_patched(rig: &Rig<'_>) -> Result<()> {
    let network = the_one(rig, "AWSCluster").await?;
    ensure!(text(&network, "/spec/region") == rig.scenario.region, "{:?}", network.data);
    ensure!(text(&network, "/spec/controlPlaneLoadBalancer/loadBalancerType") == "nlb", "{:?}", network.data);
    let machine = the_one(rig, "AWSMachine").await?;
    ensure!(text(&machine, "/spec/instanceType") == CONTROL_PLANE_TYPE, "{:?}", machine.data);
    let profile = "control-plane.cluster-api-provider-aws.sigs.k8s.io";
    ensure!(text(&machine, "/spec/iamInstanceProfile") == profile, "{:?}", machine.data);
    Ok(())
}

fn the_pool_is_patched(rig: &Rig<'_>, made: &TopologyPool) -> Result<()> {
    let spec = serde_json::to_value(&made.pool.spec)?;
    let own = format!("sigs.k8s.io/cluster-api-provider-aws/cluster/{CLUSTER}");
    let role = "sigs.k8s.io/cluster-api-provider-aws/role";
    for (path, wanted) in [
        ("/region", json!(rig.scenario.region)),
        ("/subnets", json!([{"tags": {&own: "owned", role: "private"}}])),
        (
            "/machine/securityGroups",
            json!([{"tags": {&own: "owned", role: "node"}}, {"tags": {&own: "owned", role: "lb"}}]),
        ),
        ("/instanceTypes", json!([{"type": NODE_TYPE}])),
        ("/machine/image", json!({"ssmParameter": "/images/node/v{version}"})),
        ("/machine/iamInstanceProfile", json!("nodes.cluster-api-provider-aws.sigs.k8s.io")),
        ("/machine/rootVolume/sizeGiB", json!(VOLUME_GIB)),
        ("/tags", json!({"team": "nights"})),
    ] {
        ensure!(spec.pointer(path) == Some(&wanted), "{path} is {:?}, not {wanted}", spec.pointer(path));
    }
    Ok(())
}

/// What the pool selects by tags is what the AWS provider made for this cluster, and nothing else of the VPC.
fn the_group_is_in_the_clusters_network(rig: &Rig<'_>, made: &TopologyPool) -> Result<()> {
    let instances = rig.instances();
    ensure!(instances.len() == 2, "{instances:?}");
    for one in &instances {
        ensure!(one.subnet == PRIVATE_SUBNET && one.instance_type == NODE_TYPE, "{one:?}");
        ensure!(one.tags.get("team").is_some_and(|team| team == "nights"), "{one:?}");
    }
    let template = rig.calls_of("CreateLaunchTemplate").pop().context("no launch template")?;
    let params = template.params.to_string();
    for group in NODE_SECURITY_GROUPS {
        ensure!(params.contains(group), "{group} is not in {params}");
    }
    ensure!(params.contains(&VOLUME_GIB.to_string()), "no volume of {VOLUME_GIB} GiB in {params}");
    let group = rig.group_of(&made.pool).context("no group")?;
    ensure!(group.tags.get("team").is_some_and(|team| team == "nights"), "{group:?}");
    Ok(())
}

async fn deleted(rig: &Rig<'_>, topology: &Topology<'_>) -> Result<()> {
    let owner = topology.pool("workers").await?.owner.name_any();
    rig.scenario.kubectl(&["delete", "cluster", CLUSTER, "--wait=false"]).await?;
    rig.gone(&owner).await?;
    eventually("the Cluster is gone", async || {
        let left = rig.clusters().get_opt(CLUSTER).await?;
        Ok(Look::when(left.is_none(), format!("{:?}", left.map(|cluster| cluster.data["status"].clone()))))
    })
    .await
}
