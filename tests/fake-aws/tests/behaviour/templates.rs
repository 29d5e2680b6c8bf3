//! Launch templates and their versions.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use capasg_fake_aws::Tree;

use crate::kit::{Kit, data, texts};

fn by_name(name: &str) -> Tree {
    Tree::new().with("LaunchTemplateName", name)
}

fn version(kit: &Kit) -> i64 {
    let reply = kit.ec2("CreateLaunchTemplateVersion", by_name("nodes").with("LaunchTemplateData", data()));
    reply.at("LaunchTemplateVersion.VersionNumber").unwrap().text().unwrap().parse().unwrap()
}

fn code(kit: &Kit, action: &str, params: Tree) -> String {
    kit.try_ec2(action, params).expect_err(action).code
}

#[test]
fn version_numbers_increase_and_are_never_reused() {
    let kit = Kit::with_template();
    assert_eq!(version(&kit), 2);
    assert_eq!(version(&kit), 3);
    kit.ec2("DeleteLaunchTemplateVersions", by_name("nodes").with("Versions", vec!["3"]));
    assert_eq!(version(&kit), 4);
    let reply = kit.ec2("DescribeLaunchTemplateVersions", by_name("nodes"));
    assert_eq!(texts(reply.items_of("LaunchTemplateVersions"), "VersionNumber"), ["4", "2", "1"]);
}

#[test]
fn a_version_echoes_what_it_was_made_of() {
    let kit = Kit::new();
    let ebs = Tree::new().with("VolumeSize", 80).with("VolumeType", "gp3").with("Encrypted", true);
    let mapping = Tree::new().with("DeviceName", "/dev/xvda").with("Ebs", ebs);
    let options = Tree::new().with("HttpTokens", "required").with("HttpPutResponseHopLimit", 1);
    let data = data().with("BlockDeviceMappings", vec![mapping]).with("MetadataOptions", options);
    kit.template("nodes", data.clone());
    let params = by_name("nodes").with("Versions", vec!["$Latest"]);
    let reply = kit.ec2("DescribeLaunchTemplateVersions", params);
    assert_eq!(reply.items_of("LaunchTemplateVersions")[0].get("LaunchTemplateData"), Some(&data));
}

#[test]
fn a_source_version_is_inherited_and_overwritten() {
    let kit = Kit::with_template();
    let params = by_name("nodes")
        .with("SourceVersion", "1")
        .with("VersionDescription", "bigger")
        .with("LaunchTemplateData", Tree::new().with("InstanceType", "m7i.xlarge"));
    let reply = kit.ec2("CreateLaunchTemplateVersion", params);
    let data = reply.at("LaunchTemplateVersion.LaunchTemplateData").unwrap();
    assert_eq!(data.text_of("InstanceType"), Some("m7i.xlarge"));
    assert_eq!(data.text_of("ImageId"), Some("ami-0a1b2c3d"));
    assert_eq!(reply.at("LaunchTemplateVersion.VersionDescription").unwrap().text(), Some("bigger"));
}

#[test]
fn user_data_is_limited_before_base64() {
    let kit = Kit::new();
    let params = |bytes: usize| {
        let user_data = STANDARD.encode(vec![b'x'; bytes]);
        by_name("nodes").with("LaunchTemplateData", data().with("UserData", user_data))
    };
    let error = kit.try_ec2("CreateLaunchTemplate", params(16_385)).unwrap_err();
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("InvalidParameterValue", "User data is limited to 16384 bytes")
    );
    kit.ec2("CreateLaunchTemplate", params(16_384));
    let plain = by_name("other").with("LaunchTemplateData", data().with("UserData", "not base64!"));
    assert_eq!(code(&kit, "CreateLaunchTemplate", plain), "InvalidUserData.Malformed");
}

#[test]
fn names_and_descriptions_have_limits() {
    let kit = Kit::new();
    let create = |name: &str| by_name(name).with("LaunchTemplateData", data());
    for name in ["ab", "a b c", &"x".repeat(129), "a:b:c"] {
        assert_eq!(
            code(&kit, "CreateLaunchTemplate", create(name)),
            "InvalidLaunchTemplateName.MalformedException"
        );
    }
    let long = create("nodes").with("VersionDescription", "d".repeat(256));
    assert_eq!(code(&kit, "CreateLaunchTemplate", long), "InvalidParameterValue");
    kit.ec2("CreateLaunchTemplate", create("a.b(c)-d/e_f").with("VersionDescription", "d".repeat(255)));
}

#[test]
fn a_duplicate_template_name_is_rejected() {
    let kit = Kit::with_template();
    let again = by_name("nodes").with("LaunchTemplateData", data());
    assert_eq!(code(&kit, "CreateLaunchTemplate", again), "InvalidLaunchTemplateName.AlreadyExistsException");
}

#[test]
fn a_client_token_makes_creation_idempotent() {
    let kit = Kit::new();
    let create = by_name("nodes").with("LaunchTemplateData", data()).with("ClientToken", "t1");
    let first = kit.ec2("CreateLaunchTemplate", create.clone());
    assert_eq!(kit.ec2("CreateLaunchTemplate", create.clone()), first);
    let other = create.with("VersionDescription", "other");
    assert_eq!(code(&kit, "CreateLaunchTemplate", other), "IdempotentParameterMismatch");
    let next = by_name("nodes").with("LaunchTemplateData", data()).with("ClientToken", "t2");
    let second = kit.ec2("CreateLaunchTemplateVersion", next.clone());
    assert_eq!(kit.ec2("CreateLaunchTemplateVersion", next), second);
}

#[test]
fn missing_and_malformed_templates_have_their_error_codes() {
    let kit = Kit::with_template();
    let by_id = |id: &str| Tree::new().with("LaunchTemplateId", id);
    let missing = "lt-00000000000000000";
    assert_eq!(code(&kit, "DeleteLaunchTemplate", by_id(missing)), "InvalidLaunchTemplateId.NotFound");
    assert_eq!(code(&kit, "DeleteLaunchTemplate", by_id("x")), "InvalidLaunchTemplateId.Malformed");
    assert_eq!(
        code(&kit, "DeleteLaunchTemplate", by_name("none")),
        "InvalidLaunchTemplateName.NotFoundException"
    );
    let describe = Tree::new().with("LaunchTemplateNames", vec!["none"]);
    assert_eq!(
        code(&kit, "DescribeLaunchTemplates", describe),
        "InvalidLaunchTemplateName.NotFoundException"
    );
    let describe = Tree::new().with("LaunchTemplateIds", vec![missing]);
    assert_eq!(code(&kit, "DescribeLaunchTemplates", describe), "InvalidLaunchTemplateId.NotFound");
    let version = by_name("nodes").with("Versions", vec!["9"]);
    assert_eq!(
        code(&kit, "DescribeLaunchTemplateVersions", version),
        "InvalidLaunchTemplateId.VersionNotFound"
    );
    let both = by_name("nodes").with("LaunchTemplateId", missing);
    assert_eq!(code(&kit, "DeleteLaunchTemplate", both), "InvalidParameterCombination");
    assert_eq!(code(&kit, "DeleteLaunchTemplate", Tree::new()), "MissingParameter");
}

#[test]
fn versions_are_deleted_one_by_one_and_the_default_stays() {
    let kit = Kit::with_template();
    version(&kit);
    let reply =
        kit.ec2("DeleteLaunchTemplateVersions", by_name("nodes").with("Versions", vec!["1", "2", "9"]));
    assert_eq!(texts(reply.items_of("SuccessfullyDeletedLaunchTemplateVersions"), "VersionNumber"), ["2"]);
    let refused = reply.items_of("UnsuccessfullyDeletedLaunchTemplateVersions");
    let codes: Vec<_> =
        refused.iter().map(|one| one.at("ResponseError.Code").unwrap().text().unwrap()).collect();
    assert_eq!(codes, ["unexpectedError", "launchTemplateVersionDoesNotExist"]);
}

#[test]
fn the_default_version_can_be_moved() {
    let kit = Kit::with_template();
    version(&kit);
    let reply = kit.ec2("ModifyLaunchTemplate", by_name("nodes").with("DefaultVersion", "2"));
    assert_eq!(reply.at("LaunchTemplate.DefaultVersionNumber").unwrap().text(), Some("2"));
    kit.ec2("DeleteLaunchTemplateVersions", by_name("nodes").with("Versions", vec!["1"]));
    let wrong = by_name("nodes").with("DefaultVersion", "7");
    assert_eq!(code(&kit, "ModifyLaunchTemplate", wrong), "InvalidLaunchTemplateId.VersionNotFound");
}

#[test]
fn templates_carry_tags_and_are_found_by_them() {
    let kit = Kit::new();
    let tag = Tree::new().with("Key", "owner").with("Value", "me");
    let specification = Tree::new().with("ResourceType", "launch-template").with("Tags", vec![tag]);
    let create =
        by_name("nodes").with("LaunchTemplateData", data()).with("TagSpecifications", vec![specification]);
    kit.ec2("CreateLaunchTemplate", create);
    kit.template("other", data());
    let filter = Tree::new().with("Name", "tag:owner").with("Values", vec!["me"]);
    let found = kit.ec2("DescribeLaunchTemplates", Tree::new().with("Filters", vec![filter]));
    assert_eq!(texts(found.items_of("LaunchTemplates"), "LaunchTemplateName"), ["nodes"]);
    let wrong = Tree::new().with("ResourceType", "instance").with("Tags", Vec::<Tree>::new());
    let create = by_name("third").with("LaunchTemplateData", data()).with("TagSpecifications", vec![wrong]);
    assert_eq!(code(&kit, "CreateLaunchTemplate", create), "InvalidParameterValue");
}

#[test]
fn a_dry_run_changes_nothing() {
    let kit = Kit::new();
    let create = by_name("nodes").with("LaunchTemplateData", data()).with("DryRun", true);
    let error = kit.try_ec2("CreateLaunchTemplate", create).unwrap_err();
    assert_eq!((error.status, error.code.as_str()), (412, "DryRunOperation"));
    assert_eq!(kit.ec2("DescribeLaunchTemplates", Tree::new()).items_of("LaunchTemplates").len(), 0);
}
