//! Whether quotas have enough vCPUs left for the new instances of all pools. Pure.

use std::collections::BTreeMap;

use capasg_api::names::listed;
use capasg_cloud::VcpuQuota;

use super::Check;
use crate::lookups::{Answer, Answers, Question};

/// The vCPUs that pools require of one quota.
#[derive(Default)]
struct Required<'a> {
    pools: Vec<&'a str>,
    vcpus: i64,
}

/// The quotas that have fewer vCPUs left than all pools together require. The message does not say how many are in use: that
/// changes all the time.
pub(super) fn insufficient_quotas(all: &[Check], answers: &Answers) -> Option<String> {
    let mut required: BTreeMap<Question, (VcpuQuota, Required<'_>)> = BTreeMap::new();
    for needs in all {
        for launch in &needs.launches {
            let Some(vcpus) = launch.vcpus(&needs.place, answers) else { continue };
            let question = launch.quota_question(&needs.place);
            let (_, sum) = required.entry(question).or_insert_with(|| (launch.quota, Required::default()));
            sum.pools.push(&needs.name);
            sum.vcpus = sum.vcpus.saturating_add(vcpus);
        }
    }
    let messages = required.iter().filter_map(|(question, (quota, required))| {
        let Some(Answer::Quota { value, used }) = answers.get(question) else { return None };
        (value - used < required.vcpus).then(|| message(&question.place().region, *quota, *value, required))
    });
    let messages: Vec<String> = messages.collect();
    (!messages.is_empty()).then(|| messages.join("; "))
}

fn message(region: &str, quota: VcpuQuota, value: i64, required: &Required<'_>) -> String {
    let VcpuQuota { code, name } = quota;
    let Required { pools, vcpus } = required;
    format!(
        "new instances of {} require at least {vcpus} vCPUs in {region}, but the quota {code} ({name}) of {value} vCPUs has \
         fewer left: request a higher quota, or reduce replicas or maxSurge",
        listed(pools)
    )
}

#[cfg(test)]
mod tests {
    use capasg_cloud::Place;

    use super::*;
    use crate::gates::aws::{
        Needs,
        launch::Launch,
        testing::{distribution, types},
    };

    fn needs(name: &str, launches: Vec<Launch>) -> Check {
        needs_in("eu-west-1", name, launches)
    }

    fn needs_in(region: &str, name: &str, launches: Vec<Launch>) -> Check {
        let needs = Needs { name: name.to_owned(), region: region.to_owned(), launches, ..Needs::default() };
        needs.at(Place::of_process(region))
    }

    fn answers(all: &[Check], vcpus: &[(&str, i32)], value: i64, used: i64) -> Answers {
        let vcpus: BTreeMap<String, i32> =
            vcpus.iter().map(|(name, vcpus)| ((*name).to_owned(), *vcpus)).collect();
        let questions = all.iter().flat_map(Check::questions).map(|question| {
            let answer = match question {
                Question::Quota { .. } => Answer::Quota { value, used },
                _ => Answer::Vcpus(vcpus.clone()),
            };
            (question, answer)
        });
        questions.collect()
    }

    #[test]
    fn pools_require_the_fewest_vcpus_of_their_types_together() {
        let launch =
            |names: &[&str], instances| Launch::to_create(&types(names), &distribution(0, 100), instances);
        let all = [
            needs("a", launch(&["m7i.xlarge", "m7i.large", "m9.nothing"], 3)),
            needs("b", launch(&["c7i.xlarge"], 2)),
        ];
        let vcpus = [("m7i.large", 2), ("m7i.xlarge", 4), ("c7i.xlarge", 4)];
        let blocks = |value, used| insufficient_quotas(&all, &answers(&all, &vcpus, value, used));
        assert_eq!(blocks(64, 50), None, "14 are required, and 14 are left");
        let message = "new instances of a, b require at least 14 vCPUs in eu-west-1, but the quota L-1216C47A (Running \
                       On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances) of 64 vCPUs has fewer left: request a \
                       higher quota, or reduce replicas or maxSurge";
        assert_eq!(blocks(64, 51).as_deref(), Some(message));
        assert_eq!(blocks(64, 90).as_deref(), Some(message), "what is in use changes nothing");
        // The types of the second pool are not offered.
        assert_eq!(insufficient_quotas(&all, &answers(&all, &vcpus[..2], 6, 0)), None);
        assert!(insufficient_quotas(&all, &answers(&all, &vcpus[..2], 5, 0)).is_some());
    }

    #[test]
    fn what_has_no_answer_does_not_block() {
        let all = [needs("a", Launch::to_create(&types(&["m7i.large"]), &distribution(0, 100), 3))];
        let known = answers(&all, &[("m7i.large", 2)], 0, 0);
        assert!(insufficient_quotas(&all, &known).is_some());
        for question in known.keys() {
            let mut answers = known.clone();
            answers.remove(question);
            assert_eq!(insufficient_quotas(&all, &answers), None, "{question:?}");
        }
    }

    #[test]
    fn each_quota_and_place_is_compared_for_itself() {
        let launches =
            |percentage| Launch::to_create(&types(&["m7i.large"]), &distribution(0, percentage), 4);
        let all = [needs("a", launches(50)), needs_in("eu-central-1", "b", launches(100))];
        let answers = answers(&all, &[("m7i.large", 2)], 7, 0);
        let message = insufficient_quotas(&all, &answers).unwrap();
        assert!(
            message.starts_with("new instances of b require at least 8 vCPUs in eu-central-1"),
            "{message}"
        );
        assert!(!message.contains("eu-west-1") && !message.contains("Spot"), "{message}");
    }
}
