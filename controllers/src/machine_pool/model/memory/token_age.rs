//! Since when the bootstrap data with the current token have existed. For metrics alone: no decision depends on it.

use chrono::{DateTime, Utc};

use crate::machine_pool::model::template_versions::pinned_version;
use crate::machine_pool::model::{BootstrapDigest, Observed};

/// The bootstrap data of a pool, by their hash, and since when this process has known them.
#[derive(Debug, Clone, Default)]
pub struct TokenAge(Option<Known>);

#[derive(Debug, Clone)]
struct Known {
    content: String,
    rotates: bool,
    since: DateTime<Utc>,
}

impl TokenAge {
    /// Records that the bootstrap data were read.
    pub(super) fn observe(&mut self, digest: &BootstrapDigest, now: DateTime<Utc>) {
        let since =
            self.0.take().filter(|known| known.content == digest.content).map_or(now, |known| known.since);
        self.0 = Some(Known { content: digest.content.clone(), rotates: digest.rotates, since });
    }

    /// Since when at least the token has existed that new instances receive; `None` if the data contain none that rotates,
    /// or the launch template version that the group is pinned to is not known.
    ///
    /// It is in the user data of that version, so it is as old as the version, or older: a version that was created for
    /// another reason has the token of the previous one.
    #[must_use]
    pub fn since(&self, observed: &Observed) -> Option<DateTime<Utc>> {
        let known = self.0.as_ref().filter(|known| known.rotates)?;
        let template = observed.template.present()?;
        let version = template.versions.get(&pinned_version(observed)?)?;
        Some(version.created_at.min(known.since))
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::machine_pool::decide::testing::{Stage, now};

    fn digest(content: &str, rotates: bool) -> BootstrapDigest {
        BootstrapDigest { content: content.to_owned(), rotates, ..BootstrapDigest::default() }
    }

    #[test]
    fn a_token_is_as_old_as_the_pinned_version_or_older() {
        // The version was created at `now()`.
        let stage = Stage::new(1);
        let mut age = TokenAge::default();
        assert_eq!(age.since(&stage.observed), None);
        let later = now() + TimeDelta::minutes(3);
        age.observe(&digest("one", true), later);
        assert_eq!(age.since(&stage.observed), Some(now()), "another process created the version");
        age.observe(&digest("one", true), later + TimeDelta::hours(1));
        assert_eq!(age.since(&stage.observed), Some(now()));
        // Another reason creates a version: the token is the same.
        let mut age = TokenAge::default();
        let earlier = now() - TimeDelta::minutes(3);
        age.observe(&digest("one", true), earlier);
        age.observe(&digest("one", true), now());
        assert_eq!(age.since(&stage.observed), Some(earlier));
        age.observe(&digest("two", true), now());
        assert_eq!(age.since(&stage.observed), Some(now()));
    }

    #[test]
    fn data_without_a_token_have_no_age() {
        let mut age = TokenAge::default();
        age.observe(&digest("one", false), now());
        assert_eq!(age.since(&Stage::new(1).observed), None);
    }
}
