//! How a pool names subnets and security groups: by ID, or by what AWS is asked to look up.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::crd::shapes;

/// Chooses one subnet by its ID, or all subnets that carry the given tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.id) != has(self.tags)")
    .message("spec.subnets[]: set exactly one of id and tags"))]
pub struct SubnetSelector {
    /// The subnet's ID, such as `subnet-0a1b2c3d`. Either this or tags. Changed in place: running instances stay where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^subnet-[0-9a-f]{8,17}$"))]
    pub id: Option<String>,

    /// Tags that a subnet must all carry; the value `*` stands for any value. All matching subnets of the region are
    /// used. Either this or id. Changed in place: running instances stay where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shapes::tag_filter")]
    #[x_kube(merge_strategy = MapMerge::Atomic)]
    #[x_kube(validation = Rule::new("self.all(key, size(key) >= 1 && size(key) <= 128)")
        .message("spec.subnets[].tags: a tag key has 1 to 128 characters"))]
    pub tags: Option<BTreeMap<String, String>>,
}

/// Chooses one security group by its ID or name, or all that carry the given tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.id), has(self.tags), has(self.name)].filter(set, set).size() == 1")
    .message("spec.machine.securityGroups[]: set exactly one of id, tags and name"))]
pub struct SecurityGroupSelector {
    /// The security group's ID, such as `sg-0a1b2c3d`. Either this, name or tags. A change makes running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^sg-[0-9a-f]{8,17}$"))]
    pub id: Option<String>,

    /// Tags that a security group must all carry; the value `*` stands for any value. All matching groups of the
    /// subnets' VPC are used. Either this, id or name. A change of the groups found makes running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shapes::tag_filter")]
    #[x_kube(merge_strategy = MapMerge::Atomic)]
    #[x_kube(validation = Rule::new("self.all(key, size(key) >= 1 && size(key) <= 128)")
        .message("spec.machine.securityGroups[].tags: a tag key has 1 to 128 characters"))]
    pub tags: Option<BTreeMap<String, String>>,

    /// The security group's name in the subnets' VPC. Either this, id or tags. A change makes running instances outdated.
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
