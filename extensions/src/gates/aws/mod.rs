//! What pools require of AWS before a step: named resources exist, types are offered, images of the version exist, subnets
//! have free addresses, and quotas suffice. What is not known does not block.

mod checks;
mod images;
mod launch;
mod needs;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod vcpus;

use std::collections::BTreeSet;

pub(crate) use images::missing_images;
pub(crate) use needs::Needs;

use super::Findings;
use crate::{
    lookups::{Lookups, Question, Subject},
    names::events,
};

/// Asks AWS for what pools require, and compares.
pub(crate) async fn compare(lookups: &Lookups, all: &[Needs], findings: &mut Findings) {
    let questions: BTreeSet<Question> = all.iter().flat_map(Needs::questions).collect();
    if questions.is_empty() {
        return;
    }
    let answers = lookups.ask(&questions).await;
    findings.blockers.extend(checks::blockers(all, &answers));
    let unanswered: BTreeSet<Subject> =
        questions.iter().filter(|question| !answers.contains_key(question)).map(Question::subject).collect();
    if !unanswered.is_empty() {
        let names: Vec<&str> = unanswered.into_iter().map(Subject::as_str).collect();
        let message = format!(
            "not checked in AWS, since it does not answer or denies access: {}; the log of the extension has the errors",
            names.join(", ")
        );
        findings.notes.push((events::NOT_CHECKED, message));
    }
}
