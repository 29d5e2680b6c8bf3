//! The documents of the repository, and what each flag changes.

use std::collections::BTreeSet;

use clap::Parser as _;

use super::*;
use crate::cli::{Cli, Command, IamAction, IamCommand};

fn args(flags: &[&str]) -> IamPrintArgs {
    let all = ["capasg", "iam", "print"].iter().chain(flags);
    match Cli::try_parse_from(all).unwrap().command {
        Command::Iam(IamCommand { action: IamAction::Print(args) }) => *args,
        other => panic!("{other:?}"),
    }
}

fn printed(flags: &[&str]) -> Result<Value> {
    let args = args(flags);
    let usage = Usage::of_flags(&args)?;
    let parts = Parts::of(&args, &usage)?;
    document(&parts, &usage)
}

fn commands(flags: &[&str]) -> String {
    let args = args(flags);
    let usage = Usage::of_flags(&args).unwrap();
    let parts = Parts::of(&args, &usage).unwrap();
    commands::all(&parts, &usage).unwrap()
}

fn statement<'a>(policy: &'a Value, sid: &str) -> Option<&'a Value> {
    policy["Statement"].as_array()?.iter().find(|statement| statement["Sid"] == sid)
}

fn resources(policy: &Value) -> BTreeSet<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let statements = policy["Statement"].as_array().unwrap().iter();
    let of_one = |statement: &Value| match &statement["Resource"] {
        Value::Array(all) => all.iter().filter_map(text).collect::<Vec<_>>(),
        one => text(one).into_iter().collect(),
    };
    statements.flat_map(of_one).collect()
}

/// `UPDATE_IAM_POLICIES=1` writes the files.
#[test]
fn the_policies_of_the_documentation_are_what_is_printed_by_default() {
    for (file, document) in
        [("iam-policy.json", "manager-policy"), ("iam-policy-extension.json", "extension-policy")]
    {
        let path = format!("{}/docs/{file}", env!("CARGO_MANIFEST_DIR"));
        let printed = pretty::text(&printed(&["--document", document]).unwrap());
        if std::env::var_os("UPDATE_IAM_POLICIES").is_some() {
            std::fs::write(&path, &printed).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), printed, "run with UPDATE_IAM_POLICIES=1");
    }
}

/// No character of white space counts ("IAM and STS character limits").
#[test]
fn policies_fit_into_a_managed_policy() {
    let regions = "--region=eu-west-1,eu-central-1,us-east-1";
    let all = [
        "--role=nodes",
        "--account=111122223333",
        "--adoption",
        "--assume-role=arn:aws:iam::444455556666:role/a",
    ];
    for flags in [vec![], all.to_vec(), [&all[..], &[regions]].concat()] {
        let length = printed(&flags).unwrap().to_string().len();
        assert!(length <= 6_144, "{flags:?}: {length}");
    }
}

#[test]
fn a_role_is_passed_only_if_it_is_named() {
    assert!(statement(&printed(&[]).unwrap(), "PassInstanceProfileRoles").is_none());
    assert!(omitted(&args(&[]), &Usage::default())[0].contains("--role"));
    let policy = printed(&["--role=nodes", "--account=111122223333", "--partition=aws"]).unwrap();
    let pass = statement(&policy, "PassInstanceProfileRoles").unwrap();
    assert_eq!(pass["Resource"], "arn:aws:iam::111122223333:role/nodes");
    assert_eq!(pass["Condition"]["StringEquals"]["iam:PassedToService"], "ec2.amazonaws.com");
    let named = args(&["--role=nodes"]);
    assert!(omitted(&named, &Usage::of_flags(&named).unwrap()).is_empty());
}

#[test]
fn every_arn_is_of_the_partition_the_account_and_the_regions() {
    for (region, partition, service) in [
        ("us-gov-west-1", "aws-us-gov", "ec2.amazonaws.com"),
        ("cn-north-1", "aws-cn", "ec2.amazonaws.com.cn"),
        ("eu-west-1", "aws", "ec2.amazonaws.com"),
    ] {
        let region_flag = format!("--region={region}");
        let policy =
            printed(&[&region_flag, "--account=111122223333", "--role=nodes", "--queue=events"]).unwrap();
        for arn in resources(&policy) {
            if arn == "*" {
                continue;
            }
            let parts: Vec<&str> = arn.split(':').collect();
            assert_eq!(parts[1], partition, "{arn}");
            assert!([region, ""].contains(&parts[3]), "{arn}");
            assert!(["111122223333", ""].contains(&parts[4]), "{arn}");
        }
        let pass = statement(&policy, "PassInstanceProfileRoles").unwrap();
        assert_eq!(pass["Condition"]["StringEquals"]["iam:PassedToService"], service);
        let read = statement(&policy, "Read").unwrap();
        assert_eq!(read["Condition"]["StringEquals"]["aws:RequestedRegion"], region);
        let launch = statement(&policy, "LaunchThroughGroups").unwrap();
        let template = format!("arn:{partition}:ec2:{region}:111122223333:launch-template/*");
        assert_eq!(launch["Condition"]["ArnLike"]["ec2:LaunchTemplate"], template);
    }
    assert!(printed(&["--region=cn-north-1", "--partition=aws"]).is_err());
    assert!(printed(&["--region=cn-north-1,eu-west-1"]).is_err());
}

#[test]
fn several_regions_are_a_condition_of_every_statement() {
    let policy = printed(&["--region=eu-west-1,eu-central-1"]).unwrap();
    for statement in policy["Statement"].as_array().unwrap() {
        let regions = &statement["Condition"]["StringEquals"]["aws:RequestedRegion"];
        // The roles are of no Region.
        let is_regional = statement["Sid"] != "FirstUseOfGroupsAndSpot";
        assert_eq!(*regions == json!(["eu-central-1", "eu-west-1"]), is_regional, "{statement}");
    }
}

#[test]
fn queues_and_parameters_are_named_in_every_form() {
    let queues = [
        "--queue=a",
        "--queue=https://sqs.eu-west-1.amazonaws.com/111122223333/b",
        "--queue=arn:aws:sqs:x:y:c",
    ];
    let policy = printed(&[&queues[..], &["--region=eu-west-1"]].concat()).unwrap();
    assert_eq!(
        statement(&policy, "TakeEvents").unwrap()["Resource"],
        json!(["arn:aws:sqs:eu-west-1:*:a", "arn:aws:sqs:x:y:c", "arn:aws:sqs:eu-west-1:111122223333:b"])
    );
    let parameters = [
        "--parameter=/images/{version}",
        "--parameter=/aws/service/eks/{minor}/x",
        "--parameter=arn:aws:ssm:x:y:parameter/z",
    ];
    let policy = printed(&parameters).unwrap();
    assert_eq!(
        statement(&policy, "ReadImageParameters").unwrap()["Resource"],
        json!([
            "arn:*:ssm:*::parameter/aws/service/eks/*/x",
            "arn:*:ssm:*:*:parameter/images/*",
            "arn:aws:ssm:x:y:parameter/z"
        ])
    );
    let none = Usage { queues: Used::Only([].into()), parameters: Used::Only([].into()), ..Usage::default() };
    let policy = policy::manager(&none);
    assert!(
        statement(&policy, "TakeEvents").is_none() && statement(&policy, "ReadImageParameters").is_none()
    );
    assert_eq!(omitted(&args(&[]), &none).len(), 3);
}

#[test]
fn namespaces_restrict_every_condition_on_tags() {
    let usage = Usage { namespaces: ["a".to_owned(), "b".to_owned()].into(), ..Usage::default() };
    let policy = policy::manager(&usage);
    let owner = capasg_api::names::tags::OWNER_ID;
    let namespace = capasg_api::names::tags::NAMESPACE;
    let mut restricted = 0;
    for statement in policy["Statement"].as_array().unwrap() {
        for at in ["aws:RequestTag", "aws:ResourceTag"] {
            if statement["Condition"]["Null"][format!("{at}/{owner}")] == "false" {
                assert_eq!(
                    statement["Condition"]["StringEquals"][format!("{at}/{namespace}")],
                    json!(["a", "b"]),
                    "{statement}"
                );
                restricted += 1;
            }
        }
    }
    assert_eq!(restricted, 7, "{policy:#}");
}

#[test]
fn trust_policies_name_the_service_account() {
    let oidc = ["--oidc-provider=https://oidc.eks.eu-west-1.amazonaws.com/id/A/", "--account=111122223333"];
    let trust = printed(&[&oidc[..], &["--document=manager-trust"]].concat()).unwrap();
    let statement = &trust["Statement"][0];
    assert_eq!(
        statement["Principal"]["Federated"],
        "arn:aws:iam::111122223333:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/A"
    );
    let equals = &statement["Condition"]["StringEquals"];
    assert_eq!(
        equals["oidc.eks.eu-west-1.amazonaws.com/id/A:sub"],
        "system:serviceaccount:capasg-system:capasg-manager"
    );
    let by_arn = [
        "--oidc-provider=arn:aws-cn:iam::1:oidc-provider/i/d",
        "--document=extension-trust",
        "--extension-namespace=x",
    ];
    let trust = printed(&by_arn).unwrap();
    assert_eq!(
        trust["Statement"][0]["Condition"]["StringEquals"]["i/d:sub"],
        "system:serviceaccount:x:capasg-extension"
    );
    let pods = ["--pod-identity-cluster=management", "--document=manager-trust"];
    let equals = printed(&pods).unwrap()["Statement"][0]["Condition"]["StringEquals"].clone();
    assert_eq!(equals["aws:RequestTag/kubernetes-namespace"], "capasg-system");
    for (flags, missing) in [
        (vec!["--document=manager-trust"], "--oidc-provider"),
        (vec!["--document=identity-trust"], "--assume-role"),
        (vec!["--document=key-policy"], "--account"),
        (vec!["--oidc-provider=https://a", "--document=manager-trust"], "--account"),
        (vec!["--assume-role=x"], "ARN"),
        (vec!["--kms-key=x"], "ARN"),
    ] {
        let error = format!("{:#}", printed(&flags).unwrap_err());
        assert!(error.contains(missing), "{flags:?}: {error}");
    }
}

#[test]
fn commands_create_roles_and_grants() {
    let key = "arn:aws:kms:eu-west-1:444455556666:key/a";
    let flags = [
        "--account=111122223333",
        "--region=eu-west-1",
        "--role=nodes",
        "--pod-identity-cluster=management",
        "--assume-role=arn:aws:iam::444455556666:role/pools=blue",
        &format!("--kms-key={key}"),
    ];
    let commands = commands(&flags);
    let lines: Vec<&str> = commands.lines().collect();
    let begins: Vec<String> =
        lines.iter().map(|line| line.split(" --").take(2).collect::<Vec<_>>().join(" --")).collect();
    assert_eq!(
        begins,
        [
            "aws iam create-role --role-name capasg-manager",
            "aws iam put-role-policy --role-name capasg-manager",
            "aws eks create-pod-identity-association --cluster-name management",
            "aws iam create-role --role-name capasg-extension",
            "aws iam put-role-policy --role-name capasg-extension",
            "aws eks create-pod-identity-association --cluster-name management",
            "# In the account 444455556666:",
            "aws iam create-role --role-name pools",
            "aws iam put-role-policy --role-name pools",
            "aws kms create-grant --region eu-west-1",
        ],
        "{commands}"
    );
    assert!(
        lines[7].contains(r#""sts:ExternalId":"blue""#)
            && lines[7].contains("111122223333:role/capasg-manager")
    );
    assert!(
        lines[8].contains("arn:aws:ec2:eu-west-1:444455556666:") && !lines[8].contains("111122223333"),
        "{}",
        lines[8]
    );
    assert!(
        lines[9].contains(&format!("--key-id {key}"))
            && lines[9].contains("111122223333:role/aws-service-role/")
    );
    let quoted = lines[0].split_once("document ").unwrap().1.trim_matches('\'');
    assert!(serde_json::from_str::<Value>(quoted).is_ok(), "{quoted}");
}
