//! Several AWS accounts on the real parts: pools with identities of their own, credentials that end in every way, and the
//! identities of Cluster API Provider AWS with its own definitions.

use std::io::Write as _;

use anyhow::{Context as _, Result, ensure};
use capasg_api::{ASGMachinePool, conditions::CLOUD_REACHABLE, identity::IdentityOrigin};
use capasg_e2e::{DEADLINE, Pool, Rig, Setup, condition, eventually, rule};
use capasg_environment::{Look, stand_in};
use capasg_fake_aws::{DEFAULT_ACCOUNT, LogFilter, Role};
use capasg_test_objects::manager_policies;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

/// The account of the identities.
const OTHER: &str = "444455556666";
/// More calls than an identity makes for its pools in two minutes of changes, with three managers.
const MOST_CALLS: usize = 400;

fn account_of(pool: &ASGMachinePool) -> Option<&str> {
    pool.spec.provider_id.as_deref()?.split(':').nth(4)
}

fn origin(pool: &ASGMachinePool) -> Option<IdentityOrigin> {
    Some(pool.status.as_ref()?.identity.as_ref()?.origin)
}

fn uses(pool: Pool, kind: &str, name: &str) -> Pool {
    pool.with("spec/identityRef", json!({"kind": kind, "name": name}))
}

/// Puts an access key into the Secret of an identity, as an operator does who rotates it.
async fn put_key(rig: &Rig<'_>, namespace: &str, name: &str, key: &str) -> Result<()> {
    rig.scenario.simulator().put_access_key(key, &format!("arn:aws:iam::{OTHER}:user/{name}"));
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "stringData": {"AccessKeyID": key, "SecretAccessKey": "simulated"},
    });
    let kubectl = rig.scenario.environment.management().api().kubectl();
    kubectl.feed(["apply", "--filename=-"], &secret.to_string()).await?;
    Ok(())
}

/// Waits until a pool reports why AWS cannot be called for it; answers the message.
async fn unreachable(rig: &Rig<'_>, name: &str, reason: &str) -> Result<String> {
    rig.pool_until(name, DEADLINE, |pool| {
        let conditions = pool.status.clone().unwrap_or_default().conditions;
        let told = condition(&conditions, CLOUD_REACHABLE);
        let message =
            conditions.iter().find(|one| one.type_ == CLOUD_REACHABLE).map(|one| one.message.clone());
        let found = message.filter(|_| told == format!("False/{reason}"));
        Look::from_option(found, format!("{told}, {conditions:?}"))
    })
    .await
}

/// Waits until the identity says whether AWS accepts its credentials.
async fn identity_is(rig: &Rig<'_>, name: &str, ready: &str) -> Result<()> {
    eventually(&format!("{name} is Ready={ready}"), async || {
        let path = "--output=jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
        let told = rig.scenario.kubectl(&["get", "asgidentity", name, path]).await?;
        Ok(Look::when(told == ready, told))
    })
    .await
}

/// The groups of a pool and their instances, which nothing may touch.
async fn size_of(rig: &Rig<'_>, name: &str) -> Result<(Vec<String>, usize, usize)> {
    let pool = rig.pools().get(name).await?;
    let group = rig.group_of(&pool).with_context(|| format!("{name} has no group"))?;
    let machines = rig.machines_of(name).await?;
    let kept = machines.iter().filter(|one| one.metadata.deletion_timestamp.is_none()).count();
    Ok((group.instances, pool.spec.provider_id_list.len(), kept))
}

/// Every call that names a group is made by the identity of its pool; the pools of one identity share the calls that read.
fn calls_are_those_of_each_identity(
    rig: &Rig<'_>,
    regions: [&str; 2],
    identities: &[(String, String)],
) -> Result<()> {
    let simulator = rig.scenario.simulator();
    let mut shared = false;
    for region in regions {
        for call in simulator.log(&LogFilter::region(region)) {
            let caller = call.identity.clone().unwrap_or_default();
            for group in &call.groups {
                let expected = identities.iter().find(|(name, _)| name == group);
                let Some((_, expected)) = expected else { continue };
                // Credentials that are not valid have no caller.
                ensure!(
                    caller.is_empty() || caller.contains(expected),
                    "{group} belongs to {expected}: {call:?}"
                );
            }
            shared |= call.action == "DescribeAutoScalingGroups" && call.groups.len() > 1;
        }
        let counts = simulator.counts(&LogFilter::region(region)).by_identity;
        writeln!(std::io::stderr(), "t1-identities: calls to {region}: {counts:?}")?;
        // Nobody else calls, and none of them without end.
        let expected = |caller: &str| identities.iter().any(|(_, own)| caller.contains(own));
        let other = counts.iter().find(|(caller, calls)| !expected(caller) || **calls > MOST_CALLS);
        ensure!(other.is_none(), "{other:?}");
    }
    ensure!(shared, "pools of one identity are read one by one");
    Ok(())
}

// Rules: T1
#[tokio::test]
async fn three_identities_in_two_accounts_and_regions_live_side_by_side() -> Result<()> {
    rule("t1-identities", Setup::default(), async |rig| {
        let (near, far) = (rig.scenario.region.clone(), rig.scenario.region.replacen("eu", "us", 1));
        let (simulator, namespace) = (rig.scenario.simulator(), rig.scenario.namespace.as_str());
        let _far_kubelets = rig.kubelets_in(&far).await?;
        let arn = format!("arn:aws:iam::{OTHER}:role/{namespace}");
        let trusted = Role::trusting(&arn, DEFAULT_ACCOUNT).external_id("tenant-a");
        simulator.put_role(trusted.clone());
        for principal in [arn.clone(), format!("arn:aws:iam::{OTHER}:user/{namespace}-keys")] {
            simulator.set_policies(&principal, &manager_policies()?).map_err(anyhow::Error::msg)?;
        }
        let source = |arn: &str| json!({"type": "Role", "role": {"arn": arn, "externalID": "tenant-a"}});
        let role = rig.identity("role", &source(&arn)).await?;
        let closed_arn = format!("{arn}-closed");
        let secret = format!("{namespace}-keys");
        put_key(rig, rig.manager_namespace(), &secret, "AKIA444455556666KEY1").await?;
        let keys = rig.identity("keys", &json!({"type": "Secret", "secret": {"name": secret}})).await?;

        let pool = |name: &str, replicas| rig.pool(name).replicas(replicas);
        rig.apply(&pool("own", 1)).await?;
        rig.apply(&uses(pool("role-a", 2), "ASGIdentity", &role)).await?;
        rig.apply(&uses(pool("role-b", 1), "ASGIdentity", &role)).await?;
        rig.apply(&uses(pool("keys", 1).in_region(&far), "ASGIdentity", &keys)).await?;
        // Before the identity exists: afterwards, the pool may be rejected at admission.
        rig.apply(&uses(pool("refused", 1), "ASGIdentity", &format!("{namespace}-closed"))).await?;
        let mut closed = source(&closed_arn);
        closed["allowedNamespaces"] = json!({"names": ["elsewhere"]});
        let closed = rig.identity("closed", &closed).await?;
        let mut identities = Vec::new();
        let (session, user) = (format!("assumed-role/{namespace}/"), format!("user/{secret}"));
        for (name, replicas, account, caller) in [
            ("own", 1, DEFAULT_ACCOUNT, DEFAULT_ACCOUNT),
            ("role-a", 2, OTHER, &session),
            ("role-b", 1, OTHER, &session),
            ("keys", 1, OTHER, &user),
        ] {
            rig.running(name, replicas).await?;
            let pool = rig.pools().get(name).await?;
            ensure!(account_of(&pool) == Some(account), "{name}: {:?}", pool.spec.provider_id);
            identities.push((rig.group_of(&pool).context("a group")?.name, caller.to_owned()));
        }
        let told = unreachable(rig, "refused", "IdentityNotAllowed").await?;
        ensure!(told.contains(&closed) && told.contains(namespace), "{told}");
        ensure!(!simulator.sessions().iter().any(|session| session.role == closed_arn), "it is assumed");
        rig.scenario.kubectl(&["delete", "machinepool", "refused", "--timeout=60s"]).await?;

        // Sessions that expire early, and kill -9 before anybody has seen it.
        ensure!(simulator.expire_sessions(&arn) > 0, "there is a session");
        rig.kill_manager().await?;
        rig.start_manager().await?;
        rig.scale("role-a", 1).await?;
        rig.running("role-a", 1).await?;

        // Access is revoked: the role's trust, and the sessions that it gave.
        simulator.put_role(Role { trusts: Vec::new(), ..trusted.clone() });
        simulator.revoke_sessions(&arn);
        let before = (size_of(rig, "role-a").await?, size_of(rig, "role-b").await?);
        rig.scale("role-a", 3).await?;
        for name in ["role-a", "role-b"] {
            unreachable(rig, name, "AccessDenied").await?;
        }
        identity_is(rig, &role, "False").await?;
        rig.kill_manager().await?;
        rig.scenario.kubectl(&["delete", "machinepool", "role-b", "--wait=false"]).await?;
        // The key is deleted in AWS, and rotated only later.
        simulator.remove_access_key("AKIA444455556666KEY1");
        rig.start_manager().await?;
        rig.scale("own", 2).await?;
        rig.scale("keys", 2).await?;
        rig.running("own", 2).await?;
        for name in ["role-a", "role-b", "keys"] {
            unreachable(rig, name, "AccessDenied").await?;
        }
        let (kept_a, kept_b) = (size_of(rig, "role-a").await?, size_of(rig, "role-b").await?);
        ensure!(kept_a == before.0, "{kept_a:?} of {:?}", before.0);
        ensure!((kept_b.0.len(), kept_b.1) == (1, 1), "{kept_b:?} of {:?}", before.1);
        put_key(rig, rig.manager_namespace(), &secret, "AKIA444455556666KEY2").await?;
        simulator.put_role(trusted);
        rig.running("keys", 2).await?;
        rig.running("role-a", 3).await?;
        identity_is(rig, &role, "True").await?;
        eventually("role-b is deleted", async || {
            let left = rig.groups().into_iter().any(|group| group.name == identities[2].0);
            Ok(Look::when(!left && rig.pools().get_opt("role-b").await?.is_none(), "it exists"))
        })
        .await?;

        for name in ["own", "role-a", "keys"] {
            rig.scenario.kubectl(&["delete", "machinepool", name, "--wait=false"]).await?;
        }
        rig.gone("own").await?;
        eventually("nothing is left in the other region", async || {
            let left = simulator.leftovers(Some(&far));
            Ok(Look::when(left.is_empty(), format!("{left:?}")))
        })
        .await?;
        rig.gone("keys").await?;
        calls_are_those_of_each_identity(rig, [&near, &far], &identities)?;
        let sessions = simulator.sessions().into_iter().filter(|session| session.role == arn).count();
        ensure!((2..=20).contains(&sessions), "{sessions} sessions of the role");
        Ok(())
    })
    .await
}

/// A Role with which operators let the manager use one Secret of the other provider.
fn may_use(rig: &Rig<'_>, namespace: &str, secret: &str) -> Value {
    let user = rig.user();
    let name = format!("capasg-uses-{secret}");
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": name, "namespace": namespace},
            "rules": [{
                "apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret], "verbs": ["get", "use"],
            }],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": name, "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        },
    ]})
}

/// The identities of Cluster API Provider AWS, with its definitions and its rules: in `identityRef`, and inherited from the
/// AWSCluster.
// Rules: T1
#[tokio::test]
async fn identities_of_the_aws_provider_are_used_as_there() -> Result<()> {
    rule("t1-aws-provider", Setup::default(), async |rig| {
        let environment = &rig.scenario.environment;
        let (management, namespace) = (environment.management(), rig.scenario.namespace.as_str());
        stand_in::install_aws_provider(environment.tools(), management.api()).await?;
        let kubectl = management.api().kubectl();
        // The namespace of that provider.
        let home = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "capa-system"}});
        kubectl.feed(["apply", "--server-side", "--filename=-"], &home.to_string()).await?;
        let arn = format!("arn:aws:iam::{OTHER}:role/{namespace}");
        rig.scenario.simulator().put_role(Role::trusting(&arn, DEFAULT_ACCOUNT).external_id("tenant-b"));
        let named = |name: &str| format!("{namespace}-{name}");
        let identity = |kind: &str, name: &str, spec: Value| {
            json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": kind,
                "metadata": {"name": name}, "spec": spec,
            })
        };
        let role = |allowed: Value| {
            let mut spec = json!({
                "roleARN": arn, "externalID": "tenant-b", "sessionName": "capa",
                "sourceIdentityRef": {"kind": "AWSClusterControllerIdentity", "name": "default"},
            });
            if !allowed.is_null() {
                spec["allowedNamespaces"] = allowed;
            }
            spec
        };
        let (own, secret) = (json!({"list": [namespace]}), named("keys"));
        let items = [
            // That provider creates it for all namespaces.
            identity("AWSClusterControllerIdentity", "default", json!({"allowedNamespaces": {}})),
            identity("AWSClusterRoleIdentity", &named("none"), role(Value::Null)),
            identity("AWSClusterRoleIdentity", &named("all"), role(json!({}))),
            identity(
                "AWSClusterStaticIdentity",
                &secret,
                json!({"secretRef": secret, "allowedNamespaces": own}),
            ),
            json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster",
                "metadata": {"name": "network", "namespace": namespace},
                "spec": {
                    "region": rig.scenario.region,
                    "identityRef": {"kind": "AWSClusterRoleIdentity", "name": named("all")},
                },
            }),
        ];
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        kubectl.feed(["apply", "--server-side", "--filename=-"], &list.to_string()).await?;
        put_key(rig, "capa-system", &secret, "AKIA444455556666CAPA").await?;

        let pool = |name: &str| rig.pool(name).replicas(1);
        let of_role = |name: &str, role: &str| uses(pool(name), "AWSClusterRoleIdentity", &named(role));
        rig.apply(&of_role("none", "none")).await?;
        rig.apply(&uses(pool("manager"), "AWSClusterControllerIdentity", "default")).await?;
        rig.apply(&uses(pool("static"), "AWSClusterStaticIdentity", &secret)).await?;
        rig.apply(&of_role("all", "all")).await?;
        let mut told = Vec::new();
        for name in ["none", "manager", "static"] {
            told.push(unreachable(rig, name, "IdentityNotAllowed").await?);
        }
        ensure!(told[0].contains(&named("none")) && told[1].contains("of type Controller"), "{told:?}");
        ensure!(told[2].contains("`use`") && told[2].contains(&secret), "{told:?}");
        rig.running("all", 1).await?;
        ensure!(account_of(&rig.pools().get("all").await?) == Some(OTHER));
        let sessions = rig.scenario.simulator().sessions();
        let of_role: Vec<_> = sessions.iter().filter(|session| session.role == arn).collect();
        ensure!(!of_role.is_empty() && of_role.iter().all(|one| one.arn.ends_with("/capa")), "{of_role:?}");

        // An operator gives the Secret, and only that one.
        kubectl.feed(["apply", "--filename=-"], &may_use(rig, "capa-system", &secret).to_string()).await?;
        rig.running("static", 1).await?;
        ensure!(account_of(&rig.pools().get("static").await?) == Some(OTHER));

        // A pool that names none has that of its Cluster, as soon as it has one.
        rig.patch_cluster(&json!({"spec": {"infrastructureRef": {
            "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSCluster", "name": "network",
        }}}))
        .await?;
        let networks = rig.of_aws(&rig.scenario.client, "AWSCluster");
        let ready = Patch::Merge(json!({"status": {"ready": true}}));
        networks.patch_status("network", &PatchParams::default(), &ready).await?;
        rig.run(&pool("inherits"), 1).await?;
        let inherits = rig.pools().get("inherits").await?;
        ensure!(account_of(&inherits) == Some(OTHER), "{:?}", inherits.spec.provider_id);
        ensure!(origin(&inherits) == Some(IdentityOrigin::Cluster), "{:?}", inherits.status);
        for name in ["none", "manager", "static", "all", "inherits"] {
            rig.scenario.kubectl(&["delete", "machinepool", name, "--wait=false"]).await?;
        }
        rig.gone("inherits").await?;
        Ok(())
    })
    .await
}
