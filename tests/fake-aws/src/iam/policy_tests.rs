//! The semantics of policies, by examples after the IAM user guide.

use serde_json::{Value, json};

use super::policy::{Decision, Policy, Request};

const GROUP: &str = "arn:aws:autoscaling:eu-west-1:111122223333:autoScalingGroup:6e1c:autoScalingGroupName/a";

fn policy(statements: &Value) -> Policy {
    Policy::parse(&json!({"Version": "2012-10-17", "Statement": statements})).unwrap()
}

fn update() -> Request {
    Request::new("autoscaling:UpdateAutoScalingGroup", GROUP)
}

/// Whether a statement that allows everything does so under a condition.
fn holds(condition: &Value, request: &Request) -> bool {
    let all = json!({"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": condition});
    policy(&all).decide(request) == Decision::Allowed
}

#[test]
fn what_no_statement_allows_is_denied() {
    let read = policy(&json!({"Effect": "Allow", "Action": "autoscaling:Describe*", "Resource": "*"}));
    assert_eq!(read.decide(&update()), Decision::DeniedImplicitly);
    assert_eq!(read.decide(&Request::new("autoscaling:DescribeTags", "*")), Decision::Allowed);
    assert_eq!(policy(&json!([])).decide(&update()), Decision::DeniedImplicitly);
}

#[test]
fn a_deny_wins_over_every_allow() {
    let both = policy(&json!([
        {"Effect": "Allow", "Action": "*", "Resource": "*"},
        {"Sid": "No", "Effect": "Deny", "Action": "autoscaling:Update*", "Resource": GROUP},
    ]));
    assert_eq!(both.decide(&update()), Decision::DeniedExplicitly);
    let other = Request::new("autoscaling:UpdateAutoScalingGroup", &GROUP.replace("/a", "/b"));
    assert_eq!(both.decide(&other), Decision::Allowed);
}

#[test]
fn actions_ignore_case_and_resources_do_not() {
    let lower = policy(
        &json!({"Effect": "Allow", "Action": "AUTOSCALING:updateautoscalinggroup", "Resource": GROUP}),
    );
    assert_eq!(lower.decide(&update()), Decision::Allowed);
    let resource = GROUP.replace("autoScalingGroupName", "autoscalinggroupname");
    let wrong = policy(&json!({"Effect": "Allow", "Action": "autoscaling:*", "Resource": resource}));
    assert_eq!(wrong.decide(&update()), Decision::DeniedImplicitly);
}

#[test]
fn not_action_and_not_resource_match_all_others() {
    let not_action = policy(&json!({"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}));
    assert_eq!(not_action.decide(&update()), Decision::Allowed);
    assert_eq!(not_action.decide(&Request::new("iam:PassRole", "*")), Decision::DeniedImplicitly);
    let not_resource = policy(&json!([
        {"Effect": "Allow", "Action": "*", "Resource": "*"},
        {"Effect": "Deny", "Action": "*", "NotResource": "arn:aws:autoscaling:*:*:*"},
    ]));
    assert_eq!(not_resource.decide(&update()), Decision::Allowed);
    let other = Request::new("ec2:RunInstances", "arn:aws:ec2:eu-west-1:111122223333:instance/*");
    assert_eq!(not_resource.decide(&other), Decision::DeniedExplicitly);
}

#[test]
fn values_are_alternatives_and_keys_are_not() {
    let request = update().with("aws:ResourceTag/team", "blue").with("aws:ResourceTag/stage", "prod");
    let both = |team: Value| json!({"StringEquals": {"aws:ResourceTag/team": team, "aws:ResourceTag/stage": "prod"}});
    assert!(holds(&both(json!(["red", "blue"])), &request));
    assert!(!holds(&both(json!("red")), &request), "the other key does not count alone");
    // Names of keys are not case sensitive, the name of a tag included; values are.
    assert!(holds(&json!({"StringEquals": {"AWS:resourcetag/TEAM": "blue"}}), &request));
    assert!(!holds(&json!({"StringEquals": {"aws:ResourceTag/team": "Blue"}}), &request));
    assert!(holds(&json!({"StringEqualsIgnoreCase": {"aws:ResourceTag/team": "Blue"}}), &request));
    assert!(holds(&json!({"StringLike": {"aws:ResourceTag/team": "b*e"}}), &request));
    assert!(!holds(&json!({"StringEquals": {"aws:ResourceTag/team": "b*e"}}), &request));
}

#[test]
fn an_absent_key_fails_unless_the_operator_is_negated_or_has_if_exists() {
    let condition = |operator: &str| json!({operator: {"aws:ResourceTag/team": "blue"}});
    assert!(!holds(&condition("StringEquals"), &update()));
    assert!(!holds(&condition("StringLike"), &update()));
    assert!(holds(&condition("StringEqualsIfExists"), &update()));
    assert!(holds(&condition("StringNotEquals"), &update()));
    let red = update().with("aws:ResourceTag/team", "red");
    assert!(!holds(&condition("StringEqualsIfExists"), &red));
    assert!(holds(&condition("StringNotEquals"), &red));
    assert!(!holds(&condition("StringNotEquals"), &update().with("aws:ResourceTag/team", "blue")));
}

#[test]
fn null_asks_whether_the_key_is_there() {
    let there = update().with("aws:ResourceTag/team", "");
    for (value, present, absent) in
        [(json!("true"), false, true), (json!("false"), true, false), (json!(false), true, false)]
    {
        let condition = json!({"Null": {"aws:ResourceTag/team": value}});
        assert_eq!(holds(&condition, &there), present, "{condition}");
        assert_eq!(holds(&condition, &update()), absent, "{condition}");
    }
}

#[test]
fn keys_with_several_values_need_a_set_operator() {
    let keys = |all: &[&str]| all.iter().fold(update(), |request, key| request.with("aws:TagKeys", *key));
    let condition = |operator: &str| json!({operator: {"aws:TagKeys": ["team", "stage"]}});
    let (inside, mixed, outside) = (keys(&["team", "stage"]), keys(&["team", "other"]), keys(&["other"]));
    let cases = [
        ("ForAllValues:StringEquals", true, false, false, true),
        ("ForAnyValue:StringEquals", true, true, false, false),
        ("ForAllValues:StringNotEquals", false, false, true, true),
        ("ForAnyValue:StringNotEquals", false, true, true, false),
        ("StringEquals", false, false, false, false),
    ];
    for (operator, of_inside, of_mixed, of_outside, of_none) in cases {
        let results =
            [&inside, &mixed, &outside, &update()].map(|request| holds(&condition(operator), request));
        assert_eq!(results, [of_inside, of_mixed, of_outside, of_none], "{operator}");
    }
}

#[test]
fn arns_are_compared_part_by_part_and_bool_ignores_case() {
    let template = "arn:aws:ec2:eu-west-1:111122223333:launch-template/lt-1";
    let request = update().with("ec2:LaunchTemplate", template).with("ec2:IsLaunchTemplateResource", "true");
    for operator in ["ArnLike", "ArnEquals"] {
        assert!(holds(
            &json!({operator: {"ec2:LaunchTemplate": "arn:*:ec2:*:*:launch-template/*"}}),
            &request
        ));
        assert!(!holds(
            &json!({operator: {"ec2:LaunchTemplate": "arn:aws:ec2:*:launch-template/*"}}),
            &request
        ));
    }
    assert!(!holds(
        &json!({"ArnNotLike": {"ec2:LaunchTemplate": "arn:*:ec2:*:*:launch-template/*"}}),
        &request
    ));
    assert!(holds(&json!({"Bool": {"ec2:IsLaunchTemplateResource": "True"}}), &request));
    assert!(!holds(&json!({"Bool": {"ec2:IsLaunchTemplateResource": "false"}}), &request));
}

#[test]
fn a_trust_policy_names_principals() {
    let trust = policy(&json!({
        "Effect": "Allow",
        "Principal": {"AWS": ["arn:aws:iam::111122223333:role/a"]},
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": {"sts:ExternalId": "blue"}},
    }));
    let request = Request::new("sts:AssumeRole", "arn:aws:iam::444455556666:role/b");
    let role = |name: &str| [("AWS", format!("arn:aws:iam::111122223333:role/{name}"))];
    assert_eq!(trust.trusts(&request, &role("a")), Decision::DeniedImplicitly);
    let request = request.with("sts:ExternalId", "blue");
    assert_eq!(trust.trusts(&request, &role("a")), Decision::Allowed);
    assert_eq!(trust.trusts(&request, &role("b")), Decision::DeniedImplicitly);
}

#[test]
fn what_is_not_known_is_refused() {
    let statement = |name: &str, value: Value| {
        let mut statement = json!({"Effect": "Allow", "Action": "*", "Resource": "*"});
        statement[name] = value;
        Policy::parse(&json!({"Version": "2012-10-17", "Statement": [statement]}))
    };
    assert!(statement("Sid", json!("x")).is_ok());
    for (name, value) in [
        ("Effect", json!("allow")),
        ("Actions", json!("*")),
        ("NotAction", json!("*")),
        ("Resource", json!([])),
        ("Resource", json!("arn:aws:s3:::${aws:username}")),
        ("Condition", json!({"NumericEquals": {"autoscaling:MaxSize": "1"}})),
        ("Condition", json!({"NullIfExists": {"a": "true"}})),
        ("Condition", json!({"ForSome:StringEquals": {"a": "true"}})),
        ("Principal", json!("*")),
    ] {
        assert!(statement(name, value.clone()).is_err(), "{name}: {value}");
    }
    assert!(Policy::parse(&json!({"Version": "2008-10-17", "Statement": []})).is_err());
}
