//! How a spec selects subnets and security groups: by ID, by name or by tags.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::crd::shapes;

/// Selects one subnet by its ID, or all subnets that have the given tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.id) != has(self.tags)")
    .message("spec.subnets[]: set exactly one of id and tags"))]
pub struct SubnetSelector {
    /// ID of the subnet, such as `subnet-0a1b2c3d`. Either this field or tags is required. Changes apply in place:
    /// running instances stay in their subnets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = Rule::new("self.matches('^subnet-[0-9a-f]{8,17}$')")
        .message("spec.subnets[].id: must be the ID of a subnet, such as subnet-0a1b2c3d; if it is empty, a variable of the template has no value"))]
    pub id: Option<String>,

    /// Tags that a subnet must have; the value `*` or an empty value matches any value. All matching subnets of one VPC
    /// are used. If subnets of several VPCs match, the VPC is, in this order of precedence, that of the subnets
    /// selected by ID, of the existing group, or of the `AWSCluster` of the Cluster. Either this field or id is
    /// required. Changes apply in place: running instances stay in their subnets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shapes::tag_filter")]
    #[x_kube(merge_strategy = MapMerge::Atomic)]
    #[x_kube(validation = Rule::new("self.all(key, size(key) >= 1 && size(key) <= 128)")
        .message("spec.subnets[].tags: a tag key must have 1 to 128 characters"))]
    pub tags: Option<BTreeMap<String, String>>,
}

/// Selects one security group by its ID or name, or all security groups that have the given tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.id), has(self.tags), has(self.name)].filter(set, set).size() == 1")
    .message("spec.machine.securityGroups[]: set exactly one of id, tags and name"))]
pub struct SecurityGroupSelector {
    /// ID of the security group, such as `sg-0a1b2c3d`. Either this field, name or tags is required. A change makes
    /// running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = Rule::new("self.matches('^sg-[0-9a-f]{8,17}$')")
        .message("spec.machine.securityGroups[].id: must be the ID of a security group, such as sg-0a1b2c3d; if it is empty, a variable of the template has no value"))]
    pub id: Option<String>,

    /// Tags that a security group must have; the value `*` or an empty value matches any value. All matching security
    /// groups of the subnets' VPC are used. Either this field, id or name is required. A change of the tags in the spec
    /// makes running instances outdated; a security group that is tagged later applies to instances that are launched
    /// later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shapes::tag_filter")]
    #[x_kube(merge_strategy = MapMerge::Atomic)]
    #[x_kube(validation = Rule::new("self.all(key, size(key) >= 1 && size(key) <= 128)")
        .message("spec.machine.securityGroups[].tags: a tag key must have 1 to 128 characters"))]
    pub tags: Option<BTreeMap<String, String>>,

    /// Name of the security group in the subnets' VPC. Either this field, id or tags is required. A change makes
    /// running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255), regex(pattern = r"^[ -~]+$"))]
    pub name: Option<String>,
}

impl SubnetSelector {
    /// A selector for one subnet.
    #[must_use]
    pub fn by_id(id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), tags: None }
    }

    /// A selector for every subnet with these tags.
    #[must_use]
    pub fn by_tags<K: Into<String>, V: Into<String>>(tags: impl IntoIterator<Item = (K, V)>) -> Self {
        Self { id: None, tags: Some(collect(tags)) }
    }
}

impl SecurityGroupSelector {
    /// A selector for one security group.
    #[must_use]
    pub fn by_id(id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..Self::default() }
    }
}

fn collect<K: Into<String>, V: Into<String>>(
    tags: impl IntoIterator<Item = (K, V)>,
) -> BTreeMap<String, String> {
    tags.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
}
