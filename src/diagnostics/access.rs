//! Who may read metrics: which user the API server authenticates by the token, and whether that user may. As in the other
//! providers: a `TokenReview`, then a `SubjectAccessReview` for `get` on the non-resource URL `/metrics`.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use crate::rate::Rate;

/// How long an answer is kept: a scraper reads every few seconds.
const BELIEVED: Duration = Duration::from_mins(1);
/// How long a token is reviewed again without a limit after it was allowed: it is the one of a scraper.
const TRUSTED: Duration = Duration::from_hours(1);
/// Tokens whose answers are kept; more would be an attempt to guess tokens.
const REMEMBERED: usize = 64;
/// Reviews of tokens that are not trusted: at once, and each second.
const REVIEWS: (u16, u16) = (20, 2);

/// What is known of a token's bearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// May read.
    Allowed,
    /// Is known and may not.
    Refused,
    /// Not a user that the API server knows.
    Unknown,
    /// Not known, since too many tokens are reviewed.
    TooMany,
}

/// The two requests to the API server.
#[async_trait]
pub trait Reviews: Send + Sync + 'static {
    /// The user of this token; `None` if it is not valid.
    async fn bearer(&self, token: &str) -> Result<Option<UserInfo>, kube::Error>;

    /// Whether this user may `get` `/metrics`.
    async fn may_read(&self, user: &UserInfo) -> Result<bool, kube::Error>;
}

/// Reviews tokens at the API server and keeps its answers for a minute. Strangers cause a limited rate of reviews, which does
/// not apply to scrapers. Tokens are kept as hashes only.
pub struct Access<R> {
    reviews: R,
    known: Mutex<BTreeMap<[u8; 32], (Instant, Verdict)>>,
    rate: Rate,
}

impl<R: Reviews> Access<R> {
    /// Has no answers yet.
    #[must_use]
    pub fn new(reviews: R) -> Self {
        let (burst, per_second) = REVIEWS;
        Self { reviews, known: Mutex::default(), rate: Rate::new(burst, per_second) }
    }

    /// What the bearer of this token may.
    ///
    /// # Errors
    /// If the API server does not answer.
    pub async fn of(&self, token: &str) -> Result<Verdict, kube::Error> {
        let key: [u8; 32] = Sha256::digest(token).into();
        let now = Instant::now();
        {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let is_trusted = |verdict: Verdict| verdict == Verdict::Allowed;
            known.retain(|_, (asked, verdict)| {
                now < *asked + if is_trusted(*verdict) { TRUSTED } else { BELIEVED }
            });
            match known.get(&key) {
                Some((asked, verdict)) if now < *asked + BELIEVED => return Ok(*verdict),
                None if !self.rate.take() => return Ok(Verdict::TooMany),
                _ => {}
            }
        }
        let verdict = match self.reviews.bearer(token).await? {
            None => Verdict::Unknown,
            Some(user) if self.reviews.may_read(&user).await? => Verdict::Allowed,
            Some(_) => Verdict::Refused,
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if verdict == Verdict::Allowed && known.len() >= REMEMBERED {
            // One that may not read gives way.
            let other = known.iter().find(|(_, (_, verdict))| *verdict != Verdict::Allowed);
            if let Some(other) = other.map(|(key, _)| *key) {
                known.remove(&other);
            }
        }
        if known.len() < REMEMBERED || known.contains_key(&key) {
            known.insert(key, (now, verdict));
        }
        Ok(verdict)
    }
}

/// The API server.
pub struct KubeReviews(pub Client);

#[async_trait]
impl Reviews for KubeReviews {
    async fn bearer(&self, token: &str) -> Result<Option<UserInfo>, kube::Error> {
        let spec = TokenReviewSpec { token: Some(token.to_owned()), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let answer = Api::<TokenReview>::all(self.0.clone()).create(&PostParams::default(), &review).await?;
        let status = answer.status.unwrap_or_default();
        Ok(status.user.filter(|_| status.authenticated == Some(true)))
    }

    async fn may_read(&self, user: &UserInfo) -> Result<bool, kube::Error> {
        let spec = SubjectAccessReviewSpec {
            user: user.username.clone(),
            groups: user.groups.clone(),
            uid: user.uid.clone(),
            extra: user.extra.clone(),
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some("/metrics".to_owned()),
                verb: Some("get".to_owned()),
            }),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let api = Api::<SubjectAccessReview>::all(self.0.clone());
        let answer = api.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::advance;

    use super::*;

    #[derive(Default)]
    struct Asked(AtomicUsize);

    #[async_trait]
    impl Reviews for Asked {
        async fn bearer(&self, token: &str) -> Result<Option<UserInfo>, kube::Error> {
            self.0.fetch_add(1, Ordering::SeqCst);
            let user = UserInfo { username: Some(token.to_owned()), ..UserInfo::default() };
            Ok((token != "nobody").then_some(user))
        }

        async fn may_read(&self, user: &UserInfo) -> Result<bool, kube::Error> {
            Ok(user.username.as_deref() == Some("prometheus"))
        }
    }

    // Rules: N4
    #[tokio::test(start_paused = true)]
    async fn answers_are_believed_for_a_minute_and_not_without_bound() {
        let access = Access::new(Asked::default());
        for (token, verdict) in
            [("prometheus", Verdict::Allowed), ("somebody", Verdict::Refused), ("nobody", Verdict::Unknown)]
        {
            for _ in 0..3 {
                assert_eq!(access.of(token).await.unwrap(), verdict, "{token}");
            }
        }
        assert_eq!(access.reviews.0.load(Ordering::SeqCst), 3);
        advance(BELIEVED).await;
        assert_eq!(access.of("prometheus").await.unwrap(), Verdict::Allowed);
        assert_eq!(access.reviews.0.load(Ordering::SeqCst), 4);
        for number in 0..200 {
            access.of(&format!("guess-{number}")).await.unwrap();
            advance(Duration::from_millis(500)).await;
        }
        assert_eq!(access.known.lock().unwrap().len(), REMEMBERED);
    }

    // Rules: N4
    #[tokio::test(start_paused = true)]
    async fn strangers_cause_few_reviews_and_do_not_keep_a_scraper_out() {
        let access = Access::new(Asked::default());
        assert_eq!(access.of("prometheus").await.unwrap(), Verdict::Allowed);
        let (burst, per_second) = REVIEWS;
        for minute in 1..=10 {
            for number in 0..1000 {
                access.of(&format!("nobody-{minute}-{number}")).await.unwrap();
            }
            advance(BELIEVED).await;
            assert_eq!(access.of("stranger").await.unwrap(), Verdict::Refused, "the rate has recovered");
            assert_eq!(access.of("prometheus").await.unwrap(), Verdict::Allowed);
        }
        let most = 10 * (usize::from(burst) + 2) + usize::from(per_second) + 2;
        let reviews = access.reviews.0.load(Ordering::SeqCst);
        assert!(reviews <= most, "{reviews} reviews");
        for number in 0..1000 {
            access.of(&format!("other-{number}")).await.unwrap();
        }
        assert_eq!(access.of("new").await.unwrap(), Verdict::TooMany);
    }
}
