//! Nothing that the simulator does not know is let through.

use capasg_fake_aws::{Service, Tree};

use crate::kit::{Kit, data, group, named};

#[test]
fn an_unknown_action_is_invalid() {
    let kit = Kit::new();
    for service in Service::ALL {
        let error = kit.simulator.call(&kit.scope, service, "DoWhatIMean", Tree::new()).unwrap_err();
        assert_eq!((error.status, error.code.as_str()), (400, "InvalidAction"));
    }
}

#[test]
fn a_parameter_that_aws_does_not_have_is_rejected() {
    let kit = Kit::with_group(0);
    assert_eq!(
        kit.refused("SetDesiredCapacity", named("pool").with("DesiredCapacity", 1).with("Desired", 1)).0,
        "UnknownParameter"
    );
    let params =
        Tree::new().with("LaunchTemplateName", "x-y-z").with("LaunchTemplateData", data().with("Image", "x"));
    assert_eq!(kit.try_ec2("CreateLaunchTemplate", params).unwrap_err().code, "UnknownParameter");
}

#[test]
fn a_parameter_that_the_fake_does_not_implement_is_rejected() {
    let kit = Kit::with_template();
    let (code, words) =
        kit.refused("CreateAutoScalingGroup", group("pool", 0).with("LoadBalancerNames", vec!["x"]));
    assert_eq!(code, "SimulatorUnsupported");
    assert!(words.contains("LoadBalancerNames"), "{words}");
    let own = Tree::new().with("InstanceType", "m7i.large").with("ImageId", "ami-0a1b2c3d");
    let specification = Tree::new().with("LaunchTemplateName", "nodes");
    let template =
        Tree::new().with("LaunchTemplateSpecification", specification).with("Overrides", vec![own]);
    let policy = Tree::new().with("LaunchTemplate", template);
    let params = named("pool").with("MinSize", 0).with("MaxSize", 1).with("MixedInstancesPolicy", policy);
    let (code, words) =
        kit.refused("CreateAutoScalingGroup", params.with("VPCZoneIdentifier", "subnet-0a1b2c3d"));
    assert_eq!(code, "SimulatorUnsupported");
    assert!(words.contains("Overrides.ImageId"), "{words}");
}

#[test]
fn wrong_types_and_values_are_rejected() {
    let kit = Kit::with_group(0);
    let wrong = named("pool").with("DesiredCapacity", "three");
    assert_eq!(kit.refused("SetDesiredCapacity", wrong).0, "ValidationError");
    let wrong = named("pool").with("DeletionProtection", "maybe");
    let (_, words) = kit.refused("UpdateAutoScalingGroup", wrong);
    assert!(
        words.contains(
            "Member must satisfy enum value set: [none, prevent-force-deletion, prevent-all-deletion]"
        ),
        "{words}"
    );
    let wrong = named("pool").with("Tags", "x");
    assert_eq!(kit.refused("SetDesiredCapacity", wrong).0, "ValidationError");
}

#[test]
fn a_missing_parameter_is_named() {
    let kit = Kit::with_group(0);
    let (code, words) = kit.refused("SetDesiredCapacity", named("pool"));
    assert_eq!(code, "ValidationError");
    assert_eq!(
        words,
        "1 validation error detected: Value null at 'desiredCapacity' failed to satisfy constraint: Member must not be null"
    );
    assert_eq!(kit.try_ec2("CreateLaunchTemplate", Tree::new()).unwrap_err().code, "MissingParameter");
}
