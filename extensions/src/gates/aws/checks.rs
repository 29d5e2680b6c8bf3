//! Compares what pools require with what AWS answered. Pure: what has no answer does not block.

use std::collections::{BTreeMap, BTreeSet};

use capasg_api::names::listed;
use capasg_cloud::{Place, Selector};

use super::{Check, Needs, vcpus::insufficient_quotas};
use crate::{
    blocks::Cause,
    gates::Blocker,
    lookups::{Answer, Answers, ImageSource, SubnetFacts},
};

/// What blocks, in the order of the pools for each cause.
pub(super) fn blockers(all: &[Check], answers: &Answers) -> Vec<Blocker> {
    let mut blockers = Vec::new();
    let mut add = |cause: Cause, message: Option<String>| {
        blockers.extend(message.map(|message| Blocker { cause, message }));
    };
    for needs in all {
        let subnets = subnets_of(needs, answers);
        let groups = groups_of(needs, answers);
        add(Cause::NetworkInvalid, missing_subnets(needs, subnets.as_ref()));
        add(Cause::NetworkInvalid, missing_groups(needs, groups));
        add(Cause::NetworkInvalid, several_vpcs(needs, subnets.as_ref(), groups));
        add(Cause::TypesNotOffered, zones_without_types(needs, subnets.as_ref(), answers));
        add(Cause::ImageMissing, missing_images(needs, answers));
    }
    add(Cause::AddressesMissing, too_few_addresses(all, answers));
    add(Cause::QuotaInsufficient, insufficient_quotas(all, answers));
    blockers
}

type Subnets<'a> = BTreeMap<&'a str, &'a SubnetFacts>;

/// The subnets of a pool; `None` unless all its selectors have an answer.
fn subnets_of<'a>(needs: &Check, answers: &'a Answers) -> Option<Subnets<'a>> {
    let mut found = Subnets::new();
    for question in needs.subnet_questions() {
        let Some(Answer::Subnets(subnets)) = answers.get(&question) else { return None };
        found.extend(subnets.iter().map(|(id, facts)| (id.as_str(), facts)));
    }
    (!needs.subnets.is_empty()).then_some(found)
}

fn groups_of<'a>(needs: &Check, answers: &'a Answers) -> Option<&'a BTreeMap<String, String>> {
    match answers.get(&needs.group_question()?) {
        Some(Answer::SecurityGroups(groups)) => Some(groups),
        _ => None,
    }
}

fn missing(needs: &Check, what: &str, missing: &[&str]) -> Option<String> {
    let Needs { name, region, .. } = &**needs;
    (!missing.is_empty()).then(|| format!("{what} of {name} do not exist in {region}: {}", listed(missing)))
}

fn missing_subnets(needs: &Check, subnets: Option<&Subnets<'_>>) -> Option<String> {
    let subnets = subnets?;
    let ids = needs.subnets.iter().filter_map(|selector| match selector {
        Selector::Ids(ids) => Some(ids),
        Selector::Tags(_) | Selector::Name(_) => None,
    });
    let absent: Vec<&str> =
        ids.flatten().map(String::as_str).filter(|id| !subnets.contains_key(id)).collect();
    missing(needs, "subnets", &absent)
}

fn missing_groups(needs: &Check, groups: Option<&BTreeMap<String, String>>) -> Option<String> {
    let groups = groups?;
    let ids = needs.security_groups.iter();
    let absent: Vec<&str> = ids.filter(|id| !groups.contains_key(*id)).map(String::as_str).collect();
    missing(needs, "security groups", &absent)
}

fn several_vpcs(
    needs: &Check,
    subnets: Option<&Subnets<'_>>,
    groups: Option<&BTreeMap<String, String>>,
) -> Option<String> {
    let of_subnets = subnets.into_iter().flatten().map(|(_, facts)| facts.vpc.as_str());
    let of_groups = groups.into_iter().flatten().map(|(_, vpc)| vpc.as_str());
    let vpcs: BTreeSet<&str> = of_subnets.chain(of_groups).collect();
    let vpcs: Vec<&str> = vpcs.into_iter().collect();
    let message = || {
        format!("subnets and security groups of {} are in more than one VPC: {}", needs.name, listed(&vpcs))
    };
    // An update of a group with tag selectors may mean several VPCs; only IDs are compared.
    let only_ids = needs.subnets.iter().all(|selector| matches!(selector, Selector::Ids(_)));
    (only_ids && vpcs.len() > 1).then(message)
}

/// The zones in which none of the types is offered: every launch there fails.
fn zones_without_types(needs: &Check, subnets: Option<&Subnets<'_>>, answers: &Answers) -> Option<String> {
    let Some(Answer::Offerings(offered)) = answers.get(&needs.type_question()?) else { return None };
    let offered: BTreeSet<&str> = offered.values().flatten().map(String::as_str).collect();
    let Needs { name, region, .. } = &**needs;
    if offered.is_empty() {
        return Some(format!("no instance type of {name} is offered in {region}"));
    }
    let of_subnets = subnets.into_iter().flatten().map(|(_, facts)| facts.zone.as_str());
    let own = of_subnets.filter(|zone| needs.zones.is_empty() || needs.zones.contains(*zone));
    let mut zones: BTreeSet<&str> = own.collect();
    if subnets.is_none() {
        zones.extend(needs.zones.iter().map(String::as_str));
    }
    let without: Vec<&str> = zones.difference(&offered).copied().collect();
    (!without.is_empty())
        .then(|| format!("no instance type of {name} is offered in these zones: {}", listed(&without)))
}

fn missing_images(needs: &Check, answers: &Answers) -> Option<String> {
    let absent = needs
        .images
        .iter()
        .filter(|source| answers.get(&needs.image_question(source)) == Some(&Answer::Image(false)));
    let absent: Vec<&str> = absent.map(name_of).collect();
    missing(needs, "images", &absent)
}

pub(super) fn name_of(source: &ImageSource) -> &str {
    match source {
        ImageSource::Id(name) | ImageSource::Parameter(name) => name,
    }
}

/// Each pool, and all pools of a place together, require as many free addresses as they launch instances. An instance may
/// take more than one.
fn too_few_addresses(all: &[Check], answers: &Answers) -> Option<String> {
    let mut short: Vec<&str> = Vec::new();
    let mut places: BTreeMap<&Place, (Vec<&str>, i64, Subnets<'_>)> = BTreeMap::new();
    for needs in all.iter().filter(|needs| needs.all_subnets && needs.instances > 0) {
        let Some(mut subnets) = subnets_of(needs, answers) else { continue };
        subnets.retain(|_, facts| needs.zones.is_empty() || needs.zones.contains(&facts.zone));
        if free(&subnets) < needs.instances {
            short.push(&needs.name);
            continue;
        }
        let (names, instances, union) = places.entry(&needs.place).or_default();
        names.push(&needs.name);
        *instances += needs.instances;
        union.extend(subnets);
    }
    for (names, instances, union) in places.values() {
        if free(union) < *instances {
            short.extend(names);
        }
    }
    (!short.is_empty())
        .then(|| format!("the subnets have fewer free addresses than new instances of {}", listed(&short)))
}

fn free(subnets: &Subnets<'_>) -> i64 {
    subnets.values().map(|facts| i64::from(facts.free)).sum()
}
