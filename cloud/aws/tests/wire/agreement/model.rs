//! Replies that the official service model allows: every member that it has, or any of them missing unless the model
//! requires it.

use capasg_fake_aws::{
    Service, Tree,
    facts::{ServiceFacts, Shape},
};
use proptest::{collection::vec, option::weighted, prelude::*, sample::select};

/// The key of all maps: the only one that either adapter reads.
const KEY: &str = "ApproximateReceiveCount";

/// Texts of members that have no values of their own: a text is also what looks like a number, or is empty.
const TEXTS: [&str; 5] = ["", "a", "a&b <c> \"d\" 'é'", "7", "-1"];

/// The replies of an operation.
pub fn replies(service: Service, operation: &str) -> BoxedStrategy<Tree> {
    let facts = ServiceFacts::of(service);
    match facts.operations.get(operation).and_then(|operation| operation.output.as_deref()) {
        Some(output) => {
            // Nearly whole, and with two in five of the members missing that the model does not require.
            prop_oneof![structure(facts, output, 0.99), structure(facts, output, 0.6)].boxed()
        }
        None => Just(Tree::new()).boxed(),
    }
}

fn structure(facts: &'static ServiceFacts, name: &'static str, present: f64) -> BoxedStrategy<Tree> {
    let required = facts.required(name);
    let members = facts.members(name).map(|member| {
        let value = value(facts, member.shape, member.name, present);
        let is_required = required.iter().any(|required| required == member.name);
        let value = if is_required { value.prop_map(Some).boxed() } else { weighted(present, value).boxed() };
        value.prop_map(move |value| (member.name, value))
    });
    let members: Vec<_> = members.collect();
    let tree = |members: Vec<(&'static str, Option<Tree>)>| {
        members.into_iter().fold(Tree::new(), |tree, (name, value)| tree.with_opt(name, value))
    };
    members.prop_map(tree).boxed()
}

fn value(
    facts: &'static ServiceFacts,
    shape: Shape<'static>,
    member: &'static str,
    present: f64,
) -> BoxedStrategy<Tree> {
    match shape {
        Shape::Structure(name) => structure(facts, name, present),
        Shape::List { item, .. } => {
            vec(value(facts, facts.shape(item), member, present), 0..4).prop_map(Tree::List).boxed()
        }
        Shape::Map(item) => weighted(present, value(facts, facts.shape(item), KEY, present))
            .prop_map(|value| Tree::new().with_opt(KEY, value))
            .boxed(),
        Shape::Scalar(kind, limits) => select(scalars(kind, limits, member)).prop_map(Tree::from).boxed(),
    }
}

fn scalars(kind: &str, limits: &'static str, member: &str) -> Vec<&'static str> {
    match kind {
        "boolean" => vec!["true", "false"],
        "integer" => vec!["0", "1", "-1", "600", "2147483647"],
        "long" => vec!["0", "1", "8192", "9223372036854775807"],
        "float" | "double" => vec!["0.5"],
        "timestamp" => vec!["1970-01-01T00:00:00Z", "2026-05-01T10:00:00Z", "2026-05-01T10:00:00.250Z"],
        "blob" => vec!["YQ=="],
        _ => {
            let listed = limits.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            let listed = listed.into_iter().flat_map(|values| values.split(','));
            listed.chain(read_as(member).iter().copied()).chain(TEXTS).collect()
        }
    }
}

/// Values that adapters read in a way of their own; the service model does not list them.
fn read_as(member: &str) -> &'static [&'static str] {
    match member {
        "ApproximateReceiveCount" => &["2", "many"],
        "Code" => &["launchTemplateVersionDoesNotExist", "launchTemplateIdDoesNotExist", "unexpectedError"],
        "Details" => &[r#"{"Subnet ID":"subnet-1","Availability Zone":"eu-west-1a"}"#, r#"{"Subnet ID":1}"#],
        "DeviceName" | "RootDeviceName" => &["/dev/xvda", "/dev/sdb"],
        "HealthCheckType" => &["EC2", "ELB,EC2", " EBS,"],
        "HealthStatus" => &["Healthy", "Unhealthy", "UNHEALTHY"],
        "InstanceLifecycle" => &["spot", "scheduled", "capacity-block"],
        // The name of a state is among them.
        "Name" => &["pending", "running", "shutting-down", "terminated", "stopping", "stopped"],
        "Platform" => &["windows", "Windows"],
        "ResourceType" => &["instance", "volume"],
        "VPCZoneIdentifier" => &["subnet-1", "subnet-2, subnet-1,"],
        "Version" => &["3", "$Latest", "$Default"],
        _ => &[],
    }
}
