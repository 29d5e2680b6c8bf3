//! What the pools of a management cluster use.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use capasg_api::{ASGIdentity, ASGMachinePool, names::labels, pool::AdoptionPolicy};
use capasg_cloud::QueueName;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, Client, ResourceExt as _, api::ListParams};

use super::{
    identities::Identities,
    usage::{Usage, Used},
};
use crate::cli::EventQueues;

/// The environment variable of the manager with its event queues.
const QUEUES: &str = "CAPASG_EVENT_QUEUE";
/// The value of the provider's label.
const PROVIDER: &str = "infrastructure-asg";

/// Reads pools, identities and the manager's Deployments, and adds what the pools of an identity use to what flags say, which
/// comes first. Without an identity, these are the pools that use the credentials of the manager.
///
/// # Errors
/// If the API server rejects a read, the identity does not exist, or Regions are of different partitions.
pub async fn read(client: &Client, usage: Usage, identity: Option<&str>) -> Result<(Usage, Vec<String>)> {
    let pools: Api<ASGMachinePool> = Api::all(client.clone());
    let pools = pools.list(&ListParams::default()).await.context("cannot read ASGMachinePools")?.items;
    let selector = ListParams::default().labels(&format!("{}={PROVIDER}", labels::PROVIDER));
    let managers: Api<Deployment> = Api::all(client.clone());
    let managers = managers.list(&selector).await.context("cannot read Deployments")?.items;
    let queues: Vec<String> = managers.iter().flat_map(queues_of).collect();
    let identities: Api<ASGIdentity> = Api::all(client.clone());
    let identities =
        identities.list(&ListParams::default()).await.context("cannot read ASGIdentities")?.items;
    of_identity(usage, &pools, &queues, &Identities(&identities), identity)
}

/// What the pools that use an identity, or the credentials of the manager, use in AWS.
fn of_identity(
    mut usage: Usage,
    pools: &[ASGMachinePool],
    queues: &[String],
    identities: &Identities<'_>,
    identity: Option<&str>,
) -> Result<(Usage, Vec<String>)> {
    let (own, others): (Vec<_>, Vec<_>) =
        pools.iter().cloned().partition(|pool| identities.of_pool(pool).as_deref() == identity);
    match identity {
        Some(name) => identities.restrict(&mut usage, name)?,
        None => identities.add_assumed(&mut usage, pools),
    }
    let (usage, mut warnings) = merged(usage, &own, queues)?;
    let of_others: BTreeSet<String> = others.iter().filter_map(|pool| identities.of_pool(pool)).collect();
    if identity.is_none() && !of_others.is_empty() {
        let names: Vec<&str> = of_others.iter().map(String::as_str).collect();
        warnings.push(format!(
            "the pools that use the identities {} are not included: their roles have policies of their own (--identity)",
            names.join(", ")
        ));
    }
    Ok((usage, warnings))
}

/// The values of `--event-queue` of a Deployment.
fn queues_of(deployment: &Deployment) -> Vec<String> {
    let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let containers = pod.map(|pod| pod.containers.as_slice()).unwrap_or_default();
    let of_args = |arg: &String| arg.strip_prefix("--event-queue=").map(str::to_owned);
    let of_env = containers.iter().filter_map(|container| {
        let env = container.env.iter().flatten().find(|env| env.name == QUEUES)?;
        env.value.clone()
    });
    let args = containers.iter().flat_map(|container| container.args.iter().flatten().filter_map(of_args));
    of_env.chain(args).collect()
}

/// What these pools use, in addition to what flags say; and what a person has to know about it.
fn merged(mut usage: Usage, pools: &[ASGMachinePool], queues: &[String]) -> Result<(Usage, Vec<String>)> {
    let mut warnings = Vec::new();
    let profiles: BTreeSet<String> =
        pools.iter().filter_map(|pool| pool.spec.machine.iam_instance_profile.clone()).collect();
    if usage.roles.is_empty() {
        for profile in &profiles {
            let role = role_of(profile);
            warnings.push(format!(
                "the role of the instance profile {profile} is assumed to be {role}: if it has another name, pass --role"
            ));
            usage.roles.insert(role);
        }
    }
    usage.namespaces.extend(pools.iter().filter_map(kube::ResourceExt::namespace));
    usage.regions.extend(pools.iter().map(|pool| pool.spec.region.clone()));
    usage.adopts |= pools.iter().any(|pool| pool.spec.adoption_policy == Some(AdoptionPolicy::Adopt));
    if usage.parameters == Used::Any {
        let own = pools.iter().filter_map(|pool| pool.spec.machine.image.ssm_parameter.clone());
        usage.parameters = Used::Only(own.collect());
    }
    if usage.queues == Used::Any {
        usage.queues = Used::Only(queues_in(queues, &usage.regions)?);
    }
    for pool in pools {
        for key in keys_of(pool) {
            if key.starts_with("arn:") {
                usage.keys.insert(key);
            } else {
                warnings.push(format!(
                    "the key {key} of ASGMachinePool {}/{} is not named by its ARN: pass --kms-key",
                    pool.namespace().unwrap_or_default(),
                    pool.name_any()
                ));
            }
        }
    }
    Ok((usage.with_partition()?, warnings))
}

/// An ARN keeps account and partition; a profile by its name is in the account of the pools.
fn role_of(profile: &str) -> String {
    profile.replacen(":instance-profile/", ":role/", 1)
}

fn keys_of(pool: &ASGMachinePool) -> Vec<String> {
    let machine = &pool.spec.machine;
    let root = machine.root_volume.iter().filter_map(|volume| volume.kms_key_id.clone());
    root.chain(machine.data_volumes.iter().filter_map(|volume| volume.kms_key_id.clone())).collect()
}

/// The queues of these Regions.
fn queues_in(values: &[String], regions: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for value in values {
        let queues: EventQueues =
            value.parse().with_context(|| format!("the event queue {value} is invalid"))?;
        for region in regions {
            match queues.of(region) {
                Some(QueueName::Name(name)) => names.insert(name.clone()),
                Some(QueueName::Url(url)) => names.insert(url.clone()),
                None => false,
            };
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pool(namespace: &str, region: &str, machine: &Value) -> ASGMachinePool {
        let mut machine = machine.clone();
        machine["securityGroups"] = json!([{"id": "sg-0a1b2c3d"}]);
        serde_json::from_value(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
            "kind": "ASGMachinePool",
            "metadata": {"name": "workers", "namespace": namespace},
            "spec": {
                "region": region,
                "subnets": [{"id": "subnet-0a1b2c3d"}],
                "instanceTypes": [{"type": "m7i.large"}],
                "machine": machine,
            },
        }))
        .unwrap()
    }

    fn set(values: &[&str]) -> BTreeSet<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    #[test]
    fn what_pools_use_restricts_the_policies() {
        let key = "arn:aws:kms:eu-west-1:111122223333:key/a";
        let pools = [
            pool(
                "a",
                "eu-west-1",
                &json!({
                    "image": {"ssmParameter": "/images/{version}"},
                    "iamInstanceProfile": "nodes",
                    "rootVolume": {"kmsKeyID": key},
                }),
            ),
            pool(
                "b",
                "eu-central-1",
                &json!({
                    "image": {"id": "ami-0a1b2c3d"},
                    "iamInstanceProfile": "arn:aws:iam::111122223333:instance-profile/x/other",
                    "dataVolumes": [{"deviceName": "/dev/xvdb", "sizeGiB": 1, "kmsKeyID": "alias/b"}],
                }),
            ),
        ];
        let queues = ["capasg,us-east-1=other".to_owned(), "none".to_owned()];
        let (usage, warnings) = merged(Usage::default(), &pools, &queues).unwrap();
        assert_eq!(usage.partition(), "aws");
        assert_eq!(usage.regions, set(&["eu-central-1", "eu-west-1"]));
        assert_eq!(usage.namespaces, set(&["a", "b"]));
        assert_eq!(usage.roles, set(&["nodes", "arn:aws:iam::111122223333:role/x/other"]));
        assert_eq!(usage.parameters, Used::Only(set(&["/images/{version}"])));
        assert_eq!(usage.queues, Used::Only(set(&["capasg"])));
        assert_eq!(usage.keys, set(&[key]));
        assert!(!usage.adopts);
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert!(warnings[2].contains("alias/b of ASGMachinePool b/workers"), "{warnings:?}");
    }

    #[test]
    fn flags_come_first() {
        let pools = [pool(
            "a",
            "cn-north-1",
            &json!({"image": {"id": "ami-0a1b2c3d"}, "iamInstanceProfile": "nodes"}),
        )];
        let flags = Usage {
            roles: set(&["own"]),
            queues: Used::Only(set(&["mine"])),
            parameters: Used::Only(set(&["/own"])),
            ..Usage::default()
        };
        let (usage, warnings) = merged(flags.clone(), &pools, &["capasg".to_owned()]).unwrap();
        assert_eq!(
            (&usage.roles, &usage.queues, &usage.parameters),
            (&flags.roles, &flags.queues, &flags.parameters)
        );
        assert!(warnings.is_empty(), "{warnings:?}");
        assert_eq!(usage.partition(), "aws-cn");
        let two = [pools[0].clone(), pool("a", "us-east-1", &json!({"image": {"id": "ami-0a1b2c3d"}}))];
        assert!(merged(Usage::default(), &two, &[]).is_err(), "no role is in two partitions");
    }

    #[test]
    fn the_pools_of_each_identity_are_its_own() {
        let identity = |name: &str, spec: Value| -> ASGIdentity {
            serde_json::from_value(json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "ASGIdentity",
                "metadata": {"name": name}, "spec": spec,
            }))
            .unwrap()
        };
        let hub = "arn:aws:iam::111122223333:role/hub";
        let all = [
            identity("hub", json!({"type": "Role", "role": {"arn": hub, "externalID": "x"}})),
            identity(
                "team",
                json!({
                    "type": "Role", "eventQueue": "events",
                    "role": {"arn": "arn:aws:iam::444455556666:role/capasg", "sourceIdentityRef": {"name": "hub"}},
                }),
            ),
            identity("manager", json!({"type": "Controller"})),
            identity(
                "loop",
                json!({"type": "Role", "role": {"arn": hub, "sourceIdentityRef": {"name": "loop"}}}),
            ),
        ];
        let using = |namespace: &str, region: &str, kind: &str, name: &str| {
            let mut pool = pool(namespace, region, &json!({"image": {"id": "ami-0a1b2c3d"}}));
            let used = json!({"kind": kind, "name": name, "origin": "Pool"});
            pool.status = Some(serde_json::from_value(json!({"identity": used})).unwrap());
            pool
        };
        let pools = [
            pool("own", "eu-west-1", &json!({"image": {"id": "ami-0a1b2c3d"}})),
            using("named", "eu-west-1", "ASGIdentity", "manager"),
            using("team", "cn-north-1", "ASGIdentity", "team"),
            using("loop", "us-east-1", "ASGIdentity", "loop"),
            using("capa", "us-west-2", "AWSClusterRoleIdentity", "theirs"),
        ];
        let identities = Identities(&all);
        let queues = ["capasg".to_owned()];
        let (usage, warnings) = of_identity(Usage::default(), &pools, &queues, &identities, None).unwrap();
        assert_eq!(usage.namespaces, set(&["named", "own"]));
        assert_eq!(usage.regions, set(&["eu-west-1"]));
        let assumed: Vec<_> =
            usage.identities.iter().map(|one| (one.role.as_str(), one.external_id.as_deref())).collect();
        assert_eq!(assumed, [(hub, Some("x"))]);
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(warning.contains("AWSClusterRoleIdentity/theirs, loop, team"), "{warning}");
        let (usage, warnings) =
            of_identity(Usage::default(), &pools, &queues, &identities, Some("team")).unwrap();
        assert_eq!(usage.namespaces, set(&["team"]));
        assert_eq!(usage.account.as_deref(), Some("444455556666"));
        assert_eq!(usage.queues, Used::Only(set(&["events"])));
        assert!(usage.identities.is_empty() && warnings.is_empty(), "{warnings:?}");
        assert!(of_identity(Usage::default(), &pools, &queues, &identities, Some("missing")).is_err());
    }
}
