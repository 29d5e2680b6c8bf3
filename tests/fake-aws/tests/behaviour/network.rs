//! The default world, its describes, parameters, and bulk describes of instances.

use capasg_fake_aws::{Service, Tree, ec2::Image};

use crate::kit::{Kit, texts};

fn filter(name: &str, values: Vec<&str>) -> Tree {
    Tree::new().with("Filters", vec![Tree::new().with("Name", name).with("Values", values)])
}

#[test]
fn every_region_starts_with_a_subnet_in_each_of_three_zones() {
    let kit = Kit::new();
    let found = kit.ec2("DescribeSubnets", filter("tag:kubernetes.io/role/internal-elb", vec!["1"]));
    assert_eq!(
        texts(found.items_of("Subnets"), "AvailabilityZone"),
        ["eu-west-1a", "eu-west-1b", "eu-west-1c"]
    );
    assert_eq!(
        texts(found.items_of("Subnets"), "SubnetId"),
        ["subnet-0a1b2c3d", "subnet-0b1c2d3e", "subnet-0c1d2e3f"]
    );
    let zone = kit.ec2("DescribeSubnets", filter("availability-zone", vec!["eu-west-1b"]));
    assert_eq!(zone.items_of("Subnets").len(), 1);
    assert_eq!(kit.ec2("DescribeVpcs", Tree::new()).items_of("Vpcs").len(), 1);
}

#[test]
fn an_unknown_id_fails_the_complete_describe() {
    let kit = Kit::new();
    let cases = [
        ("DescribeSubnets", "SubnetIds", "subnet-0fffffff", "InvalidSubnetID.NotFound"),
        ("DescribeSecurityGroups", "GroupIds", "sg-0fffffff", "InvalidGroup.NotFound"),
        ("DescribeImages", "ImageIds", "ami-0fffffff", "InvalidAMIID.NotFound"),
        ("DescribeInstanceTypes", "InstanceTypes", "m9.huge", "InvalidInstanceType"),
        ("DescribeInstances", "InstanceIds", "i-00000000000000000", "InvalidInstanceID.NotFound"),
        ("DescribeInstances", "InstanceIds", "x", "InvalidInstanceID.Malformed"),
        ("DescribeVpcs", "VpcIds", "vpc-0fffffff", "InvalidVpcID.NotFound"),
    ];
    for (action, name, id, code) in cases {
        assert_eq!(kit.try_ec2(action, Tree::new().with(name, vec![id])).unwrap_err().code, code, "{action}");
    }
    assert_eq!(
        kit.try_ec2("DescribeSubnets", filter("colour", vec!["blue"])).unwrap_err().code,
        "InvalidParameterValue"
    );
}

#[test]
fn security_groups_images_and_types_are_described() {
    let kit = Kit::new();
    let named = kit.ec2("DescribeSecurityGroups", filter("group-name", vec!["default"]));
    assert_eq!(texts(named.items_of("SecurityGroups"), "GroupId"), ["sg-0a1b2c3d"]);
    kit.simulator.put_image(&kit.scope, Image::new("ami-0e0e0e0e", "mine", "arm64"));
    let image = kit.ec2("DescribeImages", Tree::new().with("ImageIds", vec!["ami-0e0e0e0e"]));
    assert_eq!(texts(image.items_of("Images"), "Architecture"), ["arm64"]);
    let types = kit.ec2("DescribeInstanceTypes", Tree::new().with("InstanceTypes", vec!["m7i.xlarge"]));
    let kind = &types.items_of("InstanceTypes")[0];
    assert_eq!(kind.at("VCpuInfo.DefaultVCpus").unwrap().text(), Some("4"));
    assert_eq!(kind.at("MemoryInfo.SizeInMiB").unwrap().text(), Some("16384"));
    assert_eq!(kind.at("NetworkInfo.EfaSupported").unwrap().text(), Some("false"));
    assert!(kind.get("GpuInfo").is_none() && kind.get("NeuronInfo").is_none());
}

#[test]
fn every_zone_with_a_subnet_offers_every_type() {
    let kit = Kit::new();
    let zones = |kind: &str| {
        let zones = filter("instance-type", vec![kind]).with("LocationType", "availability-zone");
        let found = kit.ec2("DescribeInstanceTypeOfferings", zones);
        texts(found.items_of("InstanceTypeOfferings"), "Location")
    };
    assert_eq!(zones("m7i.large"), ["eu-west-1a", "eu-west-1b", "eu-west-1c"]);
    assert!(zones("m9.huge").is_empty());
    let region = kit.ec2("DescribeInstanceTypeOfferings", filter("instance-type", vec!["m7i.large"]));
    assert_eq!(texts(region.items_of("InstanceTypeOfferings"), "Location"), ["eu-west-1"]);
}

#[test]
fn accelerated_instance_types_list_their_devices() {
    let kit = Kit::new();
    let types = |names: Vec<&str>| kit.ec2("DescribeInstanceTypes", filter("instance-type", names));
    let found = types(vec!["p5.48xlarge", "inf2.24xlarge", "m9.huge"]);
    assert_eq!(texts(found.items_of("InstanceTypes"), "InstanceType"), ["inf2.24xlarge", "p5.48xlarge"]);
    let [neuron, gpus] = found.items_of("InstanceTypes") else { panic!("two types") };
    assert_eq!(neuron.at("NeuronInfo.NeuronDevices").unwrap().items()[0].text_of("Count"), Some("6"));
    assert!(neuron.get("GpuInfo").is_none());
    let device = &gpus.at("GpuInfo.Gpus").unwrap().items()[0];
    assert_eq!((device.text_of("Manufacturer"), device.text_of("Count")), (Some("NVIDIA"), Some("8")));
    assert_eq!(gpus.at("GpuInfo.TotalGpuMemoryInMiB").unwrap().text(), Some("655360"));
    assert_eq!(gpus.at("NetworkInfo.EfaInfo.MaximumEfaInterfaces").unwrap().text(), Some("32"));
}

#[test]
fn parameters_name_images() {
    let kit = Kit::new();
    let get = |name: &str| {
        kit.simulator.call(&kit.scope, Service::Ssm, "GetParameter", Tree::new().with("Name", name))
    };
    let reply = get("/images/node/v1.36.3").unwrap();
    assert_eq!(reply.at("Parameter.Value").unwrap().text(), Some("ami-0a1b2c3d"));
    kit.simulator.put_parameter(&kit.scope, "/images/node/v1.36.3", "ami-0b1c2d3e");
    let reply = get("/images/node/v1.36.3").unwrap();
    assert_eq!(reply.at("Parameter.Version").unwrap().text(), Some("2"));
    assert_eq!(get("/none").unwrap_err().code, "ParameterNotFound");
    let many = Tree::new().with("Names", vec!["/images/node/v1.36", "/none"]);
    let reply = kit.simulator.call(&kit.scope, Service::Ssm, "GetParameters", many).unwrap();
    assert_eq!(reply.texts_of("InvalidParameters"), ["/none"]);
}

#[test]
fn quotas_of_standard_instances_show_the_limit_of_vcpus() {
    let kit = Kit::new();
    let get = |code: &str| {
        let params = Tree::new().with("ServiceCode", "ec2").with("QuotaCode", code);
        kit.simulator.call(&kit.scope, Service::ServiceQuotas, "GetServiceQuota", params)
    };
    let value = |code: &str| get(code).unwrap().at("Quota.Value").unwrap().text().map(str::to_owned);
    assert_eq!(value("L-1216C47A").as_deref(), Some("100000.0"));
    kit.change_settings(|settings| settings.vcpu_limit = Some(32));
    assert_eq!(value("L-1216C47A").as_deref(), Some("32.0"));
    assert_eq!(value("L-34B43A08").as_deref(), Some("32.0"));
    assert_eq!(get("L-F7808C92").unwrap_err().code, "NoSuchResourceException");
}

#[test]
fn instances_are_described_in_bulk_by_filter() {
    let kit = Kit::with_group(3);
    let ids = kit.ids("pool");
    let wanted: Vec<&str> = ids.iter().map(String::as_str).chain(["i-00000000000000000"]).collect();
    let found = kit.ec2("DescribeInstances", filter("instance-id", wanted));
    assert_eq!(found.items_of("Reservations").len(), 3, "unknown ids in a filter are no error");
    let instance = &found.items_of("Reservations")[0].items_of("Instances")[0];
    assert!(instance.text_of("PrivateDnsName").unwrap().ends_with(".eu-west-1.compute.internal"));
    assert!(instance.text_of("PrivateIpAddress").unwrap().starts_with("10.0."));
    assert_eq!(instance.at("CpuOptions.CoreCount").unwrap().text(), Some("1"));
    assert_eq!(instance.at("CpuOptions.ThreadsPerCore").unwrap().text(), Some("2"));
    let too_many = vec!["i-00000000000000000"; 201];
    assert_eq!(
        kit.try_ec2("DescribeInstances", filter("instance-id", too_many)).unwrap_err().code,
        "FilterLimitExceeded"
    );
    let mixed = Tree::new().with("InstanceIds", vec![&ids[0]]).with("MaxResults", 5);
    assert_eq!(kit.try_ec2("DescribeInstances", mixed).unwrap_err().code, "InvalidParameterCombination");
}

#[test]
fn terminate_instances_is_idempotent_and_all_or_nothing() {
    let kit = Kit::with_group(1);
    let id = kit.ids("pool").remove(0);
    let bad = Tree::new().with("InstanceIds", vec![id.as_str(), "i-00000000000000000"]);
    assert_eq!(kit.try_ec2("TerminateInstances", bad).unwrap_err().code, "InvalidInstanceID.NotFound");
    assert_eq!(kit.machine(&id).as_deref(), Some("running"));
    for before in ["running", "shutting-down"] {
        let reply = kit.ec2("TerminateInstances", Tree::new().with("InstanceIds", vec![&id]));
        let change = &reply.items_of("TerminatingInstances")[0];
        assert_eq!(change.at("PreviousState.Name").unwrap().text(), Some(before));
        assert_eq!(change.at("CurrentState.Name").unwrap().text(), Some("shutting-down"));
    }
}
