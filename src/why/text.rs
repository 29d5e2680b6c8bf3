//! The text of `capasg why` about a pool.

use std::fmt;

use capasg_api::{
    capi::NodeState,
    conditions::{self, is_negative},
    time::from_kubernetes,
};
use chrono::{DateTime, SecondsFormat, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::pool::{InstanceWhy, PoolWhy};

impl fmt::Display for PoolWhy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, name, status, .. } = self;
        write!(out, "ASGMachinePool {namespace}/{name}")?;
        if let Some(owner) = &self.machine_pool {
            write!(out, " of MachinePool {owner}")?;
        }
        if let Some(cluster) = &self.cluster {
            write!(out, " in Cluster {cluster}")?;
        }
        let phase = status.phase.map_or("Unknown", |phase| phase.as_str());
        writeln!(
            out,
            "\nPhase {phase}: {} desired, {} current, {} ready, {} up to date",
            status.desired_replicas, status.replicas, status.ready_replicas, status.up_to_date_replicas
        )?;
        self.conditions(out)?;
        self.instances(out)?;
        self.failures(out)?;
        self.next(out)
    }
}

impl PoolWhy {
    fn conditions(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (normal, other): (Vec<&Condition>, Vec<&Condition>) =
            self.status.conditions.iter().partition(|condition| is_normal(condition));
        if !other.is_empty() {
            writeln!(out, "\nConditions")?;
        }
        for condition in other {
            self.condition(out, "  ", condition)?;
        }
        let normal: Vec<&str> = normal.iter().map(|condition| condition.type_.as_str()).collect();
        if normal.is_empty() {
            writeln!(out, "\nThe pool has no conditions: no controller has observed it.")
        } else {
            writeln!(out, "\nNormal: {}", normal.join(", "))
        }
    }

    fn condition(&self, out: &mut fmt::Formatter<'_>, indent: &str, condition: &Condition) -> fmt::Result {
        let Condition { type_, status, reason, message, last_transition_time, .. } = condition;
        let since = self.since(from_kubernetes(last_transition_time));
        writeln!(out, "{indent}{type_} {status} {reason} since {since}")?;
        for line in message.lines() {
            writeln!(out, "{indent}  {line}")?;
        }
        Ok(())
    }

    fn since(&self, at: DateTime<Utc>) -> String {
        let minutes = (self.now - at).num_minutes();
        format!("{} ({minutes} min)", at.to_rfc3339_opts(SecondsFormat::Secs, true))
    }

    fn instances(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ready = |one: &&InstanceWhy| {
            one.machine.as_ref().is_some_and(|own| own.state == NodeState::Ready && own.deleting.is_none())
        };
        let (ready, other): (Vec<&InstanceWhy>, Vec<&InstanceWhy>) = self.instances.iter().partition(ready);
        if !other.is_empty() {
            writeln!(out, "\nInstances without a ready Node, or being removed")?;
        }
        for instance in other {
            self.instance(out, instance)?;
        }
        if !ready.is_empty() {
            let nodes = ready.iter().map(|one| {
                let node = one.machine.as_ref().and_then(|own| own.node.as_deref());
                format!("{} ({})", one.id, node.unwrap_or_default())
            });
            writeln!(out, "\nInstances with a ready Node: {}", nodes.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }

    fn instance(&self, out: &mut fmt::Formatter<'_>, instance: &InstanceWhy) -> fmt::Result {
        let mut line = vec![instance.id.clone()];
        line.extend(instance.reported.iter().cloned());
        writeln!(out, "  {}", line.join(" "))?;
        if let Some(at) = instance.launched_at {
            writeln!(out, "    launched {}", self.since(at))?;
        }
        let Some(machine) = &instance.machine else {
            return writeln!(out, "    Cluster API has not created its Machine yet");
        };
        writeln!(out, "    Machine {}: {}", machine.name, observed(machine.state, machine.node.as_deref()))?;
        for condition in &machine.conditions {
            self.condition(out, "      ", condition)?;
        }
        if let Some(deleting) = &machine.deleting {
            return self.condition(out, "      ", deleting);
        }
        let checks = self.checks(machine.state, instance);
        if !checks.is_empty() {
            writeln!(out, "    Check:")?;
        }
        for check in checks {
            writeln!(out, "      * {check}")?;
        }
        Ok(())
    }

    /// What to check for a state, the most frequent cause first.
    fn checks(&self, state: NodeState, instance: &InstanceWhy) -> Vec<String> {
        let Self { status, region, .. } = self;
        let replace = || {
            let machine = instance.machine.as_ref().map_or("", |machine| machine.name.as_str());
            format!(
                "To replace the instance: kubectl delete machine {machine} --namespace {}",
                self.namespace
            )
        };
        let text = |text: &str| text.to_owned();
        match state {
            NodeState::NotJoined => vec![
                format!(
                    "Security groups ({}): the instance must reach the API server of the workload cluster, and the \
                     internet or endpoints for what its bootstrap downloads",
                    status.security_group_ids.join(", ")
                ),
                format!(
                    "Image ({}): it must have the kubelet and the container runtime for version {}, and cloud-init or \
                     Ignition as the bootstrap data require",
                    status.image.as_ref().map_or("unknown", |image| image.id.as_str()),
                    status.version.as_deref().unwrap_or("of the MachinePool")
                ),
                text(
                    "Bootstrap token: it must have been valid when the instance started; tokens expire after 15 minutes \
                     unless the manager of the kubeadm bootstrap provider is configured otherwise. That provider renews \
                     them, and CAPASG writes them into the launch template",
                ),
                text(
                    "Bootstrap config: while nodes are missing, the kubeadm bootstrap provider does not render an edited \
                     KubeadmConfig; set bootstrap.configRef of the MachinePool to one with another name and remove \
                     bootstrap.dataSecretName in the same edit, or delete the Secret of the token in kube-system of the \
                     workload cluster",
                ),
                text(
                    "Clock of the instance: certificates are rejected if it is wrong (Amazon Time Sync, 169.254.169.123)",
                ),
                format!(
                    "Instance profile ({}): the bootstrap and the cloud provider of the Node require its permissions",
                    self.instance_profile.as_deref().unwrap_or("none")
                ),
                format!(
                    "Provider ID: if kubectl get nodes in the workload cluster shows the Node, its spec.providerID must \
                     be {}, which the AWS cloud controller manager or the kubelet sets",
                    instance.provider_id
                ),
                format!(
                    "Console: capasg why asgmachinepool/{} --namespace {} --console {}; serial console and Session \
                     Manager in {region}",
                    self.name, self.namespace, instance.id
                ),
                replace(),
            ],
            NodeState::Deleted => vec![
                text("The kubelet registers its Node only when it starts: restart it on the instance"),
                text("Whether a user, an autoscaler or the cloud controller manager deleted the Node"),
                replace(),
            ],
            NodeState::NotReady => vec![
                text(
                    "Network plugin: its pods must run on the Node (kubectl get pods --all-namespaces --output wide)",
                ),
                text(
                    "Conditions of the Node: kubectl describe node in the workload cluster (memory, disks, runtime)",
                ),
                text("Kubelet: its log on the instance, and whether the instance reaches the API server"),
                replace(),
            ],
            NodeState::MachineNotReady => {
                vec![text("The conditions above, and kubectl describe machine"), replace()]
            }
            NodeState::Unknown => vec![text(
                "Whether the API server of the workload cluster answers the controllers of Cluster API: condition \
                 RemoteConnectionProbe of the Cluster",
            )],
            NodeState::Ready => Vec::new(),
        }
    }

    fn failures(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(failure) = &self.status.last_launch_failure else { return Ok(()) };
        let of = [failure.instance_type.as_deref(), failure.availability_zone.as_deref()];
        let of: Vec<&str> = of.into_iter().flatten().collect();
        let since = self.since(from_kubernetes(&failure.time));
        writeln!(out, "\nLast launch failure: {} {} since {since}", failure.reason, of.join(" "))?;
        writeln!(out, "  {}", failure.message)
    }

    fn next(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rollout) = &self.status.rollout
            && let Some(waits) = rollout.waiting_for
        {
            writeln!(out, "\nThe rollout waits for {}", waits.as_str())?;
        }
        if conditions::is_true(&self.status.conditions, conditions::STALLED) {
            return Ok(());
        }
        let waits = self.instances.iter().any(|one| {
            one.machine
                .as_ref()
                .is_some_and(|own| own.state == NodeState::NotJoined && own.deleting.is_none())
        });
        if waits && self.node_startup_timeout_seconds > 0 {
            writeln!(
                out,
                "\nThe pool is Stalled once an instance has no ready Node for {} s (spec.nodeStartupTimeoutSeconds).",
                self.node_startup_timeout_seconds
            )?;
        }
        Ok(())
    }
}

fn is_normal(condition: &Condition) -> bool {
    condition.status == if is_negative(&condition.type_) { "False" } else { "True" }
}

fn observed(state: NodeState, node: Option<&str>) -> String {
    let node = node.unwrap_or_default();
    match state {
        NodeState::Ready => format!("Node {node} is ready"),
        NodeState::NotJoined => "no Node has joined".to_owned(),
        NodeState::Deleted => format!("Node {node} joined and was deleted"),
        NodeState::NotReady => format!("Node {node} is not ready"),
        NodeState::MachineNotReady => format!("Node {node} is ready, the Machine is not"),
        NodeState::Unknown => "Cluster API does not know its Node".to_owned(),
    }
}

#[cfg(test)]
mod tests;
