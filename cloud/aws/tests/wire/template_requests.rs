//! The exact members of each write to launch templates.

use std::collections::BTreeSet;

use anyhow::Result;
use capasg_cloud::Write;

use crate::{
    fixtures::{GROUP, TEMPLATE, every_write, map, template_data},
    replay::sent,
};

// Pains: P31
#[tokio::test]
async fn create_launch_template_sends_every_member() -> Result<()> {
    let write = every_write().swap_remove(0);
    let (_, members) = sent(&write).await?;
    let data = "LaunchTemplateData.";
    let mut expected = map(&[
        ("LaunchTemplateName", GROUP),
        ("VersionDescription", "v1 content=aa rollout=bb"),
        ("ClientToken", "token-1"),
        ("TagSpecification.1.ResourceType", "launch-template"),
        ("TagSpecification.1.Tag.1.Key", "capasg-owner"),
        ("TagSpecification.1.Tag.1.Value", "0f2c"),
    ]);
    let content = [
        ("ImageId", "ami-0123456789abcdef0"),
        ("InstanceType", "m5.large"),
        ("IamInstanceProfile.Name", "nodes.example.io"),
        ("KeyName", "ops"),
        ("SecurityGroupId.1", "sg-0bbb"),
        ("SecurityGroupId.2", "sg-0aaa"),
        ("BlockDeviceMapping.1.DeviceName", "/dev/xvda"),
        ("BlockDeviceMapping.1.Ebs.VolumeSize", "80"),
        ("BlockDeviceMapping.1.Ebs.VolumeType", "gp3"),
        ("BlockDeviceMapping.1.Ebs.Iops", "4000"),
        ("BlockDeviceMapping.1.Ebs.Throughput", "250"),
        ("BlockDeviceMapping.1.Ebs.Encrypted", "true"),
        ("BlockDeviceMapping.1.Ebs.KmsKeyId", "alias/nodes"),
        ("BlockDeviceMapping.1.Ebs.SnapshotId", "snap-0123456789abcdef0"),
        ("BlockDeviceMapping.1.Ebs.DeleteOnTermination", "true"),
        ("MetadataOptions.HttpTokens", "required"),
        ("MetadataOptions.HttpPutResponseHopLimit", "1"),
        ("MetadataOptions.HttpEndpoint", "enabled"),
        ("MetadataOptions.HttpProtocolIpv6", "disabled"),
        ("MetadataOptions.InstanceMetadataTags", "disabled"),
        ("UserData", "I2Nsb3VkLWNvbmZpZwo="),
        ("TagSpecification.1.ResourceType", "instance"),
        ("TagSpecification.1.Tag.1.Key", "Name"),
        ("TagSpecification.1.Tag.1.Value", "workers"),
        ("TagSpecification.1.Tag.2.Key", "kubernetes.io/cluster/demo"),
        ("TagSpecification.1.Tag.2.Value", "owned"),
        ("TagSpecification.2.ResourceType", "volume"),
        ("TagSpecification.2.Tag.1.Key", "Name"),
        ("TagSpecification.2.Tag.1.Value", "workers"),
        ("TagSpecification.2.Tag.2.Key", "kubernetes.io/cluster/demo"),
        ("TagSpecification.2.Tag.2.Value", "owned"),
        ("TagSpecification.3.ResourceType", "network-interface"),
        ("TagSpecification.3.Tag.1.Key", "Name"),
        ("TagSpecification.3.Tag.1.Value", "workers"),
        ("TagSpecification.3.Tag.2.Key", "kubernetes.io/cluster/demo"),
        ("TagSpecification.3.Tag.2.Value", "owned"),
        ("TagSpecification.4.ResourceType", "spot-instances-request"),
        ("TagSpecification.4.Tag.1.Key", "Name"),
        ("TagSpecification.4.Tag.1.Value", "workers"),
        ("TagSpecification.4.Tag.2.Key", "kubernetes.io/cluster/demo"),
        ("TagSpecification.4.Tag.2.Value", "owned"),
    ];
    expected.extend(content.iter().map(|(name, value)| (format!("{data}{name}"), (*value).to_owned())));
    assert_eq!(members, expected);
    Ok(())
}

#[tokio::test]
async fn an_instance_profile_is_named_by_arn_if_it_is_one() -> Result<()> {
    let arn = "arn:aws:iam::123456789012:instance-profile/nodes";
    let mut data = template_data("");
    data.iam_instance_profile = Some(arn.to_owned());
    data.tags.clear();
    let (_, members) = sent(&Write::CreateLaunchTemplateVersion {
        id: TEMPLATE.to_owned(),
        data: Box::new(data),
        description: "d".to_owned(),
        client_token: "t".to_owned(),
    })
    .await?;
    assert_eq!(members.get("LaunchTemplateData.IamInstanceProfile.Arn").map(String::as_str), Some(arn));
    assert_eq!(members.get("LaunchTemplateId").map(String::as_str), Some(TEMPLATE));
    let absent = [
        "SourceVersion",
        "LaunchTemplateData.UserData",
        "LaunchTemplateData.TagSpecification.1.ResourceType",
    ];
    assert!(absent.iter().all(|name| !members.contains_key(*name)), "{members:?}");
    Ok(())
}

#[tokio::test]
async fn launch_template_versions_are_named_by_number() -> Result<()> {
    let id = TEMPLATE.to_owned();
    let delete = Write::DeleteLaunchTemplateVersions { id: id.clone(), versions: BTreeSet::from([10, 9]) };
    let expected = map(&[
        ("LaunchTemplateId", TEMPLATE),
        ("LaunchTemplateVersion.1", "9"),
        ("LaunchTemplateVersion.2", "10"),
    ]);
    assert_eq!(sent(&delete).await?.1, expected);
    let delete_all = Write::DeleteLaunchTemplate { id };
    assert_eq!(sent(&delete_all).await?.1, map(&[("LaunchTemplateId", TEMPLATE)]));
    Ok(())
}
