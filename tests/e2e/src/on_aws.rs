//! Clusters of the class that we ship for AWS. Core, its topology controller and the kubeadm providers run; the kinds of
//! Cluster API Provider AWS have its definitions and no controller, so that the test reports what that controller would.

use anyhow::{Context as _, Result};
use capasg_environment::{Join, Look, Management, WorkloadCluster, control_plane_secrets, dynamic, stand_in};
use capasg_fake_aws::ec2::{SecurityGroup, Subnet};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{CLUSTER, Rig, Topology, eventually, shared_workload_api};

/// The class that the release ships for clusters on AWS.
pub const CLASS_ON_AWS: &str = "asg-kubeadm";
/// The VPC of clusters of the class.
const VPC: &str = "vpc-0a1b2c3d";
/// The private subnet of clusters of the class; other subnets of the VPC are not theirs.
pub const PRIVATE_SUBNET: &str = "subnet-0d1e2f3a";
/// The security groups of their nodes.
pub const NODE_SECURITY_GROUPS: [&str; 2] = ["sg-0d1e2f3a", "sg-0e1f2a3b"];

impl Rig<'_> {
    /// A cluster of the class for AWS with a pool called `workers`, its `Cluster` edited before it is applied, and
    /// kubelets. Waits until the control plane is there.
    ///
    /// # Errors
    /// When the objects are refused or the control plane does not come up.
    pub async fn topology_on_aws(
        &self,
        replicas: usize,
        edit: impl FnOnce(&mut Value),
    ) -> Result<Topology<'_>> {
        let environment = &self.scenario.environment;
        let (management, tools) = (environment.management(), environment.tools());
        stand_in::install_aws_provider(tools, management.api()).await?;
        self.put_network();
        let workload = shared_workload_api(environment).await?;
        let secrets = control_plane_secrets(&self.scenario.namespace, CLUSTER, workload)?;
        let secrets = json!({"apiVersion": "v1", "kind": "List", "items": secrets});
        self.scenario.apply(&secrets.to_string()).await?;
        self.apply_topology("topology", tools.kubernetes_version(), replicas, edit).await?;
        self.provision_on_aws(management).await?;
        let namespace = &self.scenario.namespace;
        let cluster = WorkloadCluster::existing(management, tools, namespace, CLUSTER, true).await?;
        // Tokens of the second management cluster expire within seconds.
        let join = Join::Marker(cluster.endpoint().to_owned());
        let kubelets = self.scenario.kubelets(&cluster, join).await?;
        Ok(Topology::new(self, cluster, kubelets))
    }

    /// What Cluster API Provider AWS makes of the network of a cluster, and the image of the nodes.
    fn put_network(&self) {
        let (simulator, scope) = (self.scenario.simulator(), self.scenario.scope());
        let owned = (format!("sigs.k8s.io/cluster-api-provider-aws/cluster/{CLUSTER}"), "owned".to_owned());
        let tags = |role: &str| {
            let role = ("sigs.k8s.io/cluster-api-provider-aws/role".to_owned(), role.to_owned());
            [owned.clone(), role].into()
        };
        let subnet = Subnet {
            id: PRIVATE_SUBNET.to_owned(),
            vpc: VPC.to_owned(),
            zone: format!("{}a", self.scenario.region),
            cidr: "10.0.64.0/20".to_owned(),
            addresses: 4_000,
            tags: tags("private"),
        };
        simulator.put_subnet(&scope, subnet);
        for (id, role) in NODE_SECURITY_GROUPS.into_iter().zip(["node", "lb"]) {
            let name = format!("{CLUSTER}-{role}");
            let group = SecurityGroup { tags: tags(role), ..SecurityGroup::new(id, VPC, &name) };
            simulator.put_security_group(&scope, group);
        }
        simulator.put_instance_profile(&scope, "nodes.cluster-api-provider-aws.sigs.k8s.io");
        let version = self.scenario.environment.tools().kubernetes_version();
        simulator.put_parameter(&scope, &format!("/images/node/{version}"), "ami-0a1b2c3d");
    }

    /// Reports in a management cluster what Cluster API Provider AWS would: the network is provisioned, and so is the
    /// machine of the control plane, whose Node has joined. A move drops statuses, so that this is needed again after it.
    ///
    /// # Errors
    /// When core does not make the objects in time, or an API server refuses.
    pub async fn provision_on_aws(&self, management: &Management) -> Result<()> {
        self.provision_network(management).await?;
        let (client, workload) =
            (management.api().client().await?, shared_workload_api(&self.scenario.environment).await?);
        let name = format!("control-plane-{}", self.scenario.namespace);
        let provider_id = format!("aws:///{}a/i-{name}", self.scenario.region);
        let machines = self.of_aws(&client, "AWSMachine");
        let machine = the_one(&machines).await?.name_any();
        let joined = json!({"apiVersion": "v1", "kind": "List", "items": [
            {
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": {"node-role.kubernetes.io/control-plane": ""}},
                "spec": {"providerID": provider_id, "unschedulable": true},
            },
            // kubeadm writes it once the first machine has initialized the cluster.
            {
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "kubeadm-config", "namespace": "kube-system"},
                "data": {"ClusterConfiguration": "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n"},
            },
        ]});
        let apply = ["apply", "--server-side", "--force-conflicts", "--filename=-"];
        workload.kubectl().feed(apply, &joined.to_string()).await?;
        provision(&machines, &machine, &json!({"spec": {"providerID": provider_id}})).await
    }

    /// Reports that the network is provisioned, and that the API server is the one that stub control planes share.
    pub(crate) async fn provision_network(&self, management: &Management) -> Result<()> {
        let (client, workload) =
            (management.api().client().await?, shared_workload_api(&self.scenario.environment).await?);
        let (host, port) = workload
            .access()
            .server
            .trim_start_matches("https://")
            .split_once(':')
            .context("an address without port")?;
        let networks = self.of_aws(&client, "AWSCluster");
        let spec = json!({"spec": {
            "controlPlaneEndpoint": {"host": host, "port": port.parse::<u16>()?},
            "network": {"vpc": {"id": VPC}},
        }});
        provision(&networks, &the_one(&networks).await?.name_any(), &spec).await
    }

    /// A kind of Cluster API Provider AWS in the test's namespace.
    #[must_use]
    pub fn of_aws(&self, client: &Client, kind: &str) -> Api<DynamicObject> {
        dynamic(client, &self.scenario.namespace, "infrastructure.cluster.x-k8s.io", "v1beta2", kind)
    }
}

/// The only object of a kind, once it exists.
async fn the_one(api: &Api<DynamicObject>) -> Result<DynamicObject> {
    eventually("there is one", async || {
        let mut all = api.list(&ListParams::default()).await?.items;
        let count = all.len();
        Ok(Look::from_option(all.pop().filter(|_| count == 1), format!("{count} objects")))
    })
    .await
}

async fn provision(api: &Api<DynamicObject>, name: &str, spec: &Value) -> Result<()> {
    api.patch(name, &PatchParams::default(), &Patch::Merge(spec)).await?;
    let ready = json!({"status": {"ready": true}});
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(ready)).await?;
    Ok(())
}
