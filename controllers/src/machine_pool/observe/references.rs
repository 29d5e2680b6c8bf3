//! Resolves the references of a spec (by ID, tag or parameter) in AWS: subnets, security groups, the image.

use std::collections::BTreeSet;

use capasg_api::{
    ASGMachinePool, ASGMachinePoolSpec,
    capi::MachinePool,
    conditions::{self, Finding, Status},
    pool::{Image, ImageUpdatePolicy, SecurityGroupSelector},
    reasons,
};
use capasg_cloud::{CloudError, ErrorClass, Inventory, Selector, Subnet, View};

use crate::kubernetes::{Kubernetes, Result as KubeResult};
use crate::machine_pool::model::{NamedImage, PoolObjects, References, ResolvedImage};
use crate::machine_pool::observe::vpc::VpcSources;

impl References {
    /// Resolves the references of the spec. Failures of AWS become findings: existing instances keep running.
    ///
    /// # Errors
    /// A read of the API server failed.
    pub async fn observe(
        kubernetes: &dyn Kubernetes,
        inventory: &Inventory,
        objects: &PoolObjects,
        owner: &MachinePool,
        pinned_image: Option<&str>,
        named: &mut Option<NamedImage>,
    ) -> KubeResult<Self> {
        let spec = &objects.pool.spec;
        let mut references = Self::default();
        if let Some(found) = references.find_subnets(inventory, spec).await {
            let ids = ids(spec);
            let used = used_subnets(inventory, objects);
            let sources = VpcSources { named: &ids, used: &used, cluster: objects.cluster.as_deref() };
            match sources.restrict(kubernetes, found).await? {
                Ok(found) => references.choose_subnets(found, &ids, owner),
                Err(finding) => references.findings.push(finding),
            }
        }
        references.resolve_security_groups(inventory, spec).await;
        references.resolve_image(inventory, spec, owner, pinned_image, named).await;
        Ok(references)
    }

    /// What was looked up for the references of the spec is read again. Other pools may share it, and then read it again
    /// as well.
    pub fn forget(inventory: &Inventory, spec: &ASGMachinePoolSpec, version: Option<&str>) {
        for selector in subnet_selectors(spec) {
            inventory.forget_subnets(&selector);
        }
        for selector in spec.machine.security_groups.iter().filter_map(security_group_selector) {
            inventory.forget_security_groups(&selector);
        }
        if let Ok(Some(name)) = spec.machine.image.ssm_parameter_for(version) {
            inventory.forget_parameter(&name);
        }
    }

    fn miss(&mut self, condition: &'static str, reason: &'static str, message: String) {
        self.find(Finding::new(condition, false, reason, message));
    }

    fn find(&mut self, found: Finding) {
        if self.findings.iter().all(|finding| finding.type_ != found.type_) {
            self.findings.push(found);
        }
    }

    fn fail(&mut self, condition: &'static str, error: &CloudError) {
        self.find(Finding::new(condition, Status::Unknown, reasons::INTERNAL_ERROR, error.to_string()));
        if self.failed.iter().all(|known| known.api != error.api) {
            self.failed.push(error.clone());
        }
    }

    /// The subnets that the spec selects; `None` if a read failed.
    async fn find_subnets(
        &mut self,
        inventory: &Inventory,
        spec: &ASGMachinePoolSpec,
    ) -> Option<Vec<Subnet>> {
        let mut found: Vec<Subnet> = Vec::new();
        for selector in subnet_selectors(spec) {
            match inventory.subnets(&selector).await {
                Ok(subnets) if subnets.is_empty() && matches!(selector, Selector::Tags(_)) => self.miss(
                    conditions::GROUP_READY,
                    reasons::group_ready::SUBNET_NOT_FOUND,
                    format!(
                        "no subnet matches {}. Correct spec.subnets, or tag a subnet.",
                        describe(&selector)
                    ),
                ),
                Ok(subnets) => found.extend(subnets.iter().cloned()),
                Err(error) => {
                    // Incomplete subnets would move the group: without any, it keeps those that it has.
                    self.fail(conditions::GROUP_READY, &error);
                    return None;
                }
            }
        }
        Some(found)
    }

    /// Restricts the subnets to the MachinePool's failure domains (H5). IDs are sent to AWS as they are, even if
    /// unknown: if AWS rejects them, a condition has its message.
    fn choose_subnets(&mut self, mut found: Vec<Subnet>, ids: &BTreeSet<String>, owner: &MachinePool) {
        let domains = owner.failure_domains();
        let allowed = |subnet: &Subnet| domains.is_empty() || domains.contains(&subnet.zone);
        self.subnets = found.iter().filter(|s| allowed(s)).map(|s| s.id.clone()).collect();
        let known: BTreeSet<&String> = found.iter().map(|s| &s.id).collect();
        self.subnets.extend(ids.iter().filter(|id| !known.contains(id)).cloned());
        if self.subnets.is_empty() && !found.is_empty() {
            self.miss(
                conditions::GROUP_READY,
                reasons::group_ready::SUBNET_NOT_FOUND,
                format!(
                    "no subnet of spec.subnets is in the failure domains {} of the MachinePool. Add one, or change \
                     spec.failureDomains of the MachinePool.",
                    domains.join(", ")
                ),
            );
        }
        found.retain(allowed);
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found.dedup_by(|a, b| a.id == b.id);
        self.zones = found;
    }

    async fn resolve_security_groups(&mut self, inventory: &Inventory, spec: &ASGMachinePoolSpec) {
        let mut ids = BTreeSet::new();
        let vpc = self.zones.first().map(|subnet| subnet.vpc.clone());
        for selector in &spec.machine.security_groups {
            ids.extend(selector.id.clone());
            let Some(selector) = security_group_selector(selector) else { continue };
            let Some(vpc) = &vpc else {
                if let Some(error) = self.failed.first().cloned() {
                    self.fail(conditions::LAUNCH_TEMPLATE_READY, &error);
                    continue;
                }
                self.miss(
                    conditions::LAUNCH_TEMPLATE_READY,
                    reasons::launch_template_ready::SECURITY_GROUP_NOT_FOUND,
                    format!(
                        "the VPC of the security groups with {} is unknown because spec.subnets selects no \
                         subnet; see condition GroupReady.",
                        describe(&selector)
                    ),
                );
                continue;
            };
            match inventory.security_groups(&selector).await {
                Err(error) => self.fail(conditions::LAUNCH_TEMPLATE_READY, &error),
                Ok(groups) => {
                    // The same name or tags may exist in other VPCs of the account.
                    let mut here = groups.iter().filter(|group| group.vpc == *vpc).peekable();
                    if here.peek().is_none() {
                        self.miss(
                            conditions::LAUNCH_TEMPLATE_READY,
                            reasons::launch_template_ready::SECURITY_GROUP_NOT_FOUND,
                            format!(
                                "no security group in the VPC of spec.subnets matches {}. Correct \
                                 spec.machine.securityGroups.",
                                describe(&selector)
                            ),
                        );
                    }
                    ids.extend(here.map(|group| group.id.clone()));
                }
            }
        }
        self.security_groups = ids.into_iter().collect();
    }

    async fn resolve_image(
        &mut self,
        inventory: &Inventory,
        spec: &ASGMachinePoolSpec,
        owner: &MachinePool,
        pinned: Option<&str>,
        named: &mut Option<NamedImage>,
    ) {
        let not_found = reasons::launch_template_ready::IMAGE_NOT_FOUND;
        let image = &spec.machine.image;
        let id = match (&image.id, pinned) {
            (Some(id), _) => id.clone(),
            (None, Some(pinned)) => {
                self.available_image = named_now(inventory, image, owner.version(), named).await;
                let available = self.available_image.clone();
                let rolls_out = image.update_policy() == ImageUpdatePolicy::RollOut;
                available.filter(|_| rolls_out).unwrap_or_else(|| pinned.to_owned())
            }
            (None, None) => match image.ssm_parameter_for(owner.version()) {
                Err(error) => {
                    return self.miss(conditions::LAUNCH_TEMPLATE_READY, not_found, error.to_string());
                }
                Ok(None) => return,
                Ok(Some(name)) => match inventory.parameter(&name).await {
                    Ok(Some(id)) => id,
                    Ok(None) => {
                        let message = format!(
                            "SSM parameter {name} does not exist. Correct spec.machine.image.ssmParameter or \
                             spec.template.spec.version of the MachinePool."
                        );
                        return self.miss(conditions::LAUNCH_TEMPLATE_READY, not_found, message);
                    }
                    Err(error) if error.class == ErrorClass::Invalid => {
                        let message = format!(
                            "{}. Correct the parameter, or spec.machine.image.ssmParameter.",
                            error.message.trim_end_matches('.')
                        );
                        return self.miss(conditions::LAUNCH_TEMPLATE_READY, not_found, message);
                    }
                    Err(error) => return self.fail(conditions::LAUNCH_TEMPLATE_READY, &error),
                },
            },
        };
        match inventory.image(&id).await {
            Ok(Some(image)) => {
                self.image = Some(ResolvedImage {
                    id,
                    root_device: image.root_device_name.unwrap_or_else(|| "/dev/xvda".to_owned()),
                    architecture: image.architecture,
                    is_windows: image.is_windows,
                    root_volume_gib: image.root_volume_gib,
                });
            }
            Ok(None) => self.miss(
                conditions::LAUNCH_TEMPLATE_READY,
                not_found,
                format!(
                    "image {id} does not exist in this region, or is not shared with this account. Correct \
                         spec.machine.image."
                ),
            ),
            Err(error) => self.fail(conditions::LAUNCH_TEMPLATE_READY, &error),
        }
    }
}

/// The subnets of the group; while it is not read, those that the status reports.
fn used_subnets(inventory: &Inventory, objects: &PoolObjects) -> BTreeSet<String> {
    let view = objects.cloud_names().map(|(group, _)| inventory.view(&group));
    let group = view.as_ref().and_then(View::group).map(|group| group.settings.subnets.clone());
    let reported = || {
        let subnets = objects.pool.status.iter().flat_map(|status| &status.subnets);
        subnets.map(|subnet| subnet.id.clone()).collect()
    };
    group.unwrap_or_else(reported)
}

/// What selects the subnets of the spec: each of its tag selectors, then all IDs together.
fn subnet_selectors(spec: &ASGMachinePoolSpec) -> Vec<Selector> {
    let tags = spec.subnets.iter().filter_map(|subnet| subnet.tags.clone()).map(Selector::Tags);
    tags.chain(Some(ids(spec)).filter(|ids| !ids.is_empty()).map(Selector::Ids)).collect()
}

/// What a security group of the spec is looked up by; `None` if it is named by its ID.
fn security_group_selector(group: &SecurityGroupSelector) -> Option<Selector> {
    match (&group.id, &group.tags, &group.name) {
        (Some(_), ..) => None,
        (_, Some(tags), _) => Some(Selector::Tags(tags.clone())),
        (_, _, name) => name.clone().map(Selector::Name),
    }
}

/// The subnets that the spec names by ID.
fn ids(spec: &ASGMachinePoolSpec) -> BTreeSet<String> {
    spec.subnets.iter().filter_map(|subnet| subnet.id.clone()).collect()
}

/// The image of the parameter that the previous leader reported.
#[must_use]
pub fn reported_image(pool: &ASGMachinePool, version: Option<&str>) -> Option<NamedImage> {
    let reported = pool.status.as_ref()?.image.as_ref()?.available_id.clone()?;
    Some((pool.spec.machine.image.ssm_parameter_for(version).ok()??, reported))
}

/// The image that the parameter names now. If it cannot be read, it is the one that was read last, so that the desired
/// state does not alternate.
async fn named_now(
    inventory: &Inventory,
    image: &Image,
    version: Option<&str>,
    named: &mut Option<NamedImage>,
) -> Option<String> {
    let name = image.ssm_parameter_for(version).ok()??;
    match inventory.parameter(&name).await {
        Ok(id) => *named = id.map(|id| (name, id)),
        Err(error) => {
            tracing::debug!(
                %error,
                name,
                "failed to read the SSM parameter; the last image that was read is kept"
            );
            named.take_if(|(known, _)| *known != name);
        }
    }
    named.as_ref().map(|(_, id)| id.clone())
}

fn describe(selector: &Selector) -> String {
    match selector {
        Selector::Ids(ids) => format!("the IDs {}", ids.iter().cloned().collect::<Vec<_>>().join(", ")),
        Selector::Name(name) => format!("the name {name}"),
        Selector::Tags(tags) => {
            let tags: Vec<String> = tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("the tags {}", tags.join(", "))
        }
    }
}
