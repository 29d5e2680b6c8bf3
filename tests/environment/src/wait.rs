//! Waiting for a condition, with a deadline, and saying afterwards what was last seen.

use std::{fmt::Debug, future::Future, time::Duration};

use anyhow::{Result, anyhow, bail};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout_at};

/// How long to wait between two looks. A look at a local API server costs about a millisecond, a list several.
const PAUSE: Duration = Duration::from_millis(200);

/// What one look found: the value that ends the wait, or in words what stands in its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look<T> {
    /// The condition holds.
    Done(T),
    /// It does not yet; the text goes into the error if it never does.
    Not(String),
}

impl<T> Look<T> {
    /// `Done` when there is a value, else `Not` with `why`.
    pub fn from_option(value: Option<T>, why: impl Into<String>) -> Self {
        value.map_or_else(|| Self::Not(why.into()), Self::Done)
    }
}

impl Look<()> {
    /// `Done` when `holds`, else `Not` with `why`.
    pub fn when(holds: bool, why: impl Into<String>) -> Self {
        if holds { Self::Done(()) } else { Self::Not(why.into()) }
    }
}

/// Looks again and again until the condition holds, for at most `deadline`.
///
/// An error of a look is no end: servers restart and objects appear late. It is shown if the deadline passes.
///
/// # Errors
/// When the deadline passes; the error names `what` and the last look.
pub async fn wait_until<T, F, Fut>(deadline: Duration, what: &str, mut look: F) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<Look<T>>>,
{
    let end = Instant::now() + deadline;
    let mut last = String::from("no look was answered");
    loop {
        match timeout_at(end, look()).await {
            Ok(Ok(Look::Done(value))) => return Ok(value),
            Ok(Ok(Look::Not(why))) => last = why,
            Ok(Err(error)) => last = format!("{error:#}"),
            Err(_) => bail!("not within {deadline:?}: {what}; the last look was cut off, before it: {last}"),
        }
        if Instant::now() + PAUSE >= end {
            return Err(anyhow!("not within {deadline:?}: {what}; last: {last}"));
        }
        sleep(PAUSE).await;
    }
}

/// Looks at one object until `look` is satisfied with it.
///
/// # Errors
/// When the deadline passes; the error holds what `look` last said, or that the object is absent.
pub async fn wait_for_object<K, T, F>(api: &Api<K>, name: &str, deadline: Duration, mut look: F) -> Result<T>
where
    K: Resource + Clone + DeserializeOwned + Debug,
    F: FnMut(&K) -> Look<T>,
{
    let what = format!("{} {name}", api.resource_url());
    let look = &mut look;
    let end = Instant::now() + deadline;
    let mut last = String::from("no look was answered");
    while Instant::now() < end {
        last = match timeout_at(end, api.get_opt(name)).await {
            Ok(Ok(Some(object))) => match look(&object) {
                Look::Done(value) => return Ok(value),
                Look::Not(why) => why,
            },
            Ok(Ok(None)) => String::from("it is absent"),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("the last look was cut off, before it: {last}"),
        };
        sleep(PAUSE).await;
    }
    bail!("not within {deadline:?}: {what}; last: {last}")
}

/// Waits until the object is gone.
///
/// # Errors
/// When it is still there at the deadline.
pub async fn wait_gone<K>(api: &Api<K>, name: &str, deadline: Duration) -> Result<()>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    wait_until(deadline, &format!("{} {name} gone", api.resource_url()), || async {
        Ok(Look::when(api.get_opt(name).await?.is_none(), "it is still there"))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ends_as_soon_as_the_condition_holds() {
        let mut looks = 0;
        let seen = wait_until(Duration::from_mins(1), "three looks", || {
            looks += 1;
            let now = looks;
            async move { Ok(Look::from_option((now == 3).then_some(now), "too early")) }
        })
        .await
        .unwrap();
        assert_eq!(seen, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn the_error_names_the_last_thing_seen() {
        let error = wait_until::<(), _, _>(Duration::from_secs(1), "rain", || async {
            Ok(Look::Not("the sky is blue".to_owned()))
        })
        .await
        .unwrap_err();
        assert_eq!(error.to_string(), "not within 1s: rain; last: the sky is blue");
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_does_not_end_the_wait() {
        let mut looks = 0;
        wait_until(Duration::from_mins(1), "a server", || {
            looks += 1;
            let now = looks;
            async move { Ok(if now < 5 { bail!("connection refused") } else { Look::Done(()) }) }
        })
        .await
        .unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_hangs_is_cut_off() {
        let error = wait_until::<(), _, _>(Duration::from_secs(1), "an answer", std::future::pending)
            .await
            .unwrap_err();
        assert!(error.to_string().contains("cut off"), "{error}");
    }
}
