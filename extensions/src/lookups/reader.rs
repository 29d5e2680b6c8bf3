//! The reader with the inventories of the manager: its rate limit, its identity, and its kept reads.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_trait::async_trait;
use capasg_cloud::{CloudError, ErrorClass, Inventories, Inventory, Place, Selector, VcpuQuota};
use tracing::{debug, warn};

use super::{Answer, ImageSource, NoAnswer, Question, Reader, SubnetFacts};

/// The most regions of an identity: each keeps connections and answers. The names come from specs and variables of users; those
/// of identities come from operators.
const MOST_REGIONS: usize = 64;

/// Reads from any region with any identity.
pub struct InventoryReader(pub Arc<Inventories>);

impl InventoryReader {
    /// The inventory of a place; `None` if its region cannot be the name of one, which would become part of a host name.
    fn inventory(&self, place: &Place) -> Option<Arc<Inventory>> {
        let open = self.0.open();
        let is_open = open.iter().any(|(known, _)| known == place);
        let has_room =
            || open.iter().filter(|(known, _)| known.identity == place.identity).count() < MOST_REGIONS;
        (is_open || (is_region(&place.region) && has_room())).then(|| self.0.inventory(place))
    }
}

/// As in the schema of pools: letters, more parts, and a number.
fn is_region(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let [first, between @ .., last] = &parts[..] else { return false };
    let letters = |part: &str| part.len() >= 2 && part.bytes().all(|c| c.is_ascii_lowercase());
    let plain =
        |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let number = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
    name.len() <= 32
        && letters(first)
        && !between.is_empty()
        && between.iter().all(|part| plain(part))
        && number(last)
}

#[async_trait]
impl Reader for InventoryReader {
    async fn read(&self, question: &Question) -> Result<Answer, NoAnswer> {
        let Place { identity, region } = question.place();
        let inventory = self.inventory(question.place()).ok_or(NoAnswer)?;
        let answer = answer(&inventory, question).await;
        answer.map_err(|error| {
            let (api, code, subject) = (error.api, error.code.as_str(), question.subject().as_str());
            warn!(region, identity = identity.name, subject, api, code, %error, "failed to read from AWS for a hook");
            NoAnswer
        })
    }
}

async fn answer(inventory: &Inventory, question: &Question) -> Result<Answer, CloudError> {
    Ok(match question {
        Question::Identity { .. } => {
            inventory.account().await?;
            Answer::Identity
        }
        Question::Subnets { selector, .. } => subnets(inventory, selector).await?,
        Question::SecurityGroups { ids, .. } => {
            let groups = inventory.security_groups(&Selector::Ids(ids.clone())).await?;
            Answer::SecurityGroups(groups.iter().map(|group| (group.id.clone(), group.vpc.clone())).collect())
        }
        Question::Image { source, .. } => Answer::Image(has_image(inventory, source).await?),
        Question::Offerings { types, .. } => {
            let mut zones: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
            for offering in inventory.type_offerings(types).await?.iter() {
                zones.entry(offering.instance_type.clone()).or_default().insert(offering.zone.clone());
            }
            Answer::Offerings(zones)
        }
        Question::Vcpus { types, .. } => {
            let names: Vec<String> = types.iter().cloned().collect();
            let found = inventory.instance_types(&names).await?.offered;
            Answer::Vcpus(found.iter().map(|kind| (kind.name.clone(), kind.vcpus)).collect())
        }
        Question::Quota { place, quota } => quota_of(inventory, &place.region, *quota).await?,
    })
}

async fn subnets(inventory: &Inventory, selector: &Selector) -> Result<Answer, CloudError> {
    let found = inventory.subnets(selector).await?;
    let addresses = inventory.subnet_addresses(selector).await?;
    let free: BTreeMap<&str, i32> =
        addresses.iter().map(|subnet| (subnet.subnet.as_str(), subnet.free)).collect();
    let facts = found.iter().map(|subnet| {
        // A subnet that was created between the two reads has free addresses.
        let free = free.get(subnet.id.as_str()).copied().unwrap_or(i32::MAX);
        (subnet.id.clone(), SubnetFacts { zone: subnet.zone.clone(), vpc: subnet.vpc.clone(), free })
    });
    Ok(Answer::Subnets(facts.collect()))
}

async fn quota_of(inventory: &Inventory, region: &str, quota: VcpuQuota) -> Result<Answer, CloudError> {
    let (value, in_use) = tokio::try_join!(inventory.vcpu_quota(quota), inventory.vcpus_in_use())?;
    let used = in_use.get(&quota).copied().unwrap_or_default();
    // Messages of hooks do not have what changes all the time.
    debug!(region, quota = quota.code, value, used, "read a quota for vCPUs");
    Ok(Answer::Quota { value, used })
}

async fn has_image(inventory: &Inventory, source: &ImageSource) -> Result<bool, CloudError> {
    let id = match source {
        ImageSource::Id(id) => id.clone(),
        ImageSource::Parameter(name) => match inventory.parameter(name).await {
            Ok(Some(id)) => id,
            Ok(None) => return Ok(false),
            // It holds no image ID, or AWS does not accept the name.
            Err(error) if error.class == ErrorClass::Invalid && !error.is_unsendable() => return Ok(false),
            Err(error) => return Err(error),
        },
    };
    Ok(inventory.image(&id).await?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_regions_are_as_the_schema_of_pools_has_them() {
        for name in ["eu-west-1", "us-gov-east-1", "ap-southeast-12", "eusc-de-east-1"] {
            assert!(is_region(name), "{name}");
        }
        for name in [
            "",
            "eu",
            "eu-1",
            "eu-west-a",
            "e-west-1",
            "eu-west-1.example.com",
            "eu-west-1/",
            "EU-west-1",
            "eu--1",
        ] {
            assert!(!is_region(name), "{name}");
        }
        assert!(!is_region(&format!("eu-{}-1", "a".repeat(32))));
    }
}
