//! The cloud port on the simulator's core, in process: one method, one call, one error class, as over the wire.

mod on_its_way;
mod queue;
mod replies;
mod requests;
mod shared;
mod written;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use capasg_cloud::{
    Clock, Cloud, CloudError, CloudFactory, Connection, ErrorClass, Group, Image, InstanceFacts,
    InstanceRefresh, InstanceType, LaunchTemplate, LaunchTemplateVersion, LifecycleHook, Page, Place, Queue,
    QueueName, Result, ScalingActivity, SecurityGroup, Selector, Subnet, Write, WriteReply,
};
use capasg_fake_aws::{ApiError, Call, Effect, Fault, Scope, Service, Simulator, Tree};

use crate::{Entry, Port, VirtualClock, journal::Moment, latency::Delays};
use on_its_way::{OnItsWay, Reply};
pub(crate) use shared::Shared;
use shared::take;

/// The queue of every run that has one.
pub(crate) const QUEUE: &str = "capasg";

/// The access key of the controllers' calls, which tells them from those of others.
pub(crate) const MANAGER: &str = "manager";

/// The time-out of a call in the SDK (`CALL_TIMEOUT` of `capasg-cloud-aws`); the gateway gives reads up before.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// The simulator as the cloud of one region, for whatever account the credentials belong to now.
pub struct SimulatedCloud {
    simulator: Simulator,
    place: Place,
    shared: Arc<Shared>,
}

/// Makes connections to the simulator.
#[derive(Clone)]
pub(crate) struct Factory {
    pub(crate) simulator: Simulator,
    pub(crate) shared: Arc<Shared>,
    /// Whether there is a queue of events.
    pub(crate) events: bool,
}

impl CloudFactory for Factory {
    fn connect(&self, place: &Place) -> Connection {
        let cloud = Arc::new(SimulatedCloud {
            simulator: self.simulator.clone(),
            place: place.clone(),
            shared: Arc::clone(&self.shared),
        });
        let queue = Arc::clone(&cloud) as Arc<dyn Queue>;
        Connection { cloud, events: self.events.then(|| (queue, QueueName::Name(QUEUE.to_owned()))) }
    }
}

impl SimulatedCloud {
    /// The cloud of one region, with a clock and a journal of its own.
    #[must_use]
    pub fn new(simulator: Simulator, region: &str) -> Self {
        let shared = Shared::new(VirtualClock::begin(), Arc::default(), Delays::default());
        Self { simulator, place: Place::of_process(region), shared }
    }

    /// Sends a call, and gives its reply once that has arrived.
    async fn call(&self, service: Service, api: &'static str, params: Tree) -> Result<Tree> {
        let (result, reply) = self.send(service, api, params, None).await;
        reply.arrives().await;
        result
    }

    /// Sends a call, which has its effect. Its reply is on its way.
    async fn send(
        &self,
        service: Service,
        api: &'static str,
        params: Tree,
        write: Option<&Write>,
    ) -> (Result<Tree>, Reply<'_>) {
        self.shared.meanwhile();
        self.simulator.set_time(self.shared.clock.now());
        self.shared.journal.called().await;
        let delay = self.shared.delays.draw(Port::Cloud);
        let sent = self.shared.clock.now();
        let reply = |lost: Duration| Reply::new(&self.shared, api, sent, delay.back + lost);
        let identity = &self.place.identity;
        let scope = Scope::account(&self.shared.account_of(identity), &self.place.region);
        let call = Call {
            scope,
            service,
            action: api.to_owned(),
            params,
            access_key: Some(MANAGER.to_owned()),
            session_token: None,
            wall_time: None,
        };
        if !delay.there.is_zero() {
            OnItsWay::new(&self.shared, (api, identity), write, &call, delay.there).arrives().await;
            self.simulator.set_time(self.shared.clock.now());
        }
        if take(&self.shared.silent) {
            self.shared.journal.tell(Moment::Failed { api, is_rejected: false, is_of_spec: false });
            std::future::pending::<()>().await;
        }
        if let Err(error) = self.shared.authenticate(api, identity) {
            return (Err(error), reply(Duration::ZERO));
        }
        match self.simulator.answer(call).result {
            Ok(answer) => {
                self.shared.journal.tell(Moment::Answered { api, failure: None });
                (Ok(answer), reply(Duration::ZERO))
            }
            Err(error) => {
                let lost =
                    if error.is_lost() { self.shared.delays.lost(CALL_TIMEOUT) } else { Duration::ZERO };
                let error = failed(api, &error);
                if error.class == ErrorClass::Denied || error.outcome_unknown {
                    self.shared.journal.tell(Moment::Answered { api, failure: Some(&error) });
                }
                let is_rejected = !matches!(
                    error.class,
                    ErrorClass::Transient | ErrorClass::Throttled | ErrorClass::Conflict
                );
                self.shared.journal.tell(Moment::Failed { api, is_rejected, is_of_spec: is_of_spec(&error) });
                (Err(error), reply(lost))
            }
        }
    }

    /// A read of which nothing is known if what it names does not exist.
    async fn find(&self, service: Service, api: &'static str, params: Tree) -> Result<Option<Tree>> {
        match self.call(service, api, params).await {
            Err(error) if error.class == ErrorClass::NotFound => Ok(None),
            reply => reply.map(Some),
        }
    }
}

/// Whether AWS rejects what a group is to launch for a key pair or an instance profile: no mishap takes one away that a group
/// launches with.
fn is_of_spec(error: &CloudError) -> bool {
    let of_spec = ["The key pair '", "Invalid IAM Instance Profile name"];
    error.api == "UpdateAutoScalingGroup" && of_spec.iter().any(|words| error.message.contains(words))
}

/// The port's error for the simulator's, classed by the product's own rules; a fault of AWS's own (5xx) may have had
/// its effect.
fn failed(api: &'static str, error: &ApiError) -> CloudError {
    if error.is_lost() {
        return CloudError::unanswered(api, "Network", &error.message);
    }
    let mut answered = CloudError::answered(api, error.status, &error.code, &error.message);
    answered.outcome_unknown = error.status >= 500 && answered.class == ErrorClass::Transient;
    answered
}

#[async_trait]
impl Cloud for SimulatedCloud {
    async fn account(&self) -> Result<String> {
        let api = "GetCallerIdentity";
        let reply = self.call(Service::Sts, api, Tree::new()).await?;
        replies::text(api, &reply, "Account")
    }

    async fn write(&self, write: &Write) -> Result<WriteReply> {
        let (service, params) = requests::write(write)?;
        let late = self.shared.journal.take_late();
        if let Some(after_millis) = late {
            self.simulator.add_fault(Fault::new(write.api(), Effect::ApplyLate { after_millis }));
        }
        if self.shared.delays.is_on() {
            self.shared.journal.tell(Moment::Sent { write });
        }
        let (result, reply) = self.send(service, write.api(), params, Some(write)).await;
        self.shared.journal.tell(Moment::Cloud { write });
        let at = self.shared.clock.now();
        let changed = result.is_ok() || result.as_ref().is_err_and(|error| error.outcome_unknown);
        let what = requests::describe(write);
        if late.is_some() {
            self.shared.journal.die().await;
        }
        self.shared.journal.wrote(Entry { at, port: Port::Cloud, what, changed }).await;
        reply.arrives().await;
        Ok(WriteReply { written: written::written(write, &result?)?, request_id: None })
    }

    async fn groups(&self, names: &[String], token: Option<String>) -> Result<Page<Group>> {
        let api = "DescribeAutoScalingGroups";
        if names.is_empty() {
            return Ok(Page::last(Vec::new()));
        }
        let params = Tree::new()
            .with("AutoScalingGroupNames", Tree::list(names))
            .with("MaxRecords", 100)
            .with_opt("NextToken", token);
        let reply = self.call(Service::AutoScaling, api, params).await?;
        if take(&self.shared.empty_lists) {
            return Ok(Page::last(Vec::new()));
        }
        replies::page(api, &reply, "AutoScalingGroups", replies::group)
    }

    async fn lifecycle_hooks(&self, group: &str) -> Result<Vec<LifecycleHook>> {
        let params = Tree::new().with("AutoScalingGroupName", group);
        let reply = self.call(Service::AutoScaling, "DescribeLifecycleHooks", params).await?;
        Ok(replies::listing(&reply, "LifecycleHooks", replies::hook).items)
    }

    async fn scaling_activities(&self, group: &str, token: Option<String>) -> Result<Page<ScalingActivity>> {
        let params = Tree::new()
            .with("AutoScalingGroupName", group)
            .with("MaxRecords", 50)
            .with_opt("NextToken", token);
        let reply = self.call(Service::AutoScaling, "DescribeScalingActivities", params).await?;
        Ok(replies::listing(&reply, "Activities", replies::activity))
    }

    async fn instance_refreshes(&self, group: &str, token: Option<String>) -> Result<Page<InstanceRefresh>> {
        let api = "DescribeInstanceRefreshes";
        let params = Tree::new()
            .with("AutoScalingGroupName", group)
            .with("MaxRecords", 100)
            .with_opt("NextToken", token);
        let reply = self.call(Service::AutoScaling, api, params).await?;
        replies::page(api, &reply, "InstanceRefreshes", replies::refresh)
    }

    async fn instances(&self, ids: &[String], token: Option<String>) -> Result<Page<InstanceFacts>> {
        if ids.is_empty() {
            return Ok(Page::last(Vec::new()));
        }
        let params = Tree::new()
            .with("Filters", vec![requests::filter("instance-id", ids)])
            .with("MaxResults", 1000)
            .with_opt("NextToken", token);
        let reply = self.call(Service::Ec2, "DescribeInstances", params).await?;
        let reservations = reply.items_of("Reservations").iter();
        let items = reservations.flat_map(|reservation| reservation.items_of("Instances"));
        Ok(Page { items: items.filter_map(replies::facts).collect(), next_token: replies::token(&reply) })
    }

    async fn instance_types(&self, names: &[String], token: Option<String>) -> Result<Page<InstanceType>> {
        let api = "DescribeInstanceTypes";
        if names.is_empty() {
            return Ok(Page::last(Vec::new()));
        }
        let params = Tree::new()
            .with("Filters", vec![requests::filter("instance-type", names)])
            .with("MaxResults", 100)
            .with_opt("NextToken", token);
        let reply = self.call(Service::Ec2, api, params).await?;
        replies::page(api, &reply, "InstanceTypes", replies::instance_type)
    }

    async fn launch_template(&self, name: &str) -> Result<Option<LaunchTemplate>> {
        let api = "DescribeLaunchTemplates";
        let params = Tree::new().with("LaunchTemplateNames", vec![name]);
        let Some(reply) = self.find(Service::Ec2, api, params).await? else { return Ok(None) };
        let first = reply.items_of("LaunchTemplates").first();
        first.map(|tree| replies::template(api, name, tree)).transpose()
    }

    async fn launch_templates(&self, tag_key: &str, token: Option<String>) -> Result<Page<LaunchTemplate>> {
        let api = "DescribeLaunchTemplates";
        let params = Tree::new()
            .with("Filters", vec![requests::filter("tag-key", &[tag_key.to_owned()])])
            .with("MaxResults", 200)
            .with_opt("NextToken", token);
        let reply = self.call(Service::Ec2, api, params).await?;
        replies::page(api, &reply, "LaunchTemplates", |api, tree| replies::template(api, "", tree))
    }

    async fn latest_versions(&self, token: Option<String>) -> Result<Page<(String, LaunchTemplateVersion)>> {
        let params = Tree::new()
            .with("Versions", vec!["$Latest"])
            .with("MaxResults", 200)
            .with_opt("NextToken", token);
        let reply = self.call(Service::Ec2, "DescribeLaunchTemplateVersions", params).await?;
        Ok(replies::listing(&reply, "LaunchTemplateVersions", replies::latest_version))
    }

    async fn launch_template_versions(
        &self,
        id: &str,
        token: Option<String>,
    ) -> Result<Page<LaunchTemplateVersion>> {
        let params =
            Tree::new().with("LaunchTemplateId", id).with("MaxResults", 200).with_opt("NextToken", token);
        let reply = self.call(Service::Ec2, "DescribeLaunchTemplateVersions", params).await?;
        Ok(replies::listing(&reply, "LaunchTemplateVersions", replies::version))
    }

    async fn subnets(&self, selector: &Selector, token: Option<String>) -> Result<Page<Subnet>> {
        let api = "DescribeSubnets";
        let params = Tree::new()
            .with("Filters", requests::filters(api, selector, "subnet-id", None)?)
            .with("MaxResults", 1000)
            .with_opt("NextToken", token);
        let reply = self.call(Service::Ec2, api, params).await?;
        Ok(replies::listing(&reply, "Subnets", replies::subnet))
    }

    async fn security_groups(
        &self,
        selector: &Selector,
        token: Option<String>,
    ) -> Result<Page<SecurityGroup>> {
        let api = "DescribeSecurityGroups";
        let params = Tree::new()
            .with("Filters", requests::filters(api, selector, "group-id", Some("group-name"))?)
            .with("MaxResults", 1000)
            .with_opt("NextToken", token);
        let reply = self.call(Service::Ec2, api, params).await?;
        Ok(replies::listing(&reply, "SecurityGroups", replies::security_group))
    }

    async fn is_associated(&self, security_group: &str, vpc: &str) -> Result<bool> {
        let of = |name: &str, value: &str| requests::filter(name, &[value.to_owned()]);
        let filters = vec![of("group-id", security_group), of("vpc-id", vpc), of("state", "associated")];
        let params = Tree::new().with("Filters", filters);
        let reply = self.call(Service::Ec2, "DescribeSecurityGroupVpcAssociations", params).await?;
        Ok(!reply.items_of("SecurityGroupVpcAssociations").is_empty())
    }

    async fn image(&self, id: &str) -> Result<Option<Image>> {
        let params = Tree::new().with("ImageIds", vec![id]).with("IncludeDeprecated", true);
        let reply = match self.find(Service::Ec2, "DescribeImages", params).await {
            Err(error) if error.code == "InvalidAMIID.Unavailable" => None,
            reply => reply?,
        };
        Ok(reply.and_then(|reply| reply.items_of("Images").iter().find_map(replies::image)))
    }

    async fn snapshot_gib(&self, id: &str) -> Result<Option<i32>> {
        let params = Tree::new().with("SnapshotIds", vec![id]);
        let reply = self.find(Service::Ec2, "DescribeSnapshots", params).await?;
        Ok(reply.and_then(|reply| reply.items_of("Snapshots").iter().find_map(replies::snapshot_gib)))
    }

    async fn parameter(&self, name: &str) -> Result<Option<String>> {
        let params = Tree::new().with("Name", name);
        let reply = self.find(Service::Ssm, "GetParameter", params).await?;
        let value = reply.as_ref().and_then(|reply| reply.at("Parameter.Value")).and_then(Tree::text);
        Ok(value.map(str::to_owned))
    }
}
