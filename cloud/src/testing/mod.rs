//! A small scripted cloud and a clock on tokio's time, for this crate's tests.

pub(crate) mod events;
mod objects;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
pub(crate) use objects::{group, machine, version};
use tokio::time::Instant;

use crate::{
    AlwaysLeading, Cadence, CallObserver, Clock, Cloud, CloudError, Gateway, Group, Image, InstanceFacts,
    InstanceRefresh, InstanceType, LaunchTemplate, LaunchTemplateVersion, LifecycleHook, Limits, Page,
    Result, RunningInstance, ScalingActivity, SecurityGroup, Selector, Subnet, Write, WriteGuard, WriteReply,
    Written,
};

/// The key of the tag that the launch templates of pools have.
pub(crate) const TEMPLATE_TAG: &str = "owner";

/// The default times, with polls that are a minute apart.
pub(crate) fn once_a_minute() -> Cadence {
    Cadence { idle: Duration::from_mins(1), ..Cadence::default() }
}

/// Follows tokio's clock, paused or not.
#[derive(Debug)]
pub(crate) struct TokioClock {
    started: Instant,
    set_back: Mutex<TimeDelta>,
}

impl TokioClock {
    pub(crate) fn start() -> Arc<Self> {
        Arc::new(Self { started: Instant::now(), set_back: Mutex::new(TimeDelta::zero()) })
    }

    /// Somebody sets the time of day back.
    pub(crate) fn set_back(&self, by: TimeDelta) {
        *self.set_back.lock().unwrap() += by;
    }
}

impl Clock for TokioClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + self.started.elapsed()
            - *self.set_back.lock().unwrap()
    }
}

/// What goes wrong with the next call of an operation.
#[derive(Debug, Clone)]
pub(crate) enum Upset {
    /// It fails without effect.
    Fail(CloudError),
    /// It takes effect, and its reply is lost.
    LoseReply,
    /// It takes effect, and is answered after a while.
    Slow(Duration),
    /// It answers an empty list.
    Empty,
}

/// One call as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) api: &'static str,
    pub(crate) args: Vec<String>,
    pub(crate) at: Duration,
}

#[derive(Default)]
pub(crate) struct World {
    pub(crate) groups: BTreeMap<String, Group>,
    pub(crate) machines: BTreeMap<String, InstanceFacts>,
    pub(crate) hooks: BTreeMap<String, Vec<LifecycleHook>>,
    pub(crate) templates: BTreeMap<String, (LaunchTemplate, Vec<LaunchTemplateVersion>)>,
    pub(crate) refreshes: BTreeMap<String, Vec<InstanceRefresh>>,
    pub(crate) activities: BTreeMap<String, Vec<ScalingActivity>>,
    pub(crate) subnets: Vec<Subnet>,
    pub(crate) images: BTreeMap<String, Image>,
    /// Sizes in GiB.
    pub(crate) snapshots: BTreeMap<String, i32>,
    pub(crate) instance_types: BTreeMap<String, InstanceType>,
    /// The instances of the whole account.
    pub(crate) running: Vec<RunningInstance>,
    /// The value of every quota.
    pub(crate) quota: i64,
    /// What every parameter holds.
    pub(crate) parameter: String,
    /// How many items a page holds; 0 means all of them, and an empty page comes before the first item if set.
    pub(crate) page: usize,
    pub(crate) empty_first_page: bool,
    /// Every page names the same next one.
    pub(crate) endless: bool,
    /// The last page has an empty token instead of none.
    pub(crate) empty_last_token: bool,
    pub(crate) calls: Vec<Call>,
    upsets: BTreeMap<&'static str, VecDeque<Upset>>,
}

/// A cloud in memory.
pub(crate) struct FakeCloud {
    started: Instant,
    world: Mutex<World>,
}

impl FakeCloud {
    pub(crate) fn new() -> Arc<Self> {
        let world = World { parameter: "ami-1".to_owned(), ..World::default() };
        Arc::new(Self { started: Instant::now(), world: Mutex::new(world) })
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Scripts what goes wrong with the next calls of an operation.
    pub(crate) fn upset(&self, api: &'static str, upsets: impl IntoIterator<Item = Upset>) {
        self.world().upsets.entry(api).or_default().extend(upsets);
    }

    pub(crate) fn put_group(&self, group: Group) {
        let mut world = self.world();
        for instance in &group.instances {
            world.machines.entry(instance.id.clone()).or_insert_with(|| machine(&instance.id));
        }
        world.groups.insert(group.name.clone(), group);
    }

    /// The calls of an operation so far.
    pub(crate) fn calls(&self, api: &str) -> Vec<Call> {
        self.world().calls.iter().filter(|call| call.api == api).cloned().collect()
    }

    pub(crate) fn count(&self, api: &str) -> usize {
        self.calls(api).len()
    }

    /// Logs a call, lets `effect` make its reply, and upsets it as scripted.
    async fn call<T>(
        &self,
        api: &'static str,
        args: Vec<String>,
        effect: impl FnOnce(&mut World) -> Result<T>,
        empty: impl FnOnce() -> Option<T>,
    ) -> Result<T> {
        let (upset, reply) = {
            let mut world = self.world();
            world.calls.push(Call { api, args, at: self.started.elapsed() });
            let upset = world.upsets.get_mut(api).and_then(VecDeque::pop_front);
            if let Some(Upset::Fail(error)) = upset {
                return Err(error);
            }
            (upset, effect(&mut world))
        };
        match upset {
            Some(Upset::LoseReply) => Err(CloudError::unanswered(api, "Network", "connection closed")),
            Some(Upset::Empty) => empty().map_or(reply, Ok),
            Some(Upset::Slow(pause)) => {
                tokio::time::sleep(pause).await;
                reply
            }
            Some(Upset::Fail(_)) | None => reply,
        }
    }
}

impl World {
    fn paged<T: Clone>(&self, items: &[T], token: Option<&String>) -> Page<T> {
        if self.empty_first_page && token.is_none() {
            return Page { items: Vec::new(), next_token: Some("0".to_owned()) };
        }
        if self.endless {
            return Page { items: Vec::new(), next_token: Some("again".to_owned()) };
        }
        let from = token.map_or(0, |token| token.parse().unwrap_or(0));
        let to = if self.page == 0 { items.len() } else { items.len().min(from + self.page) };
        let last = self.empty_last_token.then(String::new);
        let next_token = if to < items.len() { Some(to.to_string()) } else { last };
        Page { items: items[from..to].to_vec(), next_token }
    }

    fn apply(&mut self, write: &Write) -> Written {
        match write {
            Write::CreateGroup(create) => {
                let made = Group { capacity: create.capacity, ..group(&create.name, &[]) };
                self.groups.insert(create.name.clone(), made);
            }
            Write::SetDesiredCapacity { group, desired } => {
                if let Some(group) = self.groups.get_mut(group) {
                    group.capacity.desired = *desired;
                }
            }
            Write::DeleteGroup { group, .. } => {
                self.groups.remove(group);
            }
            Write::CreateLaunchTemplate { name, data, description, tags, .. } => {
                let template = LaunchTemplate {
                    id: format!("lt-{name}"),
                    name: name.clone(),
                    latest_version: 1,
                    default_version: 1,
                    tags: tags.clone(),
                };
                let id = template.id.clone();
                let version = version(1, description, &data.image_id);
                let created_at = version.created_at;
                self.templates.insert(name.clone(), (template, vec![version]));
                return Written::Version { id, number: 1, created_at };
            }
            Write::CreateLaunchTemplateVersion { id, data, description, .. } => {
                let known = self.templates.values_mut().find(|(template, _)| template.id == *id);
                let (template, versions) = known.unwrap();
                template.latest_version += 1;
                let version = version(template.latest_version, description, &data.image_id);
                let (number, created_at) = (version.number, version.created_at);
                versions.push(version);
                return Written::Version { id: id.clone(), number, created_at };
            }
            _ => {}
        }
        Written::Done
    }
}

#[async_trait]
impl Cloud for FakeCloud {
    async fn account(&self) -> Result<String> {
        self.call("GetCallerIdentity", vec![], |_| Ok("123456789012".to_owned()), || None).await
    }

    async fn write(&self, write: &Write) -> Result<WriteReply> {
        let args = write.group().map(ToOwned::to_owned).into_iter().collect();
        let effect = |world: &mut World| Ok(WriteReply { written: world.apply(write), request_id: None });
        self.call(write.api(), args, effect, || None).await
    }

    async fn groups(&self, names: &[String], token: Option<String>) -> Result<Page<Group>> {
        assert!(names.len() <= 100, "AWS refuses more than 100 names");
        let effect = |world: &mut World| {
            let found: Vec<Group> = names.iter().filter_map(|name| world.groups.get(name).cloned()).collect();
            Ok(world.paged(&found, token.as_ref()))
        };
        self.call("DescribeAutoScalingGroups", names.to_vec(), effect, || Some(Page::last(vec![]))).await
    }

    async fn lifecycle_hooks(&self, group: &str) -> Result<Vec<LifecycleHook>> {
        let effect = |world: &mut World| Ok(world.hooks.get(group).cloned().unwrap_or_default());
        self.call("DescribeLifecycleHooks", vec![group.to_owned()], effect, || Some(vec![])).await
    }

    async fn scaling_activities(&self, group: &str, token: Option<String>) -> Result<Page<ScalingActivity>> {
        let effect = |world: &mut World| {
            let found = world.activities.get(group).cloned().unwrap_or_default();
            Ok(world.paged(&found, token.as_ref()))
        };
        self.call("DescribeScalingActivities", vec![group.to_owned()], effect, || None).await
    }

    async fn instance_refreshes(&self, group: &str, token: Option<String>) -> Result<Page<InstanceRefresh>> {
        let effect = |world: &mut World| {
            let found = world.refreshes.get(group).cloned().unwrap_or_default();
            Ok(world.paged(&found, token.as_ref()))
        };
        self.call("DescribeInstanceRefreshes", vec![group.to_owned()], effect, || None).await
    }

    async fn instances(&self, ids: &[String], token: Option<String>) -> Result<Page<InstanceFacts>> {
        assert!(ids.len() <= 200, "AWS refuses more than 200 filter values");
        let effect = |world: &mut World| {
            let found: Vec<_> = ids.iter().filter_map(|id| world.machines.get(id).cloned()).collect();
            Ok(world.paged(&found, token.as_ref()))
        };
        self.call("DescribeInstances", ids.to_vec(), effect, || Some(Page::last(vec![]))).await
    }

    async fn instance_types(&self, names: &[String], token: Option<String>) -> Result<Page<InstanceType>> {
        assert!(names.len() <= 200, "AWS refuses more than 200 filter values");
        let effect = |world: &mut World| {
            let found: Vec<_> =
                names.iter().filter_map(|name| world.instance_types.get(name).cloned()).collect();
            Ok(world.paged(&found, token.as_ref()))
        };
        self.call("DescribeInstanceTypes", names.to_vec(), effect, || Some(Page::last(vec![]))).await
    }

    async fn launch_template(&self, name: &str) -> Result<Option<LaunchTemplate>> {
        let effect = |world: &mut World| Ok(world.templates.get(name).map(|(template, _)| template.clone()));
        self.call("DescribeLaunchTemplates", vec![name.to_owned()], effect, || None).await
    }

    async fn launch_templates(&self, tag_key: &str, token: Option<String>) -> Result<Page<LaunchTemplate>> {
        let effect = |world: &mut World| {
            let all = world.templates.values().map(|(template, _)| template);
            let tagged: Vec<_> = all.filter(|one| one.tags.contains_key(tag_key)).cloned().collect();
            Ok(world.paged(&tagged, token.as_ref()))
        };
        self.call("DescribeLaunchTemplates", vec![], effect, || Some(Page::last(vec![]))).await
    }

    async fn latest_versions(&self, token: Option<String>) -> Result<Page<(String, LaunchTemplateVersion)>> {
        let effect = |world: &mut World| {
            let latest = |(template, versions): &(LaunchTemplate, Vec<LaunchTemplateVersion>)| {
                Some((template.id.clone(), versions.last()?.clone()))
            };
            let all: Vec<_> = world.templates.values().filter_map(latest).collect();
            Ok(world.paged(&all, token.as_ref()))
        };
        self.call("DescribeLaunchTemplateVersions", vec![], effect, || Some(Page::last(vec![]))).await
    }

    async fn launch_template_versions(
        &self,
        id: &str,
        token: Option<String>,
    ) -> Result<Page<LaunchTemplateVersion>> {
        let effect = |world: &mut World| {
            let known = world.templates.values().find(|(template, _)| template.id == id);
            let versions = known.map(|(_, versions)| versions.clone()).unwrap_or_default();
            Ok(world.paged(&versions, token.as_ref()))
        };
        self.call("DescribeLaunchTemplateVersions", vec![id.to_owned()], effect, || None).await
    }

    async fn subnets(&self, selector: &Selector, token: Option<String>) -> Result<Page<Subnet>> {
        let effect = |world: &mut World| {
            let meant = |subnet: &&Subnet| match selector {
                Selector::Ids(ids) => ids.contains(&subnet.id),
                Selector::Tags(_) | Selector::Name(_) => true,
            };
            let found: Vec<Subnet> = world.subnets.iter().filter(meant).cloned().collect();
            Ok(world.paged(&found, token.as_ref()))
        };
        self.call("DescribeSubnets", vec![format!("{selector:?}")], effect, || None).await
    }

    async fn security_groups(&self, selector: &Selector, _: Option<String>) -> Result<Page<SecurityGroup>> {
        let args = vec![format!("{selector:?}")];
        self.call("DescribeSecurityGroups", args, |_| Ok(Page::last(vec![])), || None).await
    }

    async fn is_associated(&self, security_group: &str, vpc: &str) -> Result<bool> {
        let args = vec![security_group.to_owned(), vpc.to_owned()];
        self.call("DescribeSecurityGroupVpcAssociations", args, |_| Ok(false), || None).await
    }

    async fn image(&self, id: &str) -> Result<Option<Image>> {
        let effect = |world: &mut World| Ok(world.images.get(id).cloned());
        self.call("DescribeImages", vec![id.to_owned()], effect, || None).await
    }

    async fn snapshot_gib(&self, id: &str) -> Result<Option<i32>> {
        let effect = |world: &mut World| Ok(world.snapshots.get(id).copied());
        self.call("DescribeSnapshots", vec![id.to_owned()], effect, || None).await
    }

    async fn parameter(&self, name: &str) -> Result<Option<String>> {
        let effect = |world: &mut World| Ok(Some(world.parameter.clone()));
        self.call("GetParameter", vec![name.to_owned()], effect, || None).await
    }

    async fn running_instances(&self, token: Option<String>) -> Result<Page<RunningInstance>> {
        let effect = |world: &mut World| Ok(world.paged(&world.running, token.as_ref()));
        self.call("DescribeInstances", vec![], effect, || Some(Page::last(vec![]))).await
    }

    async fn ec2_quota(&self, code: &str) -> Result<i64> {
        self.call("GetServiceQuota", vec![code.to_owned()], |world| Ok(world.quota), || None).await
    }
}

/// Counts calls by operation and outcome.
#[derive(Default)]
pub(crate) struct Counter {
    pub(crate) calls: Mutex<BTreeMap<(&'static str, bool, &'static str), u32>>,
    pub(crate) doubts: Mutex<u32>,
}

impl Counter {
    pub(crate) fn count(&self, api: &'static str, mutating: bool, outcome: &'static str) -> u32 {
        self.calls.lock().unwrap().get(&(api, mutating, outcome)).copied().unwrap_or(0)
    }
}

impl CallObserver for Counter {
    fn called(&self, _: &str, api: &'static str, mutating: bool, outcome: &'static str, _: Duration) {
        *self.calls.lock().unwrap().entry((api, mutating, outcome)).or_default() += 1;
    }

    fn listing_rechecked(&self) {
        *self.doubts.lock().unwrap() += 1;
    }
}

/// Leads until a moment, or does not lead.
pub(crate) struct LeaseUntil(pub(crate) Mutex<Option<DateTime<Utc>>>);

impl WriteGuard for LeaseUntil {
    fn deadline(&self) -> Option<DateTime<Utc>> {
        *self.0.lock().unwrap()
    }
}

pub(crate) fn gateway(cloud: Arc<FakeCloud>, counter: Arc<Counter>, clock: Arc<TokioClock>) -> Gateway {
    Gateway::new(cloud, Arc::new(AlwaysLeading), counter, clock, Limits::default())
}

pub(crate) fn set_desired(group: &str, desired: i32) -> Write {
    Write::SetDesiredCapacity { group: group.to_owned(), desired }
}

/// Lets a span of paused time pass, with all that happens meanwhile.
pub(crate) async fn pass(span: Duration) {
    tokio::time::sleep(span).await;
}
