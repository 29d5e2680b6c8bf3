//! No tenant reaches what belongs to another one, whatever it writes into the objects of its namespace.

use anyhow::{Context as _, Result, ensure};
use capasg_api::names::{annotations, aws_name, finalizers, machine_name, tags};
use capasg_e2e::{CLUSTER, DEADLINE, Rig, Setup, condition, eventually, rule};
use capasg_environment::Look;
use capasg_fake_aws::{DEFAULT_ACCOUNT, Role, Scope, Service, Tree};
use kube::ResourceExt as _;
use serde_json::{Value, json};

/// A user who may do everything in one namespace, and nothing elsewhere.
const TENANT: &str = "tenant";

/// What happened to the victim's group since a mark.
fn touched(victim: &Rig<'_>, mark: u64, group: &str) -> Vec<String> {
    let calls = victim.mutations_since(mark).into_iter();
    calls.filter(|call| call.groups.iter().any(|name| name == group)).map(|call| call.action).collect()
}

fn apply(rig: &Rig<'_>, object: &Value) -> impl Future<Output = Result<String>> {
    let text = object.to_string();
    async move { rig.scenario.apply(&text).await }
}

/// The steps by which a user of one namespace once deleted the group of another: read its owner ID where it is shown, name its
/// group, write both into a pool of one's own, and delete that pool. Here as an administrator of the API server, so that
/// nothing but the controller stands in the way.
// Rules: T2
#[tokio::test]
async fn a_copied_owner_id_reaches_no_group_of_another_namespace() -> Result<()> {
    rule("t2-victim", Setup::default(), async |victim| {
        victim.run(&victim.pool("workers").replicas(2), 2).await?;
        let object = victim.pools().get("workers").await?;
        let owner = object.annotations().get(annotations::OWNER_ID).context("an owner ID")?.clone();
        let arn = object.spec.provider_id.clone().context("an ARN")?;
        let group = victim.group()?;
        let (mark, instances) = (victim.mark(), group.instances.clone());
        rule("t2-thief", Setup::default(), async |thief| {
            // 1. The condition of a pool with the ARN says nothing of the owner.
            let pool = thief
                .pool("thief")
                .replicas(1)
                .in_region(&victim.scenario.region)
                .with("spec/providerID", arn.as_str())
                .with("metadata/annotations", json!({annotations::OWNER_ID: "0123456789abcdef"}));
            thief.apply(&pool).await?;
            let refused = |pool: &capasg_api::ASGMachinePool| {
                let status = pool.status.clone().unwrap_or_default();
                let told = condition(&status.conditions, "GroupReady");
                Look::when(told == "False/GroupNotOwned", format!("{told} {status:?}"))
            };
            thief.pool_until("thief", capasg_e2e::DEADLINE, refused).await?;
            let said = format!("{:?}", thief.pools().get("thief").await?.status);
            ensure!(!said.contains(&owner), "the owner ID is shown: {said}");
            let events = thief.scenario.kubectl(&["get", "events", "--output=json"]).await?;
            ensure!(!events.contains(&owner), "the owner ID is in an event");
            // 2. With the ID that instances have as a tag: neither while the pool exists, nor when it is deleted.
            thief.patch_pool("thief", &json!({"metadata": {"annotations": {annotations::OWNER_ID: owner}}})).await?;
            thief.patch_owner("thief", &json!({"spec": {"replicas": 5}})).await?;
            thief.pool_until("thief", capasg_e2e::DEADLINE, refused).await?;
            thief.delete("thief").await?;
            // 3. Without Cluster and MachinePool, with everything that a pool has that owns a group.
            let mut second = pool.ours();
            second["metadata"] = json!({
                "name": "second",
                "annotations": {annotations::OWNER_ID: owner},
                "finalizers": [finalizers::POOL],
                "labels": {"cluster.x-k8s.io/cluster-name": "prod"},
            });
            apply(thief, &second).await?;
            let kubectl = &thief.scenario;
            kubectl.kubectl(&["delete", "asgmachinepool", "second", "--wait=true", "--timeout=60s"]).await?;
            // 4. An ASGMachine that stands for an instance of the other namespace, owned by a pool that has a group.
            thief.run(&thief.pool("own").replicas(1), 1).await?;
            let own = thief.pools().get("own").await?;
            let foreign = instances.first().context("an instance")?;
            let zone = victim.instances().into_iter().find(|one| one.id == *foreign).map(|one| one.zone);
            apply(
                thief,
                &json!({
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "ASGMachine",
                    "metadata": {
                        "name": machine_name("own", foreign),
                        "labels": own.labels(),
                        "finalizers": [finalizers::MACHINE],
                        "ownerReferences": [{
                            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "ASGMachinePool",
                            "name": "own", "uid": own.uid(),
                        }],
                    },
                    "spec": {
                        "instanceID": foreign,
                        "providerID": format!("aws:///{}/{foreign}", zone.unwrap_or_default()),
                    },
                }),
            )
            .await?;
            let name = machine_name("own", foreign);
            kubectl.kubectl(&["delete", "asgmachine", &name, "--wait=false"]).await?;
            // A Machine of it is drained meanwhile, and the pool scales: it reads EC2 and its group again.
            thief.patch_owner("own", &json!({"spec": {"replicas": 2}})).await?;
            eventually("it has two of its own", async || {
                let pool = thief.pools().get("own").await?;
                let group = thief.group_of(&pool).context("a group")?;
                Ok(Look::when(group.instances.len() == 2, format!("{group:?}")))
            })
            .await?;
            let released = json!({"metadata": {"finalizers": null}}).to_string();
            kubectl.kubectl(&["patch", "asgmachine", &name, "--type=merge", "--patch", &released]).await?;
            ensure!(touched(victim, mark, &group.name).is_empty(), "{:?}", touched(victim, mark, &group.name));
            thief.delete("own").await
        })
        .await?;
        ensure!(touched(victim, mark, &group.name).is_empty(), "{:?}", touched(victim, mark, &group.name));
        ensure!(victim.group()?.instances == instances, "its instances stay");
        // Not their Nodes: the Clusters of tests share a workload cluster, in which core may delete the Node that the forged
        // ASGMachine names.
        let machines = victim.machines_of("workers").await?;
        let stay = machines.iter().filter(|machine| machine.metadata.deletion_timestamp.is_none()).count();
        ensure!(stay == 2, "{stay} Machines stay");
        Ok(())
    })
    .await
}

/// The API server keeps owner ID, ARN, list of instances and finalizers for the controller and for users with a verb of their
/// own on a cluster-scoped resource: all verbs on all resources of a namespace do not give it.
// Rules: T2
#[tokio::test]
async fn a_tenant_may_not_write_what_says_who_owns_a_group() -> Result<()> {
    rule("t2-policy", Setup::default(), async |rig| {
        let (namespace, kubectl) = (rig.scenario.namespace.as_str(), &rig.scenario);
        let tenant = format!("{TENANT}-{namespace}");
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": TENANT},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": TENANT},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": TENANT},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": tenant}],
        });
        apply(rig, &json!({"apiVersion": "v1", "kind": "List", "items": [role, binding]})).await?;
        let as_tenant = format!("--as={tenant}");
        let refused = async |field: &str, object: &Value| -> Result<()> {
            let answer = kubectl.feed(&["create", "--filename=-", &as_tenant], &object.to_string()).await;
            let error = answer.err().with_context(|| format!("{field} was accepted"))?;
            ensure!(format!("{error:#}").contains(field), "{error:#}");
            Ok(())
        };
        let mut forged = rig.pool("forged").ours();
        forged["metadata"]["annotations"] = json!({annotations::OWNER_ID: "0123456789abcdef"});
        refused("owner-id", &forged).await?;
        let mut forged = rig.pool("forged").ours();
        forged["spec"]["providerID"] = json!(format!(
            "arn:aws:autoscaling:{}:123456789012:autoScalingGroup:u:autoScalingGroupName/any",
            rig.scenario.region
        ));
        refused("spec.providerID", &forged).await?;
        let mut forged = rig.pool("forged").ours();
        forged["spec"]["providerIDList"] = json!(["aws:///eu-west-1a/i-0a1b2c3d"]);
        refused("spec.providerIDList", &forged).await?;
        let mut forged = rig.pool("forged").ours();
        forged["metadata"]["finalizers"] = json!([finalizers::POOL]);
        refused("metadata.finalizers", &forged).await?;

        let machine = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "ASGMachine",
            "metadata": {"name": "forged"},
            "spec": {"instanceID": "i-0a1b2c3d", "providerID": "aws:///eu-west-1a/i-0a1b2c3d"},
        });
        refused("may create ASGMachines", &machine).await?;

        // A GitOps controller with an account of the namespace applies what a user may write, again and again.
        let pool = rig.pool("workers").replicas(1);
        let gitops = ["apply", "--server-side", "--field-manager=gitops", "--filename=-", as_tenant.as_str()];
        kubectl.feed(&gitops, &pool.documents()).await?;
        rig.running("workers", 1).await?;
        kubectl.feed(&gitops, &pool.documents()).await?;
        let patch = async |field: &str, patch: Value| -> Result<()> {
            let text = patch.to_string();
            let kind = if field.starts_with("asgmachine:") { "asgmachine" } else { "asgmachinepool" };
            let name = field.strip_prefix("asgmachine:").unwrap_or("workers");
            let args = ["patch", kind, name, "--type=merge", "--patch", &text, as_tenant.as_str()];
            let error = kubectl.kubectl(&args).await.err().with_context(|| format!("accepted: {text}"))?;
            ensure!(format!("{error:#}").contains("assign-owner"), "{error:#}");
            Ok(())
        };
        patch("", json!({"metadata": {"annotations": {annotations::OWNER_ID: null}}})).await?;
        patch("", json!({"metadata": {"annotations": {annotations::OWNER_ID: "0123456789abcdef"}}})).await?;
        patch("", json!({"metadata": {"finalizers": []}})).await?;
        patch("", json!({"spec": {"providerIDList": []}})).await?;
        let machine = rig.asg_machines_of("workers").await?.first().context("an ASGMachine")?.name_any();
        patch(&format!("asgmachine:{machine}"), json!({"metadata": {"finalizers": []}})).await?;
        // What is the tenant's to write stays so.
        let text = json!({"metadata": {"labels": {"team": "a"}}, "spec": {"minSize": 1}}).to_string();
        let args =
            ["patch", "asgmachinepool", "workers", "--type=merge", "--patch", &text, as_tenant.as_str()];
        kubectl.kubectl(&args).await?;
        kubectl.kubectl(&["delete", "machinepool", "workers", "--wait=false", as_tenant.as_str()]).await?;
        rig.gone("workers").await?;
        // An administrator, such as the user of clusterctl, creates what was moved.
        let answer = kubectl.apply(&forged.to_string()).await;
        ensure!(answer.is_ok(), "{answer:?}");
        eventually("it is deleted", async || {
            let text = json!({"metadata": {"finalizers": null}}).to_string();
            let args = ["patch", "asgmachinepool", "forged", "--type=merge", "--patch", &text];
            let _ = kubectl.kubectl(&args).await;
            let _ = kubectl.kubectl(&["delete", "asgmachinepool", "forged", "--wait=false"]).await;
            Ok(Look::when(rig.pools().get_opt("forged").await?.is_none(), "it exists".to_owned()))
        })
        .await
    })
    .await
}

/// Waits until a condition of a pool is false for this reason; answers the whole status, as its user reads it.
async fn is_told(rig: &Rig<'_>, name: &str, what: &str, reason: &str) -> Result<String> {
    rig.pool_until(name, DEADLINE, |pool| {
        let status = pool.status.clone().unwrap_or_default();
        let told = condition(&status.conditions, what);
        Look::when(told == format!("False/{reason}"), format!("{told} {status:?}"))
    })
    .await?;
    Ok(format!("{:?}", rig.pools().get(name).await?.status))
}

/// The group's name of another namespace brings neither its group nor its launch template, and a launch template whose name
/// collides with that of a pool is left as it is: names end with a short hash, which a user can collide.
// Rules: T2
#[tokio::test]
async fn a_launch_template_of_another_namespace_is_neither_used_nor_deleted() -> Result<()> {
    rule("t2-template", Setup::default(), async |victim| {
        victim.run(&victim.pool("workers").replicas(1), 1).await?;
        let owner = victim.pools().get("workers").await?.annotations().get(annotations::OWNER_ID).cloned();
        let (owner, group) = (owner.context("an owner ID")?, victim.group()?);
        let [template] = &victim.templates()[..] else { anyhow::bail!("{:?}", victim.templates()) };
        let simulator = victim.scenario.simulator();
        rule("t2-template-thief", Setup::default(), async |thief| {
            let there = |name: &str| thief.pool(name).replicas(1).in_region(&victim.scenario.region);
            thief.apply(&there("named").with("spec/group/name", group.name.as_str())).await?;
            let said = is_told(thief, "named", "GroupReady", "GroupNotOwned").await?;
            ensure!(!said.contains(&owner), "{said}");
            // With the tags of the victim and the name that the pool's template will have.
            let name = aws_name(&thief.scenario.namespace, CLUSTER, "second");
            let pairs =
                template.tags.iter().map(|(key, value)| Tree::new().with("Key", key).with("Value", value));
            let tagged =
                Tree::new().with("ResourceType", "launch-template").with("Tags", pairs.collect::<Vec<_>>());
            let data = Tree::new().with("ImageId", "ami-0a1b2c3d").with("InstanceType", "m7i.large");
            let params = Tree::new()
                .with("LaunchTemplateName", &name)
                .with("LaunchTemplateData", data)
                .with("TagSpecifications", vec![tagged]);
            let scope = Scope::region(&victim.scenario.region);
            simulator.call(&scope, Service::Ec2, "CreateLaunchTemplate", params)?;
            let found = || victim.templates().into_iter().find(|one| one.name == name);
            let before = found().context("the template")?;
            ensure!(before.tags.get(tags::OWNER_ID) == Some(&owner), "{before:?}");
            let mark = victim.mark();
            thief.apply(&there("second")).await?;
            let said = is_told(thief, "second", "LaunchTemplateReady", "Rejected").await?;
            ensure!(!said.contains(&owner) && !said.contains(&victim.scenario.namespace), "{said}");
            for pool in ["named", "second"] {
                thief.scenario.kubectl(&["delete", "machinepool", pool, "--timeout=60s"]).await?;
            }
            ensure!(found() == Some(before), "{:?}", found());
            let calls = victim.mutations_since(mark);
            let deleted = calls.iter().filter(|call| call.action.starts_with("Delete"));
            ensure!(deleted.count() == 0, "{calls:?}");
            Ok(())
        })
        .await?;
        ensure!(victim.templates().contains(template) && victim.group()? == group, "it was changed");
        let scope = Scope::region(&victim.scenario.region);
        for other in victim.templates().into_iter().filter(|one| one.id != template.id) {
            let id = Tree::new().with("LaunchTemplateId", other.id);
            simulator.call(&scope, Service::Ec2, "DeleteLaunchTemplate", id)?;
        }
        victim.delete("workers").await
    })
    .await
}

/// Whoever may write into the event queue of an identity reaches no instance that the pools of this identity do not have:
/// neither with the account of the other one in the message, nor with its own.
// Rules: T2
#[tokio::test]
async fn messages_in_the_queue_of_an_identity_reach_no_pool_of_another() -> Result<()> {
    const THIEF: &str = "555566667777";
    rule("t2-queue", Setup::default(), async |rig| {
        let (simulator, namespace) = (rig.scenario.simulator(), &rig.scenario.namespace);
        let region = rig.scenario.region.as_str();
        let arn = format!("arn:aws:iam::{THIEF}:role/{namespace}");
        simulator.put_role(Role::trusting(&arn, DEFAULT_ACCOUNT).external_id("thief"));
        let scope = Scope::account(THIEF, region);
        let url = simulator.put_queue(&scope, "capasg");
        let source = json!({
            "type": "Role", "role": {"arn": arn, "externalID": "thief"}, "eventQueue": "capasg",
        });
        let thief = rig.identity("thief", &source).await?;
        rig.apply(&rig.pool("workers").replicas(2)).await?;
        let uses = json!({"kind": "ASGIdentity", "name": thief});
        rig.apply(&rig.pool("thief").replicas(1).with("spec/identityRef", uses)).await?;
        rig.running("workers", 2).await?;
        rig.running("thief", 1).await?;
        let group = |name: &'static str| async move {
            let pool = rig.pools().get(name).await?;
            rig.group_of(&pool).with_context(|| format!("{name} has no group"))
        };
        let (victim, own) = (group("workers").await?, group("thief").await?);
        let mark = rig.mark();
        for account in [DEFAULT_ACCOUNT, THIEF] {
            for instance in &victim.instances {
                let warning = json!({
                    "version": "0", "id": "0b1c2d3e-0000-4000-8000-000000000000", "account": account,
                    "region": region, "time": "2026-01-01T00:00:00Z", "source": "aws.ec2",
                    "detail-type": "EC2 Spot Instance Interruption Warning",
                    "resources": [format!("arn:aws:ec2:{region}:{account}:instance/{instance}")],
                    "detail": {"instance-id": instance, "instance-action": "terminate"},
                });
                let ended = json!({
                    "version": "0", "id": "1b1c2d3e-0000-4000-8000-000000000000", "account": account,
                    "region": region, "time": "2026-01-01T00:00:00Z", "source": "aws.autoscaling",
                    "detail-type": "EC2 Instance Terminate Successful", "resources": [victim.arn],
                    "detail": {"EC2InstanceId": instance, "AutoScalingGroupName": victim.name, "StatusCode": "Complete"},
                });
                let action = json!({
                    "version": "0", "id": "2b1c2d3e-0000-4000-8000-000000000000", "account": account,
                    "region": region, "time": "2026-01-01T00:00:00Z", "source": "aws.autoscaling",
                    "detail-type": "EC2 Instance-terminate Lifecycle Action", "resources": [victim.arn],
                    "detail": {
                        "EC2InstanceId": instance, "AutoScalingGroupName": victim.name,
                        "LifecycleHookName": "asg-drain", "LifecycleActionToken": "0b1c2d3e",
                        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
                    },
                });
                for body in [warning, ended, action] {
                    let message = Tree::new().with("QueueUrl", &url).with("MessageBody", body.to_string());
                    simulator.call(&scope, Service::Sqs, "SendMessage", message)?;
                }
            }
        }
        eventually("all messages are deleted", async || {
            let left = simulator.messages(&scope);
            Ok(Look::when(left == 0, format!("{left} are left")))
        })
        .await?;
        // Both pools go on, so that whatever a message began would be seen.
        rig.scale("workers", 3).await?;
        rig.running("workers", 3).await?;
        rig.running("thief", 1).await?;
        let (now, ours) = (group("workers").await?, group("thief").await?);
        ensure!(victim.instances.iter().all(|one| now.instances.contains(one)), "{victim:?} {now:?}");
        ensure!(ours.instances == own.instances, "{own:?} {ours:?}");
        let of_victim = |call: &capasg_fake_aws::LogEntry| {
            call.groups.contains(&victim.name) || call.instances.iter().any(|one| victim.instances.contains(one))
        };
        let calls = simulator.log(&capasg_fake_aws::LogFilter::region(region).since(mark));
        let wrong = calls.iter().find(|call| call.account == THIEF && call.action != "SendMessage" && of_victim(call));
        ensure!(wrong.is_none(), "{wrong:?}");
        for name in ["workers", "thief"] {
            rig.scenario.kubectl(&["delete", "machinepool", name, "--wait=false"]).await?;
        }
        rig.gone("workers").await?;
        rig.gone("thief").await
    })
    .await
}
