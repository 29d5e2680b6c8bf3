//! Which offered versions have no image for a pool, for plans of upgrades.

use std::collections::{BTreeMap, BTreeSet};

use capasg_api::ASGMachinePool;

use super::Needs;
use crate::{
    lookups::{Answer, Lookups, Question},
    version::Version,
};

/// The versions for which the image of a pool is known to be missing; `None` while images are being read.
pub(crate) async fn missing_images(
    lookups: &Lookups,
    pools: &[ASGMachinePool],
    versions: &[Version],
) -> Option<BTreeSet<Version>> {
    let mut asked: BTreeMap<&Version, BTreeSet<Question>> = BTreeMap::new();
    for version in versions {
        let text = version.to_string();
        let needs = pools.iter().map(|pool| Needs::images_of(pool, std::iter::once(text.as_str())));
        asked.insert(version, needs.flat_map(|needs| needs.questions()).collect());
    }
    let all = asked.values().flatten().cloned().collect();
    let answers = lookups.ask(&all).await;
    if !lookups.queued(all.iter()).is_empty() {
        return None;
    }
    let is_missing = |question: &Question| answers.get(question) == Some(&Answer::Image(false));
    let missing = asked.into_iter().filter(|(_, questions)| questions.iter().any(is_missing));
    Some(missing.map(|(version, _)| version.clone()).collect())
}
