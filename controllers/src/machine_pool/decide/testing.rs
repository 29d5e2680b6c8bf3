//! The input of tests of decide: a settled group, its instances and their Machines, built by name.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use capasg_api::{
    ASGMachinePool, ASGMachinePoolSpec,
    capi::{MachineDeletion, NodeReport, NodeState, PauseState},
    pool::{ResolvedDisruption, ResolvedInstanceRefresh, ResolvedRollout},
};
use capasg_cloud::{
    Capacity, Group, HealthStatus, Instance, InstanceFacts, InstanceRefresh, InstanceState,
    InstancesDistribution, LaunchTemplateData, LaunchTemplateVersion, LifecycleHook, LifecycleState,
    MetadataOptions, MixedInstances, PurchaseOption, RefreshStatus, RefreshesView, TemplateRef, UserData,
    Write,
};
use chrono::{DateTime, TimeDelta, Utc};

use crate::access::Access;
use crate::kubernetes::KubeWrite;
use crate::machine_pool::model::memory::record::{Answer, Entry};
use crate::machine_pool::model::other_tags::OtherTags;
use crate::machine_pool::model::stamp::Stamp;
use crate::machine_pool::model::{
    AsgMachineRef, Desired, DesiredBootstrap, DesiredLaunch, DesiredSettings, GroupView, Input, Known,
    MachineRef, Observed, ObservedTemplate, Plan, PoolInstance, PoolMemory, PoolObjects, ReplicaOwner,
    ScaleInOrder, Step,
};

pub const ARN: &str = "arn:aws:autoscaling:eu-west-1:123456789012:autoScalingGroup:u:autoScalingGroupName/g";

/// The time of all facts.
pub fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

/// The tags of a resource that no pool owns.
pub fn untagged() -> OtherTags {
    OtherTags { missing: capasg_api::names::tags::IDENTITY.to_vec(), different: Vec::new() }
}

/// The call that sets desired capacity.
pub fn set_desired(desired: i32) -> Write {
    Write::SetDesiredCapacity { group: "g".to_owned(), desired }
}

/// One pool, everything settled and up to date.
#[derive(Clone)]
pub struct Stage {
    pub objects: PoolObjects,
    pub desired: Desired,
    pub observed: Observed,
    pub memory: PoolMemory,
    pub clock: DateTime<Utc>,
}

pub fn stamp(text: &str) -> Stamp {
    let of = |part: &str| crate::machine_pool::model::stamp::hash(&(text, part));
    Stamp {
        content: of("content"),
        rollout: of("rollout"),
        image_source: of("image"),
        bootstrap_spec: of("spec"),
        bootstrap_data: of("data"),
        spec_seen: None,
    }
}

pub fn data() -> LaunchTemplateData {
    LaunchTemplateData {
        image_id: "ami-1".into(),
        instance_type: "m7i.large".into(),
        iam_instance_profile: None,
        key_name: None,
        security_group_ids: Vec::new(),
        block_devices: Vec::new(),
        metadata_options: MetadataOptions {
            http_tokens: "required".into(),
            http_put_response_hop_limit: 1,
            http_endpoint: "enabled".into(),
            http_protocol_ipv6: "disabled".into(),
            instance_metadata_tags: "disabled".into(),
        },
        user_data: UserData::new(b"data".to_vec()),
        tags: BTreeMap::new(),
        spot: false,
    }
}

/// A launch-template version with this stamp.
pub fn version(number: i64, stamp: &Stamp) -> LaunchTemplateVersion {
    LaunchTemplateVersion {
        number,
        description: Some(stamp.to_string()),
        image_id: Some("ami-1".into()),
        content: Some(Arc::new(data().without_user_data())),
        created_at: now(),
    }
}

/// A pool without a MachinePool and a Cluster.
fn objects() -> PoolObjects {
    let mut pool = ASGMachinePool::new("p", ASGMachinePoolSpec::default());
    pool.metadata.namespace = Some("ns".into());
    PoolObjects {
        key: crate::ObjectKey::new("ns", "p"),
        pool: Arc::new(pool),
        machine_pool: None,
        cluster_name: None,
        cluster: None,
        pause: PauseState::default(),
        access: Access::of_process(),
    }
}

pub fn desired(replicas: i32) -> Desired {
    Desired {
        pool: crate::ObjectKey::new("ns", "p"),
        group: "g".into(),
        template: "t".into(),
        owner_id: "me".into(),
        replicas,
        settings: DesiredSettings {
            mixed: None,
            subnets: BTreeSet::from(["subnet-1".into()]),
            health_check_types: BTreeSet::from(["EC2".into()]),
            health_check_grace_period: 300,
            default_cooldown: 300,
            default_instance_warmup: None,
            protect_new_instances: true,
            capacity_rebalance: false,
            maintenance_policy: None,
            retains_abandoned: false,
        },
        instance_types: vec!["m7i.large".into()],
        tags: crate::names::group_tags(&BTreeMap::new(), "me", "ns", "c", "p"),
        suspended_processes: BTreeSet::from(["AZRebalance".into()]),
        hook: Some(hook()),
        launch: DesiredLaunch::Known { data: Box::new(data()), stamp: stamp("1"), has_user_data: true },
        rollout: ResolvedRollout::default(),
        stopped: None,
        refresh: ResolvedInstanceRefresh::default(),
        rotates: true,
        retry: None,
        disruption: ResolvedDisruption::default(),
        min_ready: TimeDelta::zero(),
        remediate: true,
        rebalance: false,
        balances_zones: false,
        timeouts: Some(MachineDeletion::default()),
        drain_limit: TimeDelta::seconds(3600),
        scale_in_order: ScaleInOrder::Oldest,
        owner: ReplicaOwner::MachinePool,
        machine_pool: None,
        previews: false,
        adopts: false,
        adoption_denied: None,
        ceiling: None,
        shown: Vec::new(),
        bootstrap: Some(DesiredBootstrap {
            user_data: data().user_data,
            is_read: true,
            content: crate::machine_pool::model::stamp::hash(&"data"),
            data: stamp("1").bootstrap_data,
        }),
        orphan_on_deletion: false,
        drain_on_deletion: true,
        provider_id: Some(ARN.into()),
    }
}

/// A mixed instances policy of On-Demand Instances, whose overrides have these members besides their types.
pub fn mixed(other_members: &[&str]) -> MixedInstances {
    MixedInstances {
        instance_types: vec!["m7i.large".into(), "m6i.large".into()],
        other_members: other_members.iter().map(|name| (*name).to_owned()).collect(),
        distribution: InstancesDistribution {
            on_demand_base_capacity: 0,
            on_demand_percentage_above_base_capacity: 100,
            on_demand_allocation_strategy: "prioritized".into(),
            spot_allocation_strategy: "price-capacity-optimized".into(),
            spot_max_price: None,
        },
    }
}

pub fn hook() -> LifecycleHook {
    LifecycleHook {
        name: "asg-drain".into(),
        transition: "autoscaling:EC2_INSTANCE_TERMINATING".into(),
        heartbeat_timeout: 3600,
        default_result: "CONTINUE".into(),
    }
}

fn listed_instance(id: &str, zone: &str) -> Instance {
    Instance {
        id: id.into(),
        instance_type: Some("m7i.large".into()),
        zone: zone.into(),
        lifecycle: LifecycleState::InService,
        health: HealthStatus::Healthy,
        template: Some(("lt-1".into(), 1)),
        protected: true,
    }
}

/// A joined, healthy instance in service.
pub fn pool_instance(id: &str, zone: &str, age: i64) -> PoolInstance {
    PoolInstance {
        notice: None,
        notice_is_reported: false,
        notice_is_unverified: false,
        listed: Some(listed_instance(id, zone)),
        ec2: None,
        asg_machine: Some(AsgMachineRef {
            instance_id: id.into(),
            name: format!("p-{id}"),
            uid: format!("asg-{id}"),
            provider_id: format!("aws:///{zone}/{id}"),
            deleting_since: None,
            has_finalizer: true,
            has_owner: true,
            pool_name: None,
            paused: false,
            replace_requested: false,
            do_not_disrupt: false,
            termination_requested_at: None,
            terminated_by_refresh: false,
            launch_record: None,
            created_at: None,
            launched_at: None,
        }),
        unreconciled_since: None,
        machine: Some(MachineRef {
            name: format!("p-{id}"),
            uid: format!("m-{id}"),
            resource_version: "1".into(),
            owners: Vec::new(),
            deleting_since: None,
            deletion_progress: None,
            has_node: true,
            ready: true,
            ready_since: None,
            node: NodeReport { state: NodeState::Ready, since: None },
            paused: false,
            needs_remediation: false,
            timeouts: MachineDeletion::default(),
            delete_annotation: None,
            drain_excluded: false,
            created_at: Some(now() - TimeDelta::minutes(age)),
        }),
    }
}

impl Stage {
    /// Three outdated instances and one new one, the surge.
    pub fn surged() -> Self {
        let mut stage = Self::new(3);
        // Not in the zone of i-1, which is replaced first.
        stage.new_image().add("i-4", 2).listed.as_mut().unwrap().zone = "c".into();
        stage.group().capacity = Capacity { min: 0, max: 4, desired: 4 };
        stage
    }

    /// `replicas` instances i-1, i-2, ..., spread over three zones, the first the oldest.
    pub fn new(replicas: i32) -> Self {
        let instances = (1..=replicas)
            .map(|n| {
                let zone = ["a", "b", "c"][usize::try_from(n - 1).unwrap() % 3];
                let id = format!("i-{n}");
                (id.clone(), pool_instance(&id, zone, 100 - i64::from(n)))
            })
            .collect();
        let desired = desired(replicas);
        let template = TemplateRef { id: "lt-1".into(), version: Some(1) };
        let mut group = Group {
            name: "g".into(),
            arn: ARN.into(),
            capacity: Capacity { min: 0, max: replicas, desired: replicas },
            settings: desired.settings.with_template(template),
            zones: BTreeSet::new(),
            status: None,
            suspended_processes: BTreeMap::from([("AZRebalance".into(), "by user".into())]),
            tags: desired.tags.clone(),
            instances: Vec::new(),
        };
        group.instances = Vec::new();
        let observed = Observed {
            group: GroupView::Present { group: Arc::new(group), as_of: now(), settled: true },
            template: Known::Present(ObservedTemplate {
                has_all_versions: true,
                id: "lt-1".into(),
                tags: crate::names::template_tags(&desired.tags),
                default_version: 1,
                versions: BTreeMap::from([(1, version(1, &stamp("1")))]),
                as_of: now(),
            }),
            template_was_read: true,
            account: None,
            hook: Known::Present(hook()),
            hook_known_for: None,
            instances,
            live_machines: true,
            fresh_group: true,
            group_was_read: true,
            fresh_hook: true,
            refreshes: Some(RefreshesView { refreshes: Arc::default(), as_of: now() }),
            refreshes_were_read: false,
            unmatched_machines: Vec::new(),
        };
        let mut stage =
            Self { objects: objects(), desired, observed, memory: PoolMemory::default(), clock: now() };
        stage.desired_for(3600);
        stage
    }

    /// Memory records the group as it is.
    pub fn observe(&mut self, now: DateTime<Utc>) {
        let Self { desired, observed, memory, .. } = self;
        memory.observe_facts(desired, observed, now);
    }

    /// AWS made a change.
    pub fn made(&mut self, write: &Write, now: DateTime<Utc>) {
        self.memory.record(Entry::Answered { write, answer: Answer::Made { adopts: false } }, now);
    }

    /// The answer to a call was lost.
    pub fn lost(&mut self, write: &Write, now: DateTime<Utc>) {
        let error = capasg_cloud::CloudError::unanswered("Api", "Timeout", "no answer");
        self.memory.record(Entry::Answered { write, answer: Answer::Failed(&error) }, now);
    }

    /// The desired state has been the same for this many seconds.
    pub fn desired_for(&mut self, seconds: i64) -> &mut Self {
        let identity = crate::machine_pool::model::revision::identity(&self.desired, &self.observed);
        *self.memory.rollout.desired_mut() =
            identity.map(|identity| (identity, self.clock - TimeDelta::seconds(seconds)));
        self
    }

    /// Another image is desired, its version exists, and the group launches it: every instance is outdated.
    pub fn new_image(&mut self) -> &mut Self {
        let desired = stamp("2");
        if let DesiredLaunch::Known { data, stamp, .. } = &mut self.desired.launch {
            data.image_id = "ami-2".into();
            *stamp = desired.clone();
        }
        if let Known::Present(ObservedTemplate { versions, .. }) = &mut self.observed.template {
            versions.insert(
                2,
                LaunchTemplateVersion {
                    image_id: Some("ami-2".into()),
                    content: Some(Arc::new(LaunchTemplateData {
                        image_id: "ami-2".into(),
                        ..data().without_user_data()
                    })),
                    ..version(2, &desired)
                },
            );
        }
        self.group().settings.launch.template.version = Some(2);
        self.desired_for(3600)
    }

    /// One more instance, launched from version `template`.
    pub fn add(&mut self, id: &str, template: i64) -> &mut PoolInstance {
        let mut new = pool_instance(id, "a", 0);
        if let Some(instance) = &mut new.listed {
            instance.template = Some(("lt-1".into(), template));
        }
        self.observed.instances.entry(id.to_owned()).or_insert(new)
    }

    pub fn group(&mut self) -> &mut Group {
        match &mut self.observed.group {
            GroupView::Present { group, .. } => Arc::get_mut(group).unwrap(),
            _ => panic!("there is no group"),
        }
    }

    pub fn unsettled(&mut self) -> &mut Self {
        if let GroupView::Present { settled, .. } = &mut self.observed.group {
            *settled = false;
        }
        self
    }

    pub fn instance(&mut self, id: &str) -> &mut PoolInstance {
        self.observed.instances.get_mut(id).unwrap()
    }

    /// Core drained the instance: its Machine and its ASGMachine are being deleted.
    pub fn drained(&mut self, id: &str) -> &mut Self {
        let since = self.draining(id).instance(id).machine.as_ref().unwrap().deleting_since;
        self.instance(id).asg_machine.as_mut().unwrap().deleting_since = since;
        self
    }

    pub fn draining(&mut self, id: &str) -> &mut Self {
        self.instance(id).machine.as_mut().unwrap().deleting_since = Some(now() - TimeDelta::seconds(30));
        self
    }

    pub fn lifecycle(&mut self, id: &str, state: LifecycleState) -> &mut Self {
        self.instance(id).listed.as_mut().unwrap().lifecycle = state;
        self
    }

    pub fn input(&self) -> Input<'_> {
        Input {
            objects: &self.objects,
            desired: &self.desired,
            observed: &self.observed,
            memory: &self.memory,
            now: self.clock,
        }
    }

    pub fn plan(&self) -> Plan {
        crate::machine_pool::decide::pool::plan(&self.input())
    }
}

/// The writes to AWS of a plan.
pub fn cloud(plan: &Plan) -> Vec<&Write> {
    plan.writes().collect()
}

/// The writes to Kubernetes of a plan, as `verb name`.
pub fn kubernetes(plan: &Plan) -> Vec<String> {
    plan.steps()
        .filter_map(|step| match step {
            Step::Cloud(_) => None,
            Step::Kubernetes(write) => Some(match write {
                KubeWrite::AnnotateDeleteMachine { machine, annotated: true, .. } => {
                    format!("annotate {}", machine.name)
                }
                KubeWrite::AnnotateDeleteMachine { machine, .. } => format!("unannotate {}", machine.name),
                KubeWrite::PatchMachineTimeouts { machine, .. } => format!("timeouts {}", machine.name),
                KubeWrite::DeleteMachine { machine, .. } => format!("delete {}", machine.name),
                KubeWrite::DeleteAsgMachine { machine, .. } => format!("delete ASGMachine {}", machine.name),
                KubeWrite::AnnotateExcludeNodeDraining { machine, .. } => format!("exclude {}", machine.name),
                KubeWrite::AnnotateTerminationRequested { machine, .. } => {
                    format!("terminating {}", machine.name)
                }
                KubeWrite::RemoveAsgMachineFinalizer { machine, .. } => format!("release {}", machine.name),
                KubeWrite::AnnotateDesiredState { machine, .. } => format!("record {}", machine.name),
                KubeWrite::RestoreAsgMachine { machine, .. } => format!("restore {}", machine.name),
                other => other.what(),
            }),
        })
        .collect()
}

/// The terminations of a plan: instance IDs and whether desired capacity is decremented.
pub fn terminations(plan: &Plan) -> Vec<(Vec<&str>, bool)> {
    cloud(plan)
        .into_iter()
        .filter_map(|write| match write {
            Write::TerminateInstances { instances, decrement, .. } => {
                Some((instances.iter().map(String::as_str).collect(), *decrement))
            }
            _ => None,
        })
        .collect()
}

/// An instance as EC2 describes it.
pub fn facts(id: &str, runs: bool) -> InstanceFacts {
    InstanceFacts {
        id: id.into(),
        state: if runs { InstanceState::Running } else { InstanceState::Terminated },
        private_ip: None,
        ipv6: BTreeSet::new(),
        private_dns: None,
        public_ip: None,
        public_dns: None,
        purchase: PurchaseOption::OnDemand,
        launched_at: None,
        tags: BTreeMap::new(),
    }
}

/// An instance refresh with this status, without any other field.
pub fn refresh(status: &str) -> InstanceRefresh {
    InstanceRefresh {
        id: "r".to_owned(),
        status: RefreshStatus::parse(status),
        reason: None,
        started_at: None,
        ended_at: None,
        percentage: None,
        to_update: None,
        min_healthy_percentage: None,
        desired: None,
        rollback_reason: None,
    }
}
