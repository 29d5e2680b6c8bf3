//! Which offered versions have no image for a pool, for plans of upgrades.

use std::collections::{BTreeMap, BTreeSet};

use capasg_api::{ASGMachinePool, identity::ClusterIdentity};

use super::{Asked, Check, Needs, asked::placed};
use crate::{
    lookups::{Answer, Lookups, NotAllowed, Question},
    version::Version,
};

/// The versions for which the image of a pool is known to be missing; `None` while images are being read.
pub(crate) async fn missing_images(
    lookups: &Lookups,
    pools: &[ASGMachinePool],
    cluster: &Result<ClusterIdentity, NotAllowed>,
    versions: &[Version],
) -> Option<BTreeSet<Version>> {
    let mut asked: BTreeMap<&Version, BTreeSet<Question>> = BTreeMap::new();
    for version in versions {
        let text = version.to_string();
        let needs = |pool| Needs::images_of(pool, std::iter::once(text.as_str()));
        let all = pools.iter().map(|pool| Asked::of(pool, needs(pool), cluster)).collect();
        // Before the upgrade begins, the hooks that wait for images report which pools are not checked.
        let (checks, _) = placed(lookups, all).await;
        asked.insert(version, checks.iter().flat_map(Check::questions).collect());
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
