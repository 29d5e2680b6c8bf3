//! What pools require of AWS before a step: named resources exist, types are offered, images of the version exist, subnets
//! have free addresses, and quotas suffice. What is not known does not block.

mod asked;
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

pub(crate) use asked::Asked;
pub(crate) use images::missing_images;
pub(crate) use needs::{Check, Needs};

use super::{Blocker, Findings};
use crate::{
    blocks::Cause,
    lookups::{Lookups, Question, Subject},
    names::events,
};

/// Asks AWS for what pools require, and compares.
pub(crate) async fn compare(lookups: &Lookups, all: Vec<Asked>, findings: &mut Findings) {
    let (all, denied) = asked::placed(lookups, all).await;
    if let Some(denied) = denied {
        findings.notes.push((events::NOT_CHECKED, format!("not checked in AWS: {denied}")));
    }
    let questions: BTreeSet<Question> = all.iter().flat_map(Check::questions).collect();
    if questions.is_empty() {
        return;
    }
    let answers = lookups.ask(&questions).await;
    findings.blockers.extend(checks::blockers(&all, &answers));
    let unanswered: BTreeSet<&Question> =
        questions.iter().filter(|question| !answers.contains_key(question)).collect();
    let queued = lookups.queued(unanswered.iter().copied());
    if let Some(subjects) = subjects(queued.iter().copied()) {
        let message = format!("what pools require is being read from AWS: {subjects}");
        findings.blockers.push(Blocker { cause: Cause::NotReadable, message });
    }
    if let Some(subjects) = subjects(unanswered.difference(&queued).copied()) {
        let message = format!(
            "not checked in AWS, since it does not answer or denies access: {subjects}; the log of the extension has the \
             errors"
        );
        findings.notes.push((events::NOT_CHECKED, message));
    }
}

/// What questions are about, in words; `None` without questions.
fn subjects<'a>(questions: impl Iterator<Item = &'a Question>) -> Option<String> {
    let subjects: BTreeSet<Subject> = questions.map(Question::subject).collect();
    let names: Vec<&str> = subjects.into_iter().map(Subject::as_str).collect();
    (!names.is_empty()).then(|| names.join(", "))
}
