//! Resolves the security groups of a spec: by ID, and by name or tags in the VPC of the subnets.

use std::collections::BTreeSet;

use capasg_api::{
    conditions::LAUNCH_TEMPLATE_READY,
    pool::SecurityGroupSelector,
    reasons::launch_template_ready::{
        NOT_ALLOWED, SECURITY_GROUP_IN_ANOTHER_VPC, SECURITY_GROUP_NOT_FOUND, TOO_MANY_SECURITY_GROUPS,
    },
};
use capasg_cloud::Selector;

use super::place::{Place, describe};
use crate::machine_pool::model::References;

/// The most security groups that a network interface takes with the highest quota; the default quota is 5.
const MOST: usize = 16;

impl References {
    /// Resolves the security groups; `used` are those that the group launches with.
    pub(super) async fn resolve_security_groups(
        &mut self,
        place: &Place<'_>,
        used: Option<&BTreeSet<String>>,
    ) {
        let groups = &place.spec().machine.security_groups;
        let vpc = self.zones.first().map(|subnet| subnet.vpc.clone());
        let named = named(groups);
        if !named.is_empty() && !used.is_some_and(|used| named.is_subset(used)) {
            self.check_named(place, &named, vpc.as_deref()).await;
        }
        let mut ids = named;
        for selector in groups.iter().filter_map(security_group_selector) {
            let Some(vpc) = &vpc else {
                if let Some(error) = self.failed.first().cloned() {
                    let what = format!("the VPC of the security groups with {}", describe(&selector));
                    self.fail(LAUNCH_TEMPLATE_READY, &what, place, &error);
                    continue;
                }
                let message = format!(
                    "the VPC of the security groups with {} is unknown until spec.subnets selects subnets of one VPC; see \
                     condition GroupReady.",
                    describe(&selector)
                );
                self.miss(LAUNCH_TEMPLATE_READY, SECURITY_GROUP_NOT_FOUND, message);
                continue;
            };
            match place.inventory.security_groups(&selector).await {
                Err(error) => {
                    let what = format!("the security groups with {}", describe(&selector));
                    self.fail(LAUNCH_TEMPLATE_READY, &what, place, &error);
                }
                Ok(found) => {
                    // The same name or tags may exist in other VPCs of the account.
                    let here: BTreeSet<String> = found
                        .iter()
                        .filter(|group| group.vpc == *vpc)
                        .map(|group| group.id.clone())
                        .collect();
                    if here.is_empty() {
                        let message = format!(
                            "no security group of VPC {vpc}, which is that of spec.subnets, has {} in {}. Correct \
                             spec.machine.securityGroups or spec.subnets.",
                            describe(&selector),
                            place.name().await
                        );
                        self.miss(LAUNCH_TEMPLATE_READY, SECURITY_GROUP_NOT_FOUND, message);
                    }
                    ids.extend(here);
                }
            }
        }
        let guards = &place.objects.access.guards;
        if let Some(why) = ids.iter().find_map(|id| guards.security_group(id)) {
            self.deny(LAUNCH_TEMPLATE_READY, NOT_ALLOWED, &format!("spec.machine.securityGroups: {why}"));
        }
        if ids.len() > MOST {
            let message = format!(
                "spec.machine.securityGroups selects {} security groups; a network interface takes at most {MOST}, and 5 \
                 with the default quota. Narrow spec.machine.securityGroups.",
                ids.len()
            );
            self.miss(LAUNCH_TEMPLATE_READY, TOO_MANY_SECURITY_GROUPS, message);
        }
        self.security_groups = ids.into_iter().collect();
    }

    /// Reports security groups by ID that do not exist, or that instances in `vpc` cannot have. If they cannot be read,
    /// AWS validates them.
    async fn check_named(&mut self, place: &Place<'_>, named: &BTreeSet<String>, vpc: Option<&str>) {
        let found = match place.inventory.security_groups(&Selector::Ids(named.clone())).await {
            Ok(found) => found,
            Err(error) => {
                return tracing::debug!(%error, "failed to read the security groups; AWS validates them");
            }
        };
        for id in named {
            let Some(group) = found.iter().find(|group| group.id == *id) else {
                let message = format!(
                    "security group {id} does not exist in {}. Correct spec.machine.securityGroups; {}.",
                    place.name().await,
                    place.origin().await
                );
                self.miss(LAUNCH_TEMPLATE_READY, SECURITY_GROUP_NOT_FOUND, message);
                continue;
            };
            let Some(vpc) = vpc.filter(|vpc| *vpc != group.vpc) else { continue };
            // Whether it is associated with other VPCs must be known: such a group is usable there.
            if place.inventory.is_associated(id, vpc).await.is_ok_and(|is_associated| !is_associated) {
                let message = format!(
                    "security group {id} is in VPC {}, and spec.subnets selects subnets of VPC {vpc}. Correct \
                     spec.machine.securityGroups or spec.subnets, or associate the security group with VPC {vpc}.",
                    group.vpc
                );
                self.miss(LAUNCH_TEMPLATE_READY, SECURITY_GROUP_IN_ANOTHER_VPC, message);
            }
        }
    }
}

/// What the security groups of the spec are looked up by.
pub(super) fn security_group_selectors(groups: &[SecurityGroupSelector]) -> Vec<Selector> {
    let named = Some(named(groups)).filter(|ids| !ids.is_empty()).map(Selector::Ids);
    groups.iter().filter_map(security_group_selector).chain(named).collect()
}

/// What a security group of the spec is looked up by; `None` if it is named by its ID.
fn security_group_selector(group: &SecurityGroupSelector) -> Option<Selector> {
    match (&group.id, &group.tags, &group.name) {
        (Some(_), ..) => None,
        (_, Some(tags), _) => Some(Selector::Tags(tags.clone())),
        (_, _, name) => name.clone().map(Selector::Name),
    }
}

/// The security groups that the spec names by ID.
fn named(groups: &[SecurityGroupSelector]) -> BTreeSet<String> {
    groups.iter().filter_map(|group| group.id.clone()).collect()
}
