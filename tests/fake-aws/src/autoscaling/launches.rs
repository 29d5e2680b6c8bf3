//! Launches: where, what and how, then the way from `Pending` to `InService`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Group, Lifecycle, Membership, TemplateVersion,
    activities::{self, Status},
    ends, hooks, members, membership,
};
use crate::{
    Tree,
    ec2::{Ec2State, Instance, InstanceType, Market, Subnet, Volume, template_data, volumes},
    events::Event,
    happening::What,
    region::{Region, State},
    time::{millis, timestamp},
};

/// What a launch will be made of.
struct Plan {
    subnet: Subnet,
    kind: InstanceType,
    image: String,
    template: TemplateVersion,
    data: Tree,
    volumes: Vec<Volume>,
    market: Market,
}

/// Launches up to `count` instances; the first failure ends the attempt, the next is made after a growing wait.
pub(crate) fn launch(region: &mut Region, name: &str, count: usize) {
    for _ in 0..count {
        let Some(group) = region.state.groups.get(name) else { return };
        match plan(region, group) {
            Ok(plan) => {
                start(region, name, plan);
            }
            Err(refusal) => {
                failed(region, name, &refusal);
                return;
            }
        }
    }
}

/// Why nothing can be launched, in AWS's words, and where that was found out.
struct Refusal {
    words: String,
    subnet: Option<(String, String)>,
}

impl From<String> for Refusal {
    fn from(words: String) -> Self {
        Self { words, subnet: None }
    }
}

fn failed(region: &mut Region, name: &str, refusal: &Refusal) {
    let message = format!("{} Launching EC2 instance failed.", refusal.words);
    let description = format!("Launching a new EC2 instance.  Status Reason: {message}");
    let cause = activities::difference(region.now, "an instance was started", "increasing");
    let details = refusal.subnet.as_ref().map(|(subnet, zone)| place(subnet, zone));
    let sequence = activities::begin(region, name, &description, &cause, details.as_ref());
    activities::finish(region, name, sequence, Status::Failed, Some(&message));
    wait_longer(region, name);
}

fn place(subnet: &str, zone: &str) -> Tree {
    Tree::new().with("Subnet ID", subnet).with("Availability Zone", zone)
}

/// The next launch is tried after a growing wait; none any more if they fail for too long.
fn wait_longer(region: &mut Region, name: &str) {
    let settings = &region.settings;
    let (first, longest, now) = (settings.retry_millis, settings.retry_max_millis, region.now);
    let give_up = millis(settings.give_up_millis);
    let Some(group) = region.state.groups.get_mut(name) else { return };
    let wait = first.saturating_mul(1 << group.failures.min(20)).min(longest);
    group.failures += 1;
    group.launch_after = now + millis(wait);
    if now - *group.failing_since.get_or_insert(now) >= give_up {
        let reason = format!("Administratively suspended at {}", timestamp(now));
        group.suspended.entry("Launch".to_owned()).or_insert(reason);
    }
    region.schedule(wait, Event::Tick(name.to_owned()));
}

/// Chooses subnet, type and market, or says in AWS's words why nothing can be launched.
fn plan(region: &Region, group: &Group) -> Result<Plan, Refusal> {
    let state = &region.state;
    let market = {
        let markets =
            members(state, group).filter(|(_, own)| own.lifecycle.counts()).map(|(one, _)| one.market);
        let (spot, all) =
            markets.fold((0, 0), |(spot, all), one| (spot + i64::from(one == Market::Spot), all + 1));
        group.launches_from().market(all - spot, spot)
    };
    let mut refusal = None;
    for subnet in by_fewest_instances(state, group) {
        for (specification, kind) in group.launches_from().candidates() {
            let template = state.template(Some(&specification.id), None);
            let version = |wanted: &str| template.and_then(|template| template.version(wanted));
            let Some((number, newest)) = version(&specification.version) else {
                return Err("The specified launch template does not exist.".to_owned().into());
            };
            let older = region.settings.launches_older_version.then(|| version(&(number - 1).to_string()));
            let (number, version) = older.flatten().unwrap_or((number, newest));
            let template =
                TemplateVersion { id: specification.id.clone(), name: specification.name.clone(), number };
            let data = &version.data;
            let name = kind.or_else(|| data.text_of("InstanceType")).unwrap_or_default();
            let image = template_data::image(state, data).unwrap_or_default();
            // What was right when the group was told of it may have gone since.
            if let Some(words) = template_data::refusal(state, &region.settings, data, &[name.to_owned()]) {
                let gone = words.starts_with("The image id");
                return Err(if gone { format!("The AMI ID {image} does not exist.") } else { words }.into());
            }
            let volumes = volumes::launched(&state.network, state.network.images.get(&image), data)?;
            let Some(kind) = state.network.instance_types.get(name) else {
                return Err(format!("Invalid value '{name}' for InstanceType.").into());
            };
            let own_market =
                data.get("InstanceMarketOptions").and_then(|options| options.text_of("MarketType"));
            let template_market = if own_market == Some("spot") { Market::Spot } else { Market::OnDemand };
            let market = market.unwrap_or(template_market);
            match no_room(region, kind, subnet, market) {
                None => {
                    let (subnet, kind, data) = (subnet.clone(), kind.clone(), data.clone());
                    return Ok(Plan { subnet, kind, image, template, data, volumes, market });
                }
                Some(refused) => refusal = refusal.or(Some((refused, market, subnet))),
            }
        }
    }
    let Some(((code, words), market, subnet)) = refusal else {
        return Err("No subnet is left in this group.".to_owned().into());
    };
    let mixed = matches!(group.launches_from(), super::launch_source::LaunchSource::Mixed(_));
    let words = match (mixed, market) {
        (false, _) => words,
        (true, Market::OnDemand) => format!("Could not launch On-Demand Instances. {code} - {words}"),
        (true, Market::Spot) => format!("Could not launch Spot Instances. {code} - {words}"),
    };
    Err(Refusal { words, subnet: Some((subnet.id.clone(), subnet.zone.clone())) })
}

/// The group's subnets: the zone with fewest instances first, then the subnet with fewest, then the stated order.
fn by_fewest_instances<'a>(state: &'a State, group: &Group) -> Vec<&'a Subnet> {
    let (mut zones, mut places) = (BTreeMap::new(), BTreeMap::new());
    for (instance, membership) in members(state, group) {
        if membership.lifecycle.counts() {
            *zones.entry(instance.zone.clone()).or_insert(0) += 1;
            *places.entry(instance.subnet.clone()).or_insert(0) += 1;
        }
    }
    let mut subnets: Vec<&Subnet> =
        group.subnets.iter().filter_map(|id| state.network.subnets.get(id)).collect();
    subnets.sort_by_key(|subnet| {
        (zones.get(&subnet.zone).copied().unwrap_or(0), places.get(&subnet.id).copied().unwrap_or(0))
    });
    subnets
}

/// EC2's code and words if there is no room for another machine.
fn no_room(
    region: &Region,
    kind: &InstanceType,
    subnet: &Subnet,
    market: Market,
) -> Option<(&'static str, String)> {
    let there = || region.state.instances.values().filter(|instance| instance.exists());
    let existing = |name: &str, zone: &str| {
        there()
            .filter(|instance| {
                (name == "*" || instance.kind == name) && (zone == "*" || instance.zone == zone)
            })
            .count()
    };
    if !region.capacity.allows(&kind.name, &subnet.zone, existing) {
        return Some(match market {
            Market::Spot => (
                "UnfulfillableCapacity",
                "There is no Spot capacity available that matches your request.".to_owned(),
            ),
            Market::OnDemand => (
                "InsufficientInstanceCapacity",
                format!(
                    "We currently do not have sufficient {} capacity in the Availability Zone you requested ({}). \
                     Our system will be working on provisioning additional capacity.",
                    kind.name, subnet.zone
                ),
            ),
        });
    }
    if let Some(limit) = region.settings.vcpu_limit
        && there().map(|instance| instance.vcpus).sum::<u32>() + kind.vcpus > limit
    {
        let words = format!(
            "You have requested more vCPU capacity than your current vCPU limit of {limit} allows for the instance \
             bucket that the specified instance type belongs to."
        );
        return Some(("VcpuLimitExceeded", words));
    }
    let taken = there().filter(|instance| instance.subnet == subnet.id).count();
    (taken >= subnet.addresses).then(|| {
        let words = format!(
            "There are not enough free addresses in subnet '{}' to satisfy the requested number of instances.",
            subnet.id
        );
        ("InsufficientFreeAddressesInSubnet", words)
    })
}

fn start(region: &mut Region, name: &str, plan: Plan) -> String {
    let id = region.ids.resource("i");
    let host = region.ids.next();
    let description = format!("Launching a new EC2 instance: {id}");
    let cause = activities::difference(region.now, "an instance was started", "increasing");
    let details = place(&plan.subnet.id, &plan.subnet.zone);
    let sequence = activities::begin(region, name, &description, &cause, Some(&details));
    let now = region.now;
    let Some(group) = region.state.groups.get_mut(name) else { return id };
    let mut tags = BTreeMap::new();
    for specification in plan.data.items_of("TagSpecifications") {
        if specification.text_of("ResourceType") == Some("instance") {
            for tag in specification.items_of("Tags") {
                let (key, value) = (tag.text_of("Key"), tag.text_of("Value"));
                tags.insert(key.unwrap_or_default().to_owned(), value.unwrap_or_default().to_owned());
            }
        }
    }
    // The group's tags win over the template's.
    tags.extend(
        group.tags.iter().filter(|(_, tag)| tag.propagate).map(|(key, tag)| (key.clone(), tag.value.clone())),
    );
    tags.insert("aws:autoscaling:groupName".to_owned(), name.to_owned());
    tags.insert("aws:ec2launchtemplate:id".to_owned(), plan.template.id.clone());
    tags.insert("aws:ec2launchtemplate:version".to_owned(), plan.template.number.to_string());
    let member = Membership {
        group: name.to_owned(),
        lifecycle: Lifecycle::Pending,
        healthy: true,
        protected: group.flag("NewInstancesProtectedFromScaleIn"),
        template: Some(plan.template),
        in_service: None,
        actions: Vec::new(),
        activity: Some(sequence),
        cause: None,
        held: None,
        timed_out: false,
    };
    group.members.insert(id.clone());
    group.scaled = Some(now);
    if !region.settings.launches_die {
        group.failures = 0;
    }
    let instance = Instance {
        id: id.clone(),
        state: Ec2State::Pending,
        vcpus: plan.kind.vcpus,
        kind: plan.kind.name,
        image: plan.image,
        zone: plan.subnet.zone,
        address: free_address(&region.state.instances, &plan.subnet.cidr, host),
        subnet: plan.subnet.id,
        vpc: plan.subnet.vpc,
        market: plan.market,
        security_groups: template_data::security_groups(&plan.data),
        profile: template_data::profile(&plan.data),
        key: plan.data.text_of("KeyName").map(str::to_owned),
        user_data: plan.data.text_of("UserData").map(Arc::from),
        volumes: plan.volumes,
        launched: now,
        reason: String::new(),
        impaired: false,
        tags,
        group: Some(member),
    };
    region.state.instances.insert(id.clone(), instance);
    region.emit_state(&id);
    region.tell(|_| Some(What::Launched { id: id.clone() }));
    region.schedule(region.settings.launch_millis, Event::Started(id.clone()));
    id
}

/// Launches one instance more than desired in a zone, if it has room; gives its id.
pub(crate) fn launch_in(region: &mut Region, name: &str, zone: &str) -> Option<String> {
    let group = region.state.groups.get(name)?;
    let plan = plan(region, group).ok().filter(|plan| plan.subnet.zone == zone)?;
    Some(start(region, name, plan))
}

/// An address of the subnet that nothing has or had: two Nodes of one name would be one.
fn free_address(instances: &BTreeMap<String, Instance>, cidr: &str, random: u64) -> String {
    let held: BTreeSet<&str> = instances.values().map(|instance| instance.address.as_str()).collect();
    let mut all = (0..ADDRESSES).map(|step| address(cidr, random % ADDRESSES + step));
    all.find(|one| !held.contains(one.as_str())).unwrap_or_else(|| address(cidr, random))
}

/// How many addresses of a subnet are handed out, past those that AWS keeps.
const ADDRESSES: u64 = 16 * 250;

/// The address of this number, modulo all of them, in the subnet's first 4096.
fn address(cidr: &str, number: u64) -> String {
    let mut octets = cidr.split(['.', '/']).map(|part| part.parse::<u64>().unwrap_or(0));
    let (first, second) = (octets.next().unwrap_or(10), octets.next().unwrap_or(0));
    let third = octets.next().unwrap_or(0) + number / 250 % 16;
    format!("{first}.{second}.{third}.{}", 4 + number % 250)
}

/// A launched machine runs, or dies at once.
pub(crate) fn started(region: &mut Region, id: &str) {
    if region.settings.launches_die
        && membership(region, id).is_some_and(|own| own.lifecycle == Lifecycle::Pending)
    {
        return died(region, id);
    }
    let Some(instance) = region.state.instances.get_mut(id) else { return };
    if instance.state == Ec2State::Pending {
        instance.state = Ec2State::Running;
    }
    let waits = instance.group.as_ref().is_some_and(|own| own.lifecycle == Lifecycle::Pending);
    region.emit_state(id);
    if !waits {
        return;
    }
    if !hooks::open(region, id, hooks::LAUNCHING) {
        in_service(region, id);
    }
}

/// A machine ended before it served: its launch is called off.
fn died(region: &mut Region, id: &str) {
    let Some(own) = membership(region, id) else { return };
    let (name, activity) = (own.group.clone(), own.activity.take());
    if let Some(sequence) = activity {
        let words = format!(
            "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: {}",
            region.settings.launches_die_of
        );
        activities::finish(region, &name, sequence, Status::Cancelled, Some(&words));
    }
    if let Some(instance) = region.state.instances.get_mut(id) {
        instance.state = Ec2State::Terminated;
    }
    let cause =
        format!("At {} an instance was taken out of service in response to its end.", timestamp(region.now));
    ends::begin(region, id, &cause);
    wait_longer(region, &name);
}

/// An instance enters service: its launch is done and protection begins.
pub(crate) fn in_service(region: &mut Region, id: &str) {
    let now = region.now;
    let Some(own) = membership(region, id) else { return };
    if !matches!(own.lifecycle, Lifecycle::Pending | Lifecycle::PendingProceed) {
        return;
    }
    own.lifecycle = Lifecycle::InService;
    own.in_service = Some(now);
    let (name, activity) = (own.group.clone(), own.activity.take());
    region.tell(|_| Some(What::InService { id: id.to_owned() }));
    if let Some(sequence) = activity {
        activities::finish(region, &name, sequence, Status::Successful, None);
    }
    if let Some(group) = region.state.groups.get_mut(&name) {
        group.failing_since = None;
    }
    if region.state.instances.get(id).is_some_and(|instance| !instance.exists()) {
        region.schedule(region.settings.detect_millis, Event::HealthCheck(id.to_owned()));
    }
    region.reconsider(&name);
}
