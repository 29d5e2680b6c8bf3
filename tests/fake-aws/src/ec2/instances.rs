//! Instances as EC2 sees them: running, shutting down, terminated, then forgotten.

use std::collections::BTreeMap;

use super::{Ec2State, Filters, Instance, Market, dry_run, tags, template_data};
use crate::{
    ApiError, Tree,
    events::Event,
    pages::Page,
    region::{Region, View},
    time::timestamp,
};

impl Ec2State {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::ShuttingDown => "shutting-down",
            Self::Terminated => "terminated",
        }
    }

    fn code(self) -> u32 {
        match self {
            Self::Pending => 0,
            Self::Running => 16,
            Self::Stopping => 64,
            Self::Stopped => 80,
            Self::ShuttingDown => 32,
            Self::Terminated => 48,
        }
    }

    pub(crate) fn render(self) -> Tree {
        Tree::new().with("Code", self.code()).with("Name", self.as_str())
    }
}

impl Instance {
    /// Whether the machine is there: neither stopped nor shutting down nor gone.
    pub(crate) fn exists(&self) -> bool {
        matches!(self.state, Ec2State::Pending | Ec2State::Running)
    }

    pub(crate) fn dns_name(&self, region: &str) -> String {
        let host = format!("ip-{}", self.address.replace('.', "-"));
        if region == "us-east-1" {
            format!("{host}.ec2.internal")
        } else {
            format!("{host}.{region}.compute.internal")
        }
    }

    fn reservation(&self) -> String {
        self.id.replacen("i-", "r-", 1)
    }

    fn cpu_options(&self) -> Tree {
        let threads = if self.vcpus.is_multiple_of(2) { 2 } else { 1 };
        Tree::new().with("CoreCount", self.vcpus / threads).with("ThreadsPerCore", threads)
    }

    fn render(&self, view: &View<'_>) -> Tree {
        let groups = self.security_groups.iter().map(|id| {
            let name = view.state.network.security_groups.get(id).map(|group| group.name.clone());
            Tree::new().with("GroupId", id).with_opt("GroupName", name)
        });
        let profile = self.profile.as_ref().map(|name| {
            let arn =
                format!("arn:{}:iam::{}:instance-profile/{name}", view.scope.partition(), view.scope.account);
            Tree::new().with("Arn", arn)
        });
        let there = self.state != Ec2State::Terminated;
        Tree::new()
            .with("InstanceId", &self.id)
            .with("ImageId", &self.image)
            .with("InstanceType", &self.kind)
            .with("State", self.state.render())
            .with("StateTransitionReason", &self.reason)
            .with("LaunchTime", timestamp(self.launched))
            .with("CpuOptions", self.cpu_options())
            .with("Placement", Tree::new().with("AvailabilityZone", &self.zone).with("Tenancy", "default"))
            .with("PrivateDnsName", if there { self.dns_name(&view.scope.region) } else { String::new() })
            .with_opt("PrivateIpAddress", there.then_some(&self.address))
            .with_opt("SubnetId", there.then_some(&self.subnet))
            .with_opt("VpcId", there.then_some(&self.vpc))
            .with_opt("InstanceLifecycle", (self.market == Market::Spot).then_some("spot"))
            .with_opt("KeyName", self.key.as_deref())
            .with_opt("IamInstanceProfile", profile)
            .with("SecurityGroups", Tree::list(groups))
            .with("Tags", tags::render(&self.tags))
    }
}

/// Refuses malformed and unknown ids: one bad id fails the whole call.
pub(crate) fn all_known(known: &BTreeMap<String, Instance>, wanted: &[String]) -> Result<(), ApiError> {
    for id in wanted {
        if !template_data::plausible(id, "i-") {
            return Err(ApiError::refused("InvalidInstanceID.Malformed", format!("Invalid id: \"{id}\"")));
        }
        if !known.contains_key(id) {
            return Err(ApiError::refused(
                "InvalidInstanceID.NotFound",
                format!("The instance ID '{id}' does not exist"),
            ));
        }
    }
    Ok(())
}

pub(crate) fn describe(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    let wanted = params.texts_of("InstanceIds");
    if !wanted.is_empty() && params.get("MaxResults").is_some() {
        return Err(ApiError::refused(
            "InvalidParameterCombination",
            "The parameter instancesSet cannot be used with the parameter maxResults",
        ));
    }
    all_known(&view.state.instances, &wanted)?;
    let allowed = [
        "instance-id",
        "instance-state-name",
        "instance-type",
        "availability-zone",
        "subnet-id",
        "vpc-id",
        "image-id",
        "private-ip-address",
        "private-dns-name",
    ];
    let filters = Filters::read(params, &allowed)?;
    let page = Page::results(params, 5, 1000)?;
    let entries = view.state.instances.values().filter(|instance| {
        (wanted.is_empty() || wanted.contains(&instance.id))
            && filters.match_all(&instance.tags, |name| {
                vec![match name {
                    "instance-id" => instance.id.clone(),
                    "instance-state-name" => instance.state.as_str().to_owned(),
                    "instance-type" => instance.kind.clone(),
                    "availability-zone" => instance.zone.clone(),
                    "subnet-id" => instance.subnet.clone(),
                    "vpc-id" => instance.vpc.clone(),
                    "image-id" => instance.image.clone(),
                    "private-ip-address" => instance.address.clone(),
                    _ => instance.dns_name(&view.scope.region),
                }]
            })
    });
    let entries = entries.map(|instance| {
        let tree = Tree::new()
            .with("ReservationId", instance.reservation())
            .with("OwnerId", &view.scope.account)
            .with("Instances", vec![instance.render(view)]);
        (instance.id.clone(), tree)
    });
    Ok(page.reply(view.settings, "Reservations", entries.collect()))
}

/// `TerminateInstances`: past every protection, unknown to the group until it looks.
pub(crate) fn terminate(region: &mut Region, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    let wanted = params.texts_of("InstanceIds");
    if wanted.len() > 1000 {
        return Err(ApiError::refused(
            "InvalidParameterValue",
            "At most 1000 instances can be terminated in a request.",
        ));
    }
    all_known(&region.state.instances, &wanted)?;
    let mut changes = Vec::new();
    for id in &wanted {
        let before = region.state.instances.get(id).map(|instance| instance.state);
        shut_down(region, id);
        if let (Some(before), Some(instance)) = (before, region.state.instances.get(id)) {
            let change = Tree::new()
                .with("InstanceId", id)
                .with("PreviousState", before.render())
                .with("CurrentState", instance.state.render());
            changes.push(change);
        }
    }
    Ok(Tree::new().with("TerminatingInstances", changes))
}

/// Starts a machine's end; a no-op if it is ending or gone.
pub(crate) fn shut_down(region: &mut Region, id: &str) {
    let now = region.now;
    let Some(before) = region.state.instances.get(id).map(|instance| instance.state) else { return };
    match before {
        Ec2State::Pending | Ec2State::Running => region.tell_shut_down(id),
        // It was told when it stopped.
        Ec2State::Stopping | Ec2State::Stopped => {}
        Ec2State::ShuttingDown | Ec2State::Terminated => return,
    }
    let Some(instance) = region.state.instances.get_mut(id) else { return };
    instance.state = Ec2State::ShuttingDown;
    instance.reason = format!("User initiated ({})", now.format("%Y-%m-%d %H:%M:%S GMT"));
    let watched = instance.group.is_some();
    region.emit_state(id);
    region.schedule(region.settings.terminate_millis, Event::Ended(id.to_owned()));
    if watched {
        region.schedule(region.settings.detect_millis, Event::HealthCheck(id.to_owned()));
    }
}

/// `StopInstances` by a user: the machine shuts down and stays. For its group it is unhealthy, as one in any state but
/// `running` is (EC2 health checks, EC2 Auto Scaling User Guide).
pub(crate) fn stop(region: &mut Region, id: &str) {
    let now = region.now;
    if region.state.instances.get(id).is_none_or(|instance| instance.state != Ec2State::Running) {
        return;
    }
    region.tell_shut_down(id);
    let Some(instance) = region.state.instances.get_mut(id) else { return };
    instance.state = Ec2State::Stopping;
    instance.reason = format!("User initiated ({})", now.format("%Y-%m-%d %H:%M:%S GMT"));
    region.emit_state(id);
    region.schedule(region.settings.terminate_millis, Event::Stopped(id.to_owned()));
    region.schedule(region.settings.detect_millis, Event::HealthCheck(id.to_owned()));
}

/// A machine has stopped, unless it is terminated meanwhile.
pub(crate) fn stopped(region: &mut Region, id: &str) {
    let Some(instance) = region.state.instances.get_mut(id) else { return };
    if instance.state == Ec2State::Stopping {
        instance.state = Ec2State::Stopped;
        region.emit_state(id);
    }
}

/// A machine has ended.
pub(crate) fn ended(region: &mut Region, id: &str) {
    let Some(instance) = region.state.instances.get_mut(id) else { return };
    instance.state = Ec2State::Terminated;
    region.emit_state(id);
    region.schedule(region.settings.forget_millis, Event::Forget(id.to_owned()));
}

/// EC2 forgets a machine; one that its group still lists (held by a hook) is forgotten after it left the group.
pub(crate) fn forget(region: &mut Region, id: &str) {
    if region.state.instances.get(id).is_some_and(|instance| instance.group.is_none()) {
        region.state.instances.remove(id);
    }
}
