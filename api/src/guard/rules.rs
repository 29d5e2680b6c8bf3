//! The rules of guards: what of a pool is not allowed, and which guard says so. Pure.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use super::{ASGGuard, ASGGuardSpec, GuardLimits, spec::AdoptionRule};
use crate::{ASGMachinePoolSpec, admission::FieldError, pool::AdoptionPolicy};
use kube::ResourceExt as _;

/// The instance profile of nodes that `clusterawsadm bootstrap iam` creates, allowed where no guard lists profiles.
pub const NODES_PROFILE: &str = "nodes.cluster-api-provider-aws.sigs.k8s.io";

const PROFILE: &str = "spec.machine.iamInstanceProfile";
const ADOPTION: &str = "spec.adoptionPolicy";

/// The guards of one namespace. A pool must satisfy all of them.
#[derive(Debug, Clone, Default)]
pub struct Guards(Vec<Arc<ASGGuard>>);

impl Guards {
    /// Those guards, in the order of their names.
    #[must_use]
    pub fn new(mut guards: Vec<Arc<ASGGuard>>) -> Self {
        guards.sort_by_key(|guard| guard.name_any());
        Self(guards)
    }

    /// Those of all guards that select a namespace, of which the labels are known or not.
    #[must_use]
    pub fn of_namespace(
        all: impl IntoIterator<Item = Arc<ASGGuard>>,
        namespace: &str,
        labels: Option<&BTreeMap<String, String>>,
    ) -> Self {
        Self::new(all.into_iter().filter(|guard| guard.spec.namespaces.contains(namespace, labels)).collect())
    }

    /// What of a spec is not allowed, as far as the spec alone tells. IDs of subnets and security groups are not included:
    /// the controller checks them with those that AWS resolves.
    #[must_use]
    pub fn check_spec(&self, spec: &ASGMachinePoolSpec) -> Vec<FieldError> {
        let mut errors = self.denials(spec);
        let profile = spec.machine.iam_instance_profile.as_deref();
        errors.extend(error(PROFILE, self.requires_profile(profile)));
        if adopts(spec) {
            errors.extend(error(ADOPTION, self.requires_adoption()));
        }
        errors
    }

    /// What of a spec a guard denies, without what is only not allowed as long as no guard allows it.
    pub(super) fn denials(&self, spec: &ASGMachinePoolSpec) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut add = |field: &'static str, message: Option<String>| {
            errors.extend(error(field, message));
        };
        let machine = &spec.machine;
        add("spec.region", self.region(&spec.region));
        add(PROFILE, self.instance_profile(machine.iam_instance_profile.as_deref()));
        let key = machine.ssh_key_name.as_deref();
        add("spec.machine.sshKeyName", self.listed("key pair", key, |guard| guard.ssh_key_names.as_deref()));
        let parameter = machine.image.ssm_parameter.as_deref();
        add("spec.machine.image.ssmParameter", self.ssm_parameter(parameter));
        let image = machine.image.id.as_deref();
        add("spec.machine.image.id", self.listed("image", image, |guard| guard.image_ids.as_deref()));
        let root = machine.root_volume();
        add("spec.machine.rootVolume.kmsKeyID", self.kms_key(root.settings.kms_key_id.as_deref()));
        for volume in machine.data_volumes() {
            add("spec.machine.dataVolumes[].kmsKeyID", self.kms_key(volume.settings.kms_key_id.as_deref()));
            let snapshot = volume.snapshot_id.as_deref();
            add(
                "spec.machine.dataVolumes[].snapshotID",
                self.listed("snapshot", snapshot, |guard| guard.snapshot_ids.as_deref()),
            );
        }
        let group = spec.group_name();
        add("spec.group.name", self.listed("group name", group, |guard| guard.group_names.as_deref()));
        if adopts(spec) {
            add(ADOPTION, self.denies_adoption());
        }
        errors
    }

    /// Why a Region is not allowed.
    #[must_use]
    pub fn region(&self, region: &str) -> Option<String> {
        self.listed("Region", Some(region), |guard| guard.regions.as_deref())
    }

    /// Why a subnet is not allowed.
    #[must_use]
    pub fn subnet(&self, id: &str, vpc: &str) -> Option<String> {
        self.subnet_id(id).or_else(|| self.listed("VPC", Some(vpc), |guard| guard.vpc_ids.as_deref()))
    }

    /// Why a subnet is not allowed, whatever its VPC is.
    pub(super) fn subnet_id(&self, id: &str) -> Option<String> {
        self.listed("subnet", Some(id), |guard| guard.subnet_ids.as_deref())
    }

    /// Why a security group is not allowed.
    #[must_use]
    pub fn security_group(&self, id: &str) -> Option<String> {
        self.listed("security group", Some(id), |guard| guard.security_group_ids.as_deref())
    }

    /// Why the adoption of groups is not allowed.
    #[must_use]
    pub fn adoption(&self) -> Option<String> {
        self.denies_adoption().or_else(|| self.requires_adoption())
    }

    fn denies_adoption(&self) -> Option<String> {
        let denied = self.0.iter().find(|guard| guard.spec.adoption == Some(AdoptionRule::Denied))?;
        Some(format!("ASGGuard {} denies the adoption of groups", denied.name_any()))
    }

    fn requires_adoption(&self) -> Option<String> {
        self.0.iter().all(|guard| guard.spec.adoption.is_none()).then(|| {
            "the adoption of groups requires an ASGGuard that allows it in this namespace".to_owned()
        })
    }

    /// The most replicas that a pool may have, and which guard says so.
    #[must_use]
    pub fn of_each_pool(&self) -> Option<SizeLimit> {
        let limits = self.0.iter().filter_map(|guard| {
            let most = guard.spec.limits.as_ref()?.max_replicas_per_pool?;
            let why = format!("ASGGuard {} allows at most {most} replicas of a pool", guard.name_any());
            Some(SizeLimit { replicas: most, why, excludes: false })
        });
        limits.min_by_key(|limit| limit.replicas)
    }

    /// Whether a guard limits namespaces as a whole.
    #[must_use]
    pub fn limits_namespaces(&self) -> bool {
        let of_namespace = |limits: &GuardLimits| limits.max_pools.is_some() || limits.max_replicas.is_some();
        self.0.iter().any(|guard| guard.spec.limits.as_ref().is_some_and(of_namespace))
    }

    /// The most replicas that a pool may have beside the others of its namespace, which have this many replicas together, and
    /// of which that many are older.
    #[must_use]
    pub fn of_namespace_with(&self, older: usize, replicas: i64) -> Option<SizeLimit> {
        let older = i64::try_from(older).unwrap_or(i64::MAX);
        let of_guard = |guard: &Arc<ASGGuard>| {
            let (name, limits) = (guard.name_any(), guard.spec.limits.as_ref()?);
            if let Some(most) = limits.max_pools.filter(|most| older >= i64::from(*most)) {
                let why = format!("ASGGuard {name} allows at most {most} pools in this namespace");
                return Some(SizeLimit { replicas: 0, why, excludes: true });
            }
            let most = limits.max_replicas?;
            let left = i32::try_from((i64::from(most) - replicas).max(0)).unwrap_or(i32::MAX);
            let why = format!(
                "ASGGuard {name} allows at most {most} replicas of all pools of this namespace, of which other pools \
                 have {replicas}"
            );
            Some(SizeLimit { replicas: left, why, excludes: false })
        };
        self.0.iter().filter_map(of_guard).min_by_key(|limit| (limit.replicas, !limit.excludes))
    }

    fn instance_profile(&self, profile: Option<&str>) -> Option<String> {
        let name = name_of_profile(profile?);
        self.listed("instance profile", Some(name), |guard| guard.instance_profiles.as_deref())
    }

    fn requires_profile(&self, profile: Option<&str>) -> Option<String> {
        let name = name_of_profile(profile?);
        let is_listed = self.0.iter().any(|guard| guard.spec.instance_profiles.is_some());
        (!is_listed && name != NODES_PROFILE).then(|| {
            format!("instance profile {name} requires an ASGGuard that allows it in this namespace (instanceProfiles)")
        })
    }

    fn kms_key(&self, key: Option<&str>) -> Option<String> {
        self.listed("KMS key", key, |guard| guard.kms_key_ids.as_deref())
    }

    fn ssm_parameter(&self, parameter: Option<&str>) -> Option<String> {
        let parameter = parameter?;
        let of_arn = parameter.strip_prefix("arn:").and_then(|arn| arn.split_once(":parameter"));
        let name = of_arn.map_or(parameter, |(_, name)| name);
        self.denied(|guard| {
            let prefixes = guard.ssm_parameter_prefixes.as_deref()?;
            Some(prefixes.iter().any(|prefix| name.starts_with(prefix.as_str())))
        })
        .map(|guard| format!("ASGGuard {guard} does not allow SSM parameter {name}"))
    }

    fn listed<'a>(
        &'a self,
        what: &str,
        value: Option<&str>,
        patterns: impl Fn(&'a ASGGuardSpec) -> Option<&'a [String]>,
    ) -> Option<String> {
        let value = value?;
        self.denied(|guard| Some(patterns(guard)?.iter().any(|pattern| matches(pattern, value))))
            .map(|guard| format!("ASGGuard {guard} does not allow {what} {value}"))
    }

    /// The first guard that has a rule and does not allow.
    fn denied<'a>(&'a self, allows: impl Fn(&'a ASGGuardSpec) -> Option<bool>) -> Option<String> {
        self.0.iter().find(|guard| allows(&guard.spec) == Some(false)).map(|guard| guard.name_any())
    }
}

/// How large a pool may become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeLimit {
    /// The number of replicas that it may have. A pool that has more keeps them.
    pub replicas: i32,
    /// Which guard says so, as a sentence without its period.
    pub why: String,
    /// Whether the pool may have nothing at all: the namespace has as many pools as it may have.
    pub excludes: bool,
}

/// A path is not part of the name, which is unique in the account ("IAM identifiers" of the IAM user guide).
fn name_of_profile(profile: &str) -> &str {
    profile.rsplit_once('/').map_or(profile, |(_, name)| name)
}

fn adopts(spec: &ASGMachinePoolSpec) -> bool {
    spec.adoption_policy() == AdoptionPolicy::Adopt
}

pub(super) fn error(field: &'static str, message: Option<String>) -> Option<FieldError> {
    message.map(|message| FieldError { field: Cow::Borrowed(field), message })
}

/// Whether a pattern matches a text; `*` stands for any characters.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn guards(specs: &[Value]) -> Guards {
        let guard = |(n, spec): (usize, &Value)| {
            let mut spec = spec.clone();
            spec["namespaces"] = json!({"names": ["a"]});
            Arc::new(ASGGuard::new(&format!("g{n}"), serde_json::from_value(spec).unwrap()))
        };
        Guards::new(specs.iter().enumerate().map(guard).collect())
    }

    fn pool(edit: &Value) -> ASGMachinePoolSpec {
        let mut spec = json!({
            "region": "eu-west-1", "subnets": [], "instanceTypes": [],
            "machine": {"image": {"id": "ami-0a1b2c3d"}, "securityGroups": []},
        });
        json_patch_merge(&mut spec, edit);
        serde_json::from_value(spec).unwrap()
    }

    fn json_patch_merge(into: &mut Value, edit: &Value) {
        match (into, edit) {
            (Value::Object(into), Value::Object(edit)) => {
                for (key, value) in edit {
                    json_patch_merge(into.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
            (into, edit) => *into = edit.clone(),
        }
    }

    fn fields(guards: &Guards, edit: &Value) -> Vec<String> {
        guards.check_spec(&pool(edit)).into_iter().map(|error| error.field.into_owned()).collect()
    }

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, text, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "abcd", false),
            ("a*b*c", "axbxc", true),
            ("a*b*c", "ac", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn without_a_guard_no_foreign_profile_and_no_adoption_is_allowed() {
        let none = Guards::default();
        assert_eq!(fields(&none, &json!({})), [""; 0]);
        for own in [
            NODES_PROFILE,
            "arn:aws:iam::123456789012:instance-profile/team/nodes.cluster-api-provider-aws.sigs.k8s.io",
        ] {
            assert_eq!(fields(&none, &json!({"machine": {"iamInstanceProfile": own}})), [""; 0], "{own}");
        }
        for foreign in [
            "admin",
            "control-plane.cluster-api-provider-aws.sigs.k8s.io",
            "arn:aws:iam::1:instance-profile/nodes.cluster-api-provider-aws.sigs.k8s.io/admin",
        ] {
            let found = fields(&none, &json!({"machine": {"iamInstanceProfile": foreign}}));
            assert_eq!(found, ["spec.machine.iamInstanceProfile"], "{foreign}");
        }
        let adopting = json!({"adoptionPolicy": "Adopt", "group": {"name": "theirs"}});
        assert_eq!(fields(&none, &adopting), ["spec.adoptionPolicy"]);
    }

    #[test]
    fn one_guard_can_allow_everything() {
        let all = guards(&[json!({"instanceProfiles": ["*"], "adoption": "Allowed"})]);
        let everything = json!({
            "adoptionPolicy": "Adopt", "group": {"name": "theirs"},
            "machine": {
                "iamInstanceProfile": "admin", "sshKeyName": "any",
                "image": {"id": null, "ssmParameter": "/any"}, "rootVolume": {"kmsKeyID": "alias/any"},
            },
        });
        assert_eq!(fields(&all, &everything), [""; 0]);
        assert_eq!(all.subnet("subnet-1", "vpc-1"), None);
        assert_eq!(all.security_group("sg-1"), None);
        assert!(!all.limits_namespaces());
        assert_eq!(all.of_each_pool(), None);
        assert_eq!(all.of_namespace_with(10_000, 1_000_000), None);
    }

    #[test]
    fn each_field_is_checked_against_every_guard_that_sets_it() {
        let both = guards(&[
            json!({"regions": ["eu-*"], "sshKeyNames": ["ops"], "ssmParameterPrefixes": ["/aws/service/"]}),
            json!({
                "regions": ["eu-west-1", "us-east-1"], "kmsKeyIDs": [], "groupNames": ["a-*"],
                "imageIDs": ["ami-0a1b2c3d"], "snapshotIDs": [], "vpcIDs": ["vpc-1"], "subnetIDs": ["subnet-1"], "securityGroupIDs": ["sg-1"],
                "limits": {"maxReplicasPerPool": 5, "maxPools": 2, "maxReplicas": 8},
            }),
        ]);
        assert_eq!(fields(&both, &json!({"machine": {"sshKeyName": "ops"}})), [""; 0]);
        for (edit, field) in [
            (json!({"region": "us-east-1"}), "spec.region"),
            (json!({"region": "eu-west-2"}), "spec.region"),
            (json!({"machine": {"sshKeyName": "mine"}}), "spec.machine.sshKeyName"),
            (
                json!({"machine": {"image": {"id": null, "ssmParameter": "/other/secret"}}}),
                "spec.machine.image.ssmParameter",
            ),
            (
                json!({"machine": {"image": {"id": null,
                    "ssmParameter": "arn:aws:ssm:eu-west-1:123456789012:parameter/other/aws/service/x"}}}),
                "spec.machine.image.ssmParameter",
            ),
            (
                json!({"machine": {"rootVolume": {"kmsKeyID": "alias/any"}}}),
                "spec.machine.rootVolume.kmsKeyID",
            ),
            (
                json!({"machine": {"dataVolumes": [{"kmsKeyID": "alias/any", "deviceName": "/dev/sdf", "sizeGiB": 1}]}}),
                "spec.machine.dataVolumes[].kmsKeyID",
            ),
            (json!({"machine": {"image": {"id": "ami-1"}}}), "spec.machine.image.id"),
            (
                json!({"machine": {"dataVolumes": [{"snapshotID": "snap-1", "deviceName": "/dev/sdf"}]}}),
                "spec.machine.dataVolumes[].snapshotID",
            ),
            (json!({"group": {"name": "b-x"}}), "spec.group.name"),
        ] {
            assert_eq!(fields(&both, &edit), [field], "{edit}");
        }
        assert_eq!(both.region("us-east-1"), Some("ASGGuard g0 does not allow Region us-east-1".to_owned()));
        assert!(both.subnet("subnet-2", "vpc-1").is_some() && both.subnet("subnet-1", "vpc-2").is_some());
        assert!(both.security_group("sg-2").is_some() && both.security_group("sg-1").is_none());
        assert_eq!(both.of_each_pool().map(|limit| limit.replicas), Some(5));
        let left = |older, replicas| {
            both.of_namespace_with(older, replicas).map(|limit| (limit.replicas, limit.excludes))
        };
        assert_eq!(
            [left(2, 0), left(1, 3), left(1, 9)],
            [Some((0, true)), Some((5, false)), Some((0, false))]
        );
    }

    #[test]
    fn a_guard_that_denies_adoption_wins() {
        let both = guards(&[json!({"adoption": "Allowed"}), json!({"adoption": "Denied"})]);
        assert_eq!(both.adoption(), Some("ASGGuard g1 denies the adoption of groups".to_owned()));
    }
}
