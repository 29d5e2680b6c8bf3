//! What of a write to a pool a guard denies: only values that the write sets or changes. Pure.

use super::{Guards, rules::error};
use crate::{ASGMachinePoolSpec, admission::FieldError};

impl Guards {
    /// What a spec sets, or changes from `before`, and a guard denies, in the words of the conditions. What the pool had
    /// before stays editable, and what is only not allowed as long as no guard allows it is accepted: objects are applied
    /// in any order, so that the guard may follow.
    #[must_use]
    pub fn check_change(
        &self,
        spec: &ASGMachinePoolSpec,
        before: Option<&ASGMachinePoolSpec>,
    ) -> Vec<FieldError> {
        let kept = before.map(|before| self.known_denials(before)).unwrap_or_default();
        let mut errors: Vec<FieldError> = Vec::new();
        for error in self.known_denials(spec) {
            if !kept.contains(&error) && !errors.contains(&error) {
                errors.push(error);
            }
        }
        errors.extend(self.min_size(spec, before));
        errors
    }

    fn known_denials(&self, spec: &ASGMachinePoolSpec) -> Vec<FieldError> {
        let mut errors = self.denials(spec);
        let subnets = spec.subnets.iter().filter_map(|subnet| subnet.id.as_deref());
        errors.extend(subnets.filter_map(|id| error("spec.subnets", self.subnet_id(id))));
        let groups = spec.machine.security_groups.iter().filter_map(|group| group.id.as_deref());
        errors.extend(groups.filter_map(|id| error("spec.machine.securityGroups", self.security_group(id))));
        errors
    }

    /// More replicas at least than a guard allows. `maxSize` is not checked: such a pool grows up to the limit of the guard.
    fn min_size(&self, spec: &ASGMachinePoolSpec, before: Option<&ASGMachinePoolSpec>) -> Option<FieldError> {
        let min = spec.min_size?;
        let grows = before.and_then(|before| before.min_size).is_none_or(|before| min > before);
        let limit = self.of_each_pool().filter(|limit| grows && min > limit.replicas)?;
        error("spec.minSize", Some(limit.why))
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use serde_json::{Value, json};

    use super::*;
    use crate::ASGGuard;

    fn guards(specs: &[Value]) -> Guards {
        let guard = |(n, spec): (usize, &Value)| {
            let mut spec = spec.clone();
            spec["namespaces"] = json!({"names": ["a"]});
            Arc::new(ASGGuard::new(&format!("g{n}"), serde_json::from_value(spec).unwrap()))
        };
        Guards::of_namespace(specs.iter().enumerate().map(guard), "a", None)
    }

    fn pool(root: &Value, machine: &Value) -> ASGMachinePoolSpec {
        let mut spec = json!({
            "region": "eu-west-1", "subnets": [], "instanceTypes": [],
            "machine": {"image": {"id": "ami-0a1b2c3d"}, "securityGroups": []},
        });
        let extend = |into: &mut Value, from: &Value| {
            into.as_object_mut().unwrap().extend(from.as_object().unwrap().clone());
        };
        extend(&mut spec, root);
        extend(&mut spec["machine"], machine);
        serde_json::from_value(spec).unwrap()
    }

    fn told(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(|error| format!("{}: {}", error.field, error.message)).collect()
    }

    // Rules: T3
    #[test]
    fn what_a_write_sets_or_changes_is_denied_and_what_the_pool_has_is_not() {
        let guard = guards(&[json!({
            "regions": ["eu-*"], "subnetIDs": ["subnet-1"], "securityGroupIDs": ["sg-1"], "vpcIDs": [],
            "instanceProfiles": ["nodes"], "sshKeyNames": [], "ssmParameterPrefixes": ["/images/"],
            "kmsKeyIDs": [], "groupNames": ["a-*"], "adoption": "Denied", "limits": {"maxReplicasPerPool": 3},
        })]);
        let none = json!({});
        let allowed = pool(
            &json!({
                "subnets": [{"id": "subnet-1"}, {"tags": {"any": "*"}}], "minSize": 3, "maxSize": 9,
                "group": {"name": "a-x"},
            }),
            &json!({
                "securityGroups": [{"id": "sg-1"}, {"name": "other"}], "iamInstanceProfile": "nodes",
                "image": {"ssmParameter": "/images/x"},
            }),
        );
        assert_eq!(guard.check_change(&allowed, None), []);
        let data_volumes = json!({"dataVolumes": [
            {"deviceName": "/dev/sdf", "sizeGiB": 1, "kmsKeyID": "alias/a"},
            {"deviceName": "/dev/sdg", "sizeGiB": 1, "kmsKeyID": "alias/a"},
        ]});
        for (root, machine, expected) in [
            (
                json!({"region": "us-east-1"}),
                none.clone(),
                "spec.region: ASGGuard g0 does not allow Region us-east-1",
            ),
            (
                json!({"subnets": [{"id": "subnet-1"}, {"id": "subnet-2"}]}),
                none.clone(),
                "spec.subnets: ASGGuard g0 does not allow subnet subnet-2",
            ),
            (
                none.clone(),
                json!({"securityGroups": [{"id": "sg-2"}]}),
                "spec.machine.securityGroups: ASGGuard g0 does not allow security group sg-2",
            ),
            (
                none.clone(),
                json!({"iamInstanceProfile": "arn:aws:iam::1:instance-profile/nodes/admin"}),
                "spec.machine.iamInstanceProfile: ASGGuard g0 does not allow instance profile admin",
            ),
            (
                none.clone(),
                json!({"sshKeyName": "mine"}),
                "spec.machine.sshKeyName: ASGGuard g0 does not allow key pair mine",
            ),
            (
                none.clone(),
                json!({"image": {"ssmParameter": "/secret"}}),
                "spec.machine.image.ssmParameter: ASGGuard g0 does not allow SSM parameter /secret",
            ),
            (
                none.clone(),
                json!({"rootVolume": {"kmsKeyID": "alias/a"}}),
                "spec.machine.rootVolume.kmsKeyID: ASGGuard g0 does not allow KMS key alias/a",
            ),
            (
                none.clone(),
                data_volumes,
                "spec.machine.dataVolumes[].kmsKeyID: ASGGuard g0 does not allow KMS key alias/a",
            ),
            (
                json!({"group": {"name": "b-x"}}),
                none.clone(),
                "spec.group.name: ASGGuard g0 does not allow group name b-x",
            ),
            (
                json!({"group": {"name": "a-x"}, "adoptionPolicy": "Adopt"}),
                none.clone(),
                "spec.adoptionPolicy: ASGGuard g0 denies the adoption of groups",
            ),
            (
                json!({"minSize": 4}),
                none.clone(),
                "spec.minSize: ASGGuard g0 allows at most 3 replicas of a pool",
            ),
        ] {
            let denied = pool(&root, &machine);
            assert_eq!(told(&guard.check_change(&denied, None)), [expected]);
            let before = pool(&none, &none);
            assert_eq!(told(&guard.check_change(&denied, Some(&before))), [expected], "a change to it");
            let mut edited = denied.clone();
            edited.max_size = Some(9);
            assert_eq!(guard.check_change(&edited, Some(&denied)), [], "a change of something else");
            assert_eq!(guard.check_change(&before, Some(&denied)), [], "its removal");
        }
    }

    #[test]
    fn another_denied_value_is_a_change() {
        let guard = guards(&[json!({"sshKeyNames": ["ops"], "limits": {"maxReplicasPerPool": 3}})]);
        let with_key = |key: &str| pool(&json!({}), &json!({"sshKeyName": key}));
        let errors = guard.check_change(&with_key("b"), Some(&with_key("a")));
        assert_eq!(told(&errors), ["spec.machine.sshKeyName: ASGGuard g0 does not allow key pair b"]);
        let of_size = |min: i32| pool(&json!({"minSize": min}), &json!({}));
        for (min, before, errors) in [(9, 9, 0), (8, 9, 0), (10, 9, 1), (3, 9, 0), (4, 3, 1)] {
            let found = guard.check_change(&of_size(min), Some(&of_size(before)));
            assert_eq!(found.len(), errors, "{min} after {before}");
        }
    }

    #[test]
    fn what_a_further_guard_could_allow_is_accepted() {
        let foreign = pool(
            &json!({"group": {"name": "theirs"}, "adoptionPolicy": "Adopt"}),
            &json!({"iamInstanceProfile": "admin"}),
        );
        for guards in [guards(&[]), guards(&[json!({"regions": ["eu-west-1"]})])] {
            assert_eq!(guards.check_change(&foreign, None), []);
            assert_eq!(guards.check_spec(&foreign).len(), 2, "the controller does not allow it");
        }
    }

    #[test]
    fn guards_of_other_namespaces_do_not_count() {
        let guard = |namespaces: Value| {
            let spec = json!({"namespaces": namespaces, "sshKeyNames": []});
            Arc::new(ASGGuard::new("g", serde_json::from_value(spec).unwrap()))
        };
        let all =
            [guard(json!({"names": ["b"]})), guard(json!({"selector": {"matchLabels": {"team": "b"}}}))];
        let denied = pool(&json!({}), &json!({"sshKeyName": "mine"}));
        for (namespace, team, errors) in [("a", "a", 0), ("b", "a", 1), ("a", "b", 1)] {
            let labels = BTreeMap::from([("team".to_owned(), team.to_owned())]);
            let guards = Guards::of_namespace(all.clone(), namespace, Some(&labels));
            assert_eq!(guards.check_change(&denied, None).len(), errors, "{namespace} {team}");
        }
    }
}
