//! Request limits in the shapes that the services have.

use capasg_fake_aws::{Throttle, Tree};

use crate::kit::{Kit, named};

#[test]
fn all_auto_scaling_calls_share_one_bucket() {
    let kit = Kit::with_group(0);
    kit.change_settings(|settings| {
        settings.autoscaling_throttle = Some(Throttle { burst: 2, per_second: 1 });
    });
    kit.set_desired(1);
    kit.describe("pool");
    let (code, words) = kit.refused("SetDesiredCapacity", named("pool").with("DesiredCapacity", 2));
    assert_eq!((code.as_str(), words.as_str()), ("Throttling", "Rate exceeded"));
    kit.ec2("DescribeInstances", Tree::new());
    kit.seconds(1);
    assert_eq!(kit.desired("pool"), 1, "a refused call changes nothing");
    kit.refused("DescribeTags", Tree::new());
}

#[test]
fn each_ec2_operation_has_a_bucket_of_its_own() {
    let kit = Kit::with_template();
    kit.change_settings(|settings| settings.ec2_throttle = Some(Throttle { burst: 1, per_second: 2 }));
    kit.ec2("DescribeInstances", Tree::new());
    kit.ec2("DescribeSubnets", Tree::new());
    let error = kit.try_ec2("DescribeInstances", Tree::new()).unwrap_err();
    assert_eq!((error.status, error.code.as_str()), (503, "RequestLimitExceeded"));
    kit.simulator.advance(chrono::Duration::milliseconds(500));
    kit.ec2("DescribeInstances", Tree::new());
}
