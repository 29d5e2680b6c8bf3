//! Group attributes that are kept and echoed, with their defaults, checks and the values that clear them.

use std::collections::BTreeMap;

use crate::{ApiError, Tree};

/// Every attribute that is kept by name. Those that change what the group does are read where they do.
const KEPT: [&str; 16] = [
    "AvailabilityZoneDistribution",
    "CapacityRebalance",
    "CapacityReservationSpecification",
    "Context",
    "DefaultCooldown",
    "DefaultInstanceWarmup",
    "DeletionProtection",
    "DesiredCapacityType",
    "HealthCheckGracePeriod",
    "HealthCheckType",
    "InstanceLifecyclePolicy",
    "InstanceMaintenancePolicy",
    "MaxInstanceLifetime",
    "NewInstancesProtectedFromScaleIn",
    "PlacementGroup",
    "TerminationPolicies",
];

/// What a group has that asked for nothing.
pub(crate) fn defaults() -> BTreeMap<String, Tree> {
    BTreeMap::from(
        [
            ("DefaultCooldown", Tree::from(300)),
            ("HealthCheckGracePeriod", Tree::from(0)),
            ("HealthCheckType", Tree::from("EC2")),
            ("NewInstancesProtectedFromScaleIn", Tree::from(false)),
            ("TerminationPolicies", Tree::list(["Default"])),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    )
}

/// Overlays the attributes that a request gives; omitted ones stay.
pub(crate) fn overlay(attributes: &mut BTreeMap<String, Tree>, params: &Tree) -> Result<(), ApiError> {
    check(params)?;
    for name in KEPT {
        if let Some(value) = params.get(name) {
            if clears(name, value) {
                attributes.remove(name);
            } else {
                attributes.insert(name.to_owned(), value.clone());
            }
        }
    }
    Ok(())
}

/// The value by which an update takes an attribute away.
fn clears(name: &str, value: &Tree) -> bool {
    match name {
        "CapacityRebalance" => value.text() == Some("false"),
        "DefaultInstanceWarmup" => value.text() == Some("-1"),
        "MaxInstanceLifetime" => value.text() == Some("0"),
        "PlacementGroup" | "Context" => value.text() == Some(""),
        "DeletionProtection" => value.text() == Some("none"),
        "InstanceMaintenancePolicy" => {
            value.number_of("MinHealthyPercentage") == Some(-1)
                && value.number_of("MaxHealthyPercentage") == Some(-1)
        }
        "InstanceLifecyclePolicy" => {
            let triggers = value.get("RetentionTriggers");
            triggers.and_then(|triggers| triggers.text_of("TerminateHookAbandon")) == Some("terminate")
        }
        _ => false,
    }
}

fn check(params: &Tree) -> Result<(), ApiError> {
    if let Some(lifetime) = params.number_of("MaxInstanceLifetime")
        && lifetime != 0
        && !(86_400..=31_536_000).contains(&lifetime)
    {
        return Err(ApiError::validation(
            "Max instance lifetime must be 0 or between 86400 and 31536000 seconds (inclusive)",
        ));
    }
    if let Some(kind) = params.text_of("HealthCheckType") {
        let known = ["EC2", "EBS", "ELB", "VPC_LATTICE"];
        if !kind.split(',').all(|kind| known.contains(&kind.trim())) {
            return Err(ApiError::validation(format!("Invalid health check type '{kind}'")));
        }
    }
    for name in ["DefaultCooldown", "HealthCheckGracePeriod"] {
        if params.number_of(name).is_some_and(|seconds| seconds < 0) {
            return Err(ApiError::validation(format!("{name} must not be negative")));
        }
    }
    let triggers = params.get("InstanceLifecyclePolicy").and_then(|policy| policy.get("RetentionTriggers"));
    if let Some(action) = triggers.and_then(|triggers| triggers.text_of("TerminateHookAbandon"))
        && !["retain", "terminate"].contains(&action)
    {
        return Err(ApiError::validation(format!("Invalid retention action '{action}'")));
    }
    if let Some(policy) = params.get("InstanceMaintenancePolicy") {
        let (low, high) =
            (policy.number_of("MinHealthyPercentage"), policy.number_of("MaxHealthyPercentage"));
        let fits = match (low, high) {
            (Some(-1), Some(-1)) => true,
            (Some(low), Some(high)) => {
                (0..=100).contains(&low) && (100..=200).contains(&high) && high - low <= 100
            }
            _ => false,
        };
        if !fits {
            return Err(ApiError::validation(
                "InstanceMaintenancePolicy needs MinHealthyPercentage 0 to 100 and MaxHealthyPercentage 100 to 200, at most 100 apart",
            ));
        }
    }
    Ok(())
}
