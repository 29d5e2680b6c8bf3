//! With which identity the check of each pool is made, and which checks are not made since operators do not allow them.

use std::collections::BTreeMap;

use capasg_api::{
    ASGMachinePool,
    identity::{ClusterIdentity, IdentityRequest},
    names::listed,
};

use tokio::time::{Instant, timeout_at};

use super::{Check, Needs};
use crate::lookups::{BUDGET, Lookups, NotAllowed};

/// What a pool requires, and what determines its identity.
pub(crate) struct Asked {
    pub(crate) needs: Needs,
    /// `Err` if it is not known what does.
    pub(crate) request: Result<IdentityRequest, NotAllowed>,
}

impl Asked {
    /// What a pool requires, which uses the identity of its Cluster unless it names one.
    pub(crate) fn of(
        pool: &ASGMachinePool,
        needs: Needs,
        cluster: &Result<ClusterIdentity, NotAllowed>,
    ) -> Self {
        Self { needs, request: cluster.clone().map(|cluster| IdentityRequest::of(pool, cluster)) }
    }

    /// Where the check is made; nothing is read if there is nothing to check.
    async fn placed(self, lookups: &Lookups, until: Instant) -> Option<Result<Check, (String, NotAllowed)>> {
        let Self { needs, request } = self;
        if needs.is_empty() {
            return None;
        }
        let place = match request {
            Ok(request) => {
                let place = timeout_at(until, lookups.place(&request, &needs.region)).await;
                place.unwrap_or_else(|_| Err(NotAllowed("its identity was not read in time".to_owned())))
            }
            Err(why) => Err(why),
        };
        Some(match place {
            Ok(place) => Ok(needs.at(place)),
            Err(why) => Err((needs.name, why)),
        })
    }
}

/// The checks that are made, and in words which ones are not.
pub(super) async fn placed(lookups: &Lookups, all: Vec<Asked>) -> (Vec<Check>, Option<String>) {
    let (mut checks, mut denied) = (Vec::new(), BTreeMap::<NotAllowed, Vec<String>>::new());
    let until = Instant::now() + BUDGET;
    for asked in all {
        match asked.placed(lookups, until).await {
            Some(Ok(check)) => checks.push(check),
            Some(Err((name, why))) => denied.entry(why).or_default().push(name),
            None => {}
        }
    }
    let messages = denied.into_iter().map(|(NotAllowed(why), names)| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        format!("{}: {why}", listed(&names))
    });
    let messages: Vec<String> = messages.collect();
    (checks, (!messages.is_empty()).then(|| messages.join("; ")))
}
