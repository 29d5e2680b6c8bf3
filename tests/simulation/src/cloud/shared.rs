//! What the connections to all regions share: credentials, mishaps, and what is on its way.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use capasg_cloud::{CloudError, CredentialSource, Identity, Result};
use capasg_fake_aws::{Call, DEFAULT_ACCOUNT, Scope};
use chrono::{DateTime, Utc};

use crate::{Journal, VirtualClock, journal::Moment, latency::Delays};

/// A request whose sender died or gave it up.
pub(crate) struct Request {
    pub(super) due: DateTime<Utc>,
    pub(super) identity: Arc<Identity>,
    pub(super) call: Call,
}

/// What the connections of all regions share.
pub(crate) struct Shared {
    pub(super) clock: Arc<VirtualClock>,
    pub(super) journal: Arc<Journal>,
    account: Mutex<String>,
    /// The code with which AWS rejects the credentials of an identity.
    rejected: Mutex<BTreeMap<String, String>>,
    pub(super) empty_lists: AtomicU32,
    pub(super) silent: AtomicU32,
    pub(crate) delays: Delays,
    /// Requests that were sent and whose senders do not wait for them any more.
    pub(super) late: Mutex<Vec<Request>>,
    /// Lets others act between two calls of a reconcile.
    meanwhile: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
}

impl Shared {
    pub(crate) fn new(clock: Arc<VirtualClock>, journal: Arc<Journal>, delays: Delays) -> Arc<Self> {
        Arc::new(Self {
            clock,
            journal,
            account: Mutex::new(DEFAULT_ACCOUNT.to_owned()),
            rejected: Mutex::default(),
            empty_lists: AtomicU32::new(0),
            silent: AtomicU32::new(0),
            delays,
            late: Mutex::default(),
            meanwhile: Mutex::default(),
        })
    }

    /// From now on the credentials belong to this account.
    pub(crate) fn set_account(&self, account: &str) {
        account.clone_into(&mut self.account.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// From now on AWS rejects the credentials of an identity with this code, or no longer.
    pub(crate) fn reject(&self, identity: &str, code: Option<&str>) {
        let mut rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        match code {
            Some(code) => rejected.insert(identity.to_owned(), code.to_owned()),
            None => rejected.remove(identity),
        };
    }

    /// Whether AWS rejects the credentials of an identity.
    pub(super) fn is_rejected(&self, identity: &Identity) -> bool {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&identity.name)
    }

    pub(super) fn authenticate(&self, api: &'static str, identity: &Identity) -> Result<()> {
        let rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(code) = rejected.get(&identity.name) else { return Ok(()) };
        self.journal.tell(Moment::Failed { api, is_rejected: true, is_of_spec: false });
        Err(CloudError::answered(api, 403, code, "The security token included in the request is not valid"))
    }

    /// The account of an identity: that of its role or of its access key.
    pub(super) fn account_of(&self, identity: &Identity) -> String {
        match &identity.source {
            CredentialSource::Process => self.account(),
            CredentialSource::Role { role, .. } | CredentialSource::WebIdentity(role) => {
                role.arn.split(':').nth(4).unwrap_or_default().to_owned()
            }
            CredentialSource::Keys { access_key_id, .. } => Scope::of_access_key(access_key_id, "").account,
        }
    }

    pub(crate) fn account(&self) -> String {
        self.account.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// That many of the next listings of groups come back empty although groups exist.
    pub(crate) fn empty_lists(&self, count: u32) {
        self.empty_lists.store(count, Ordering::SeqCst);
    }

    /// That many of the next calls are never answered.
    pub(crate) fn hang(&self, count: u32) {
        self.silent.store(count, Ordering::SeqCst);
    }

    pub(crate) fn set_meanwhile(&self, act: Arc<dyn Fn() + Send + Sync>) {
        *self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner) = Some(act);
    }

    pub(super) fn meanwhile(&self) {
        let act = self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(act) = act {
            act();
        }
    }
}

/// Takes one of a count, if any is left.
pub(super) fn take(counter: &AtomicU32) -> bool {
    counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}
