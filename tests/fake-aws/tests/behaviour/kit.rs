//! Short words for what the tests do over and over.

use capasg_fake_aws::{ApiError, Scope, Service, Simulator, Tree};
use chrono::Duration;

/// A region of its own and the calls into it.
pub struct Kit {
    pub simulator: Simulator,
    pub scope: Scope,
}

/// Base64 of `#cloud-config`.
pub const USER_DATA: &str = "I2Nsb3VkLWNvbmZpZw==";

impl Kit {
    pub fn new() -> Self {
        Self { simulator: Simulator::new(1), scope: Scope::region("eu-west-1") }
    }

    /// With a launch template `nodes`.
    pub fn with_template() -> Self {
        let kit = Self::new();
        kit.template("nodes", data());
        kit
    }

    /// With a settled group `pool` of `size` instances, bounds 0 and 10.
    pub fn with_group(size: usize) -> Self {
        let kit = Self::with_template();
        kit.autoscaling("CreateAutoScalingGroup", group("pool", size));
        kit.settle();
        assert_eq!(kit.states("pool"), vec!["InService"; size]);
        kit
    }

    pub fn try_autoscaling(&self, action: &str, params: Tree) -> Result<Tree, ApiError> {
        self.simulator.call(&self.scope, Service::AutoScaling, action, params)
    }

    pub fn autoscaling(&self, action: &str, params: Tree) -> Tree {
        self.try_autoscaling(action, params).unwrap_or_else(|error| panic!("{action}: {error}"))
    }

    pub fn try_ec2(&self, action: &str, params: Tree) -> Result<Tree, ApiError> {
        self.simulator.call(&self.scope, Service::Ec2, action, params)
    }

    pub fn ec2(&self, action: &str, params: Tree) -> Tree {
        self.try_ec2(action, params).unwrap_or_else(|error| panic!("{action}: {error}"))
    }

    /// The error's code and words.
    pub fn refused(&self, action: &str, params: Tree) -> (String, String) {
        let error = self.try_autoscaling(action, params).expect_err(action);
        assert_eq!(error.status, 400, "{error}");
        (error.code, error.message)
    }

    pub fn template(&self, name: &str, data: Tree) -> String {
        let params = Tree::new().with("LaunchTemplateName", name).with("LaunchTemplateData", data);
        let reply = self.ec2("CreateLaunchTemplate", params);
        reply.at("LaunchTemplate.LaunchTemplateId").and_then(Tree::text).unwrap().to_owned()
    }

    pub fn seconds(&self, seconds: i64) {
        self.simulator.advance(Duration::seconds(seconds));
    }

    /// Lets all pass that takes its usual time.
    pub fn settle(&self) {
        self.seconds(120);
    }

    pub fn describe(&self, name: &str) -> Option<Tree> {
        let params = Tree::new().with("AutoScalingGroupNames", vec![name]);
        let reply = self.autoscaling("DescribeAutoScalingGroups", params);
        reply.items_of("AutoScalingGroups").first().cloned()
    }

    pub fn desired(&self, name: &str) -> i64 {
        self.describe(name).unwrap().number_of("DesiredCapacity").unwrap()
    }

    pub fn instances(&self, name: &str) -> Vec<Tree> {
        self.describe(name).map(|group| group.items_of("Instances").to_vec()).unwrap_or_default()
    }

    pub fn ids(&self, name: &str) -> Vec<String> {
        texts(&self.instances(name), "InstanceId")
    }

    pub fn states(&self, name: &str) -> Vec<String> {
        texts(&self.instances(name), "LifecycleState")
    }

    /// The lifecycle state of an instance in `pool`; `None` if it is not listed.
    pub fn state(&self, id: &str) -> Option<String> {
        let instances = self.instances("pool");
        let own = instances.iter().find(|instance| instance.text_of("InstanceId") == Some(id));
        own.and_then(|instance| instance.text_of("LifecycleState")).map(str::to_owned)
    }

    /// EC2's state of an instance; `None` if EC2 has forgotten it.
    pub fn machine(&self, id: &str) -> Option<String> {
        self.machines()
            .into_iter()
            .find(|one| one.text_of("InstanceId") == Some(id))
            .and_then(|one| one.at("State.Name").and_then(Tree::text).map(str::to_owned))
    }

    pub fn machines(&self) -> Vec<Tree> {
        let reply = self.ec2("DescribeInstances", Tree::new());
        reply.items_of("Reservations").iter().flat_map(|one| one.items_of("Instances").to_vec()).collect()
    }

    pub fn activities(&self, name: &str) -> Vec<Tree> {
        let params = Tree::new().with("AutoScalingGroupName", name);
        self.autoscaling("DescribeScalingActivities", params).items_of("Activities").to_vec()
    }

    pub fn end(&self, id: &str, decrement: bool) -> Result<Tree, ApiError> {
        self.try_autoscaling(
            "TerminateInstanceInAutoScalingGroup",
            Tree::new().with("InstanceId", id).with("ShouldDecrementDesiredCapacity", decrement),
        )
    }

    pub fn set_desired(&self, desired: i64) {
        self.autoscaling("SetDesiredCapacity", named("pool").with("DesiredCapacity", desired));
    }

    pub fn protect(&self, ids: &[String], on: bool) {
        let params = named("pool").with("InstanceIds", ids.to_vec()).with("ProtectedFromScaleIn", on);
        self.autoscaling("SetInstanceProtection", params);
    }

    /// A settled group of that size from version 1 of `nodes`, which has a version 2 by now.
    pub fn with_two_versions(size: usize) -> Self {
        let kit = Self::with_group(size);
        let params = Tree::new().with("LaunchTemplateName", "nodes").with("LaunchTemplateData", data());
        kit.ec2("CreateLaunchTemplateVersion", params);
        kit
    }

    pub fn refreshes(&self) -> Vec<Tree> {
        self.autoscaling("DescribeInstanceRefreshes", named("pool")).items_of("InstanceRefreshes").to_vec()
    }

    /// The status of the newest refresh.
    pub fn refresh_status(&self) -> String {
        self.refreshes()[0].text_of("Status").unwrap().to_owned()
    }

    /// The template versions of all instances of `pool`.
    pub fn versions(&self) -> Vec<i64> {
        let versions = self.instances("pool").into_iter();
        versions.filter_map(|own| own.get("LaunchTemplate").and_then(|t| t.number_of("Version"))).collect()
    }

    /// The version that the group names.
    pub fn group_version(&self) -> String {
        let group = self.describe("pool").unwrap();
        group.at("LaunchTemplate.Version").and_then(Tree::text).unwrap().to_owned()
    }

    pub fn change_settings(&self, change: impl FnOnce(&mut capasg_fake_aws::Settings)) {
        let mut settings = self.simulator.settings(Some(&self.scope));
        change(&mut settings);
        self.simulator.set_settings(Some(&self.scope), &settings);
    }
}

pub fn texts(trees: &[Tree], name: &str) -> Vec<String> {
    trees.iter().filter_map(|tree| tree.text_of(name)).map(str::to_owned).collect()
}

/// Launch template data that works.
pub fn data() -> Tree {
    Tree::new()
        .with("ImageId", "ami-0a1b2c3d")
        .with("InstanceType", "m7i.large")
        .with("KeyName", "ops")
        .with("IamInstanceProfile", Tree::new().with("Name", "nodes"))
        .with("SecurityGroupIds", vec!["sg-0a1b2c3d"])
        .with("UserData", USER_DATA)
}

/// Parameters that name a group.
pub fn named(group: &str) -> Tree {
    Tree::new().with("AutoScalingGroupName", group)
}

/// Version 1 of the template `nodes`.
pub fn nodes() -> Tree {
    Tree::new().with("LaunchTemplateName", "nodes").with("Version", "1")
}

/// Parameters of a group from template `nodes` over all zones, bounds 0 and 10.
pub fn group(name: &str, size: usize) -> Tree {
    named(name)
        .with("MinSize", 0)
        .with("MaxSize", 10)
        .with("DesiredCapacity", size)
        .with("LaunchTemplate", nodes())
        .with("VPCZoneIdentifier", "subnet-0a1b2c3d,subnet-0b1c2d3e,subnet-0c1d2e3f")
}
