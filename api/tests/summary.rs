//! `Ready` against what core's own library made of the same conditions, and against its rules for any.

#![cfg(test)]

use capasg_api::{
    conditions::{self, POOL_SUMMARY, Status, summarize},
    time::to_kubernetes,
};
use chrono::DateTime;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use proptest::prelude::*;
use serde::Deserialize;

/// What `NewSummaryCondition` of Cluster API v1.14.2 returned, with `Deleting` as negative type.
const CORE: &str = include_str!("data/core-summaries.json");

#[derive(Deserialize)]
struct Example {
    conditions: Vec<Given>,
    summary: Expected,
}

#[derive(Deserialize)]
struct Given {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    reason: String,
    message: String,
}

#[derive(Deserialize)]
struct Expected {
    status: String,
    reason: String,
    message: String,
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: to_kubernetes(DateTime::UNIX_EPOCH),
        observed_generation: Some(1),
    }
}

// Rules: I2
#[test]
fn ready_is_summarized_as_core_does() {
    let examples: Vec<Example> = serde_json::from_str(CORE).unwrap();
    assert!(examples.len() >= 7);
    for example in examples {
        let given: Vec<Condition> = example
            .conditions
            .iter()
            .map(|given| condition(&given.type_, &given.status, &given.reason, &given.message))
            .collect();
        let summary = summarize(&given, POOL_SUMMARY);
        assert_eq!(summary.status.as_str(), example.summary.status);
        assert_eq!(summary.reason, example.summary.reason);
        assert_eq!(summary.message, example.summary.message);
    }
}

fn any_conditions() -> impl Strategy<Value = Vec<Condition>> {
    let one = |type_: &'static str| {
        (prop::option::of(prop::sample::select(vec!["True", "False", "Unknown"])), "[a-z ]{0,12}").prop_map(
            move |(status, message)| status.map(|status| condition(type_, status, "Because", &message)),
        )
    };
    let all: Vec<_> = POOL_SUMMARY.iter().map(|type_| one(type_)).collect();
    all.prop_map(|found| found.into_iter().flatten().collect::<Vec<_>>()).prop_shuffle()
}

proptest! {
    // Rules: I2
    #[test]
    fn an_issue_decides_before_an_unknown_condition(conditions in any_conditions()) {
        let summary = summarize(&conditions, POOL_SUMMARY);
        let is_issue = |type_: &str| conditions::get(&conditions, type_).is_some_and(|condition| {
            condition.status == if conditions::is_negative(type_) { "True" } else { "False" }
        });
        let is_unknown = |type_: &str| {
            conditions::get(&conditions, type_).is_none_or(|condition| condition.status == "Unknown")
        };
        let expected = if POOL_SUMMARY.iter().any(|type_| is_issue(type_)) {
            (Status::False, "NotReady")
        } else if POOL_SUMMARY.iter().any(|type_| is_unknown(type_)) {
            (Status::Unknown, "ReadyUnknown")
        } else {
            (Status::True, "Ready")
        };
        prop_assert_eq!((summary.status, summary.reason), expected);

        let told: Vec<&str> = summary
            .message
            .lines()
            .filter_map(|line| line.strip_prefix("* ")?.split_once(':').map(|(type_, _)| type_))
            .collect();
        let wanted: Vec<&str> = POOL_SUMMARY
            .iter()
            .copied()
            .filter(|type_| match summary.status {
                Status::True => conditions::get(&conditions, type_).is_some_and(|it| !it.message.is_empty()),
                _ => is_issue(type_) || is_unknown(type_),
            })
            .collect();
        prop_assert_eq!(told, wanted);
    }

    // Rules: I2
    #[test]
    fn the_order_of_conditions_does_not_matter(conditions in any_conditions()) {
        let mut sorted = conditions.clone();
        sorted.sort_by(|a, b| a.type_.cmp(&b.type_));
        prop_assert_eq!(summarize(&conditions, POOL_SUMMARY), summarize(&sorted, POOL_SUMMARY));
    }
}
