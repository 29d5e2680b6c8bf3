//! One pool for each Auto Scaling group: a group name that another pool uses already.

use kube::ResourceExt;

use super::FieldError;
use crate::ASGMachinePool;

/// Rejects a pool that names the group of another pool of its namespace with the same identity in the same region. A pool
/// that is being deleted does not count: the controllers determine the owner of the group until it is deleted. Nor does a pool
/// of another namespace: it may have an account of its own, and no user may keep names from others. What AWS has belongs to
/// the pool that its tags name.
///
/// `others` may contain the pool itself.
#[must_use]
pub fn validate_group_name(pool: &ASGMachinePool, others: &[ASGMachinePool]) -> Vec<FieldError> {
    let Some(name) = pool.spec.group_name() else { return Vec::new() };
    let identity = |pool: &ASGMachinePool| (pool.namespace(), pool.name_any());
    let same = |other: &&ASGMachinePool| {
        identity(other) != identity(pool)
            && other.namespace() == pool.namespace()
            && other.spec.identity_ref == pool.spec.identity_ref
            && other.metadata.deletion_timestamp.is_none()
            && other.spec.region == pool.spec.region
            && [other.spec.group_name(), recorded_group(other)].contains(&Some(name))
    };
    let Some(other) = others.iter().find(same) else { return Vec::new() };
    let owner = format!("ASGMachinePool {}/{}", other.namespace().unwrap_or_default(), other.name_any());
    let region = &pool.spec.region;
    let message = format!("Auto Scaling group {name} in {region} belongs to {owner}; choose another name");
    vec![FieldError { field: "spec.group.name".into(), message }]
}

/// The name of the group in a pool's ARN.
fn recorded_group(pool: &ASGMachinePool) -> Option<&str> {
    pool.spec.provider_id.as_deref()?.split_once(":autoScalingGroupName/").map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;
    use crate::{ASGMachinePoolSpec, identity::IdentityReference, pool::Group};

    fn pool(namespace: &str, name: &str, region: &str, group: Option<&str>) -> ASGMachinePool {
        let spec = ASGMachinePoolSpec {
            region: region.to_owned(),
            group: group.map(|name| Group { name: Some(name.to_owned()), ..Group::default() }),
            ..ASGMachinePoolSpec::default()
        };
        let mut pool = ASGMachinePool::new(name, spec);
        pool.metadata.namespace = Some(namespace.to_owned());
        pool
    }

    #[test]
    fn a_second_pool_for_a_group_is_rejected_with_the_name_of_the_first() {
        let first = pool("teams", "first", "eu-west-1", Some("shared"));
        let second = |namespace| pool(namespace, "second", "eu-west-1", Some("shared"));
        let [error] = &validate_group_name(&second("teams"), std::slice::from_ref(&first))[..] else {
            unreachable!("one error")
        };
        assert_eq!(error.field, "spec.group.name");
        assert_eq!(
            error.message,
            "Auto Scaling group shared in eu-west-1 belongs to ASGMachinePool teams/first; choose another name"
        );
        assert!(validate_group_name(&second("others"), std::slice::from_ref(&first)).is_empty());
        let mut elsewhere = second("teams");
        elsewhere.spec.identity_ref =
            Some(IdentityReference { kind: "ASGIdentity".to_owned(), name: "other".to_owned() });
        assert!(validate_group_name(&elsewhere, &[first]).is_empty());
    }

    #[test]
    fn a_group_that_a_pool_has_by_its_arn_counts_too() {
        let mut first = pool("teams", "first", "eu-west-1", None);
        let arn = "arn:aws:autoscaling:eu-west-1:123456789012:autoScalingGroup:id:autoScalingGroupName/given";
        first.spec.provider_id = Some(arn.to_owned());
        let second = pool("teams", "second", "eu-west-1", Some("given"));
        assert_eq!(validate_group_name(&second, &[first.clone()]).len(), 1);
        let third = pool("teams", "third", "eu-west-1", Some("iven"));
        assert!(validate_group_name(&third, &[first]).is_empty());
    }

    #[test]
    fn other_names_other_regions_and_deleted_pools_are_accepted() {
        let new = pool("teams", "new", "eu-west-1", Some("shared"));
        let mut deleted = pool("teams", "deleted", "eu-west-1", Some("shared"));
        deleted.metadata.deletion_timestamp = Some(Time("2026-01-01T00:00:00Z".parse().unwrap()));
        let others = [
            new.clone(),
            deleted,
            pool("teams", "elsewhere", "eu-west-2", Some("shared")),
            pool("teams", "other", "eu-west-1", Some("another")),
            pool("teams", "derived", "eu-west-1", None),
        ];
        assert!(validate_group_name(&new, &others).is_empty());
        assert!(validate_group_name(&pool("teams", "plain", "eu-west-1", None), &others).is_empty());
    }
}
