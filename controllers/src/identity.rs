//! The statuses of ASGIdentities: whether AWS accepts the credentials, and of which account they are. Nothing depends on
//! them: each pool reports the same of its own calls.

use std::{sync::Arc, time::Duration};

use capasg_api::{
    ASGIdentity,
    conditions::{self, Finding, READY, Status},
    fit,
    reasons::identity_ready,
};
use capasg_cloud::{CloudError, CredentialSource, ErrorClass, Identity, Inventory, Place, Role};
use kube::ResourceExt as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    Context, ObjectKey,
    access::{Refusal, identity_of},
};

/// How often the identities are checked. AWS is asked only for those that no pool uses.
pub const INTERVAL: Duration = Duration::from_secs(30);

/// Checks the identities every [`INTERVAL`] until `shutdown`, and wakes the pools whose identity has other credentials now. A
/// manager of one `namespace` alone checks those that the namespace may use: another manager may see the others differently.
pub async fn run(
    context: Arc<Context>,
    namespace: Option<String>,
    wakes: mpsc::UnboundedSender<ObjectKey>,
    shutdown: CancellationToken,
) {
    while shutdown.run_until_cancelled(tokio::time::sleep(INTERVAL)).await.is_some() {
        for pool in check(&context, namespace.as_deref()).await {
            // The receiver exists as long as the controllers run.
            let _ = wakes.send(pool);
        }
    }
}

/// Writes the statuses that changed. Returns the pools whose identity has other credentials than they use: nothing tells
/// them that a Secret changed.
pub async fn check(context: &Context, namespace: Option<&str>) -> Vec<ObjectKey> {
    let mut changed = Vec::new();
    let is_ours = |identity: &Arc<ASGIdentity>| {
        namespace.is_none_or(|namespace| {
            identity.allows(namespace, context.kubernetes.namespace_labels(namespace).as_ref())
        })
    };
    for identity in context.kubernetes.identities().into_iter().filter(is_ours) {
        match report(context, &identity).await {
            Ok(pools) => changed.extend(pools),
            Err(error) => {
                let name = identity.name_any();
                tracing::warn!(%error, identity = name, "failed to report the state of an ASGIdentity");
            }
        }
    }
    changed
}

async fn report(context: &Context, identity: &ASGIdentity) -> crate::kubernetes::Result<Vec<ObjectKey>> {
    let resolved =
        identity_of(context.kubernetes.as_ref(), &context.access, context.clock.as_ref(), identity).await?;
    let mut changed = Vec::new();
    let state = match resolved {
        Err(refusal) => Err(refusal),
        Ok(resolved) => {
            changed = context.pools_with_others_than(&resolved);
            account(context, &Arc::new(resolved)).await
        }
    };
    let before = identity.status.clone().unwrap_or_default();
    let generation = identity.metadata.generation.unwrap_or_default();
    let mut status = before.clone();
    status.observed_generation = generation;
    let finding = match state {
        Ok(Some(account)) => {
            status.account = Some(account);
            Finding::plain(READY, true, identity_ready::IDENTITY_READY)
        }
        // What was known stays: AWS throttles, or cannot be reached.
        Ok(None) if conditions::get(&before.conditions, READY).is_some() => return Ok(changed),
        Ok(None) => {
            let message = "the credentials are checked once a pool uses them";
            Finding::new(READY, Status::Unknown, identity_ready::NOT_CHECKED, message)
        }
        Err(Refusal { reason, message }) => Finding::new(READY, Status::False, reason, message),
    };
    conditions::set(&mut status.conditions, finding, generation, context.clock.now());
    if let Some(status) = fit::changed::<ASGIdentity>(status, Some(&before)) {
        context.kubernetes.report_identity(&identity.name_any(), &status).await?;
    }
    Ok(changed)
}

/// The account of the credentials; unknown while AWS does not respond.
async fn account(context: &Context, identity: &Arc<Identity>) -> Result<Option<String>, Refusal> {
    let open = context.inventories.open();
    let in_use =
        open.iter().find(|(place, inventory)| place.identity == *identity && inventory.is_registered());
    let inventory = if let Some((_, inventory)) = in_use {
        // What the pools meet is newer than the account, which is kept.
        inventory.reachable().or_else(|error| denied(&error).map_or(Ok(()), Err))?;
        Arc::clone(inventory)
    } else {
        let Some(region) = region_of(&identity.source, &open) else { return Ok(None) };
        // Nothing is to be received for pools that do not exist: others may read the same queue.
        let unused = Identity { event_queue: None, ..Identity::clone(identity) };
        context.inventories.inventory(&Place { identity: Arc::new(unused), region })
    };
    match inventory.account().await {
        Ok(account) => Ok(Some(account)),
        Err(error) => denied(&error).map_or(Ok(None), Err),
    }
}

fn denied(error: &CloudError) -> Option<Refusal> {
    (error.class == ErrorClass::Denied)
        .then(|| Refusal { reason: identity_ready::ACCESS_DENIED, message: error.to_string() })
}

/// A Region in which credentials can be checked: one of the partition of the role, or one that pools use.
fn region_of(source: &CredentialSource, open: &[(Place, Arc<Inventory>)]) -> Option<String> {
    let region = match source {
        CredentialSource::Role { role: Role { arn, .. }, .. }
        | CredentialSource::WebIdentity(Role { arn, .. }) => match arn.split(':').nth(1) {
            Some("aws-cn") => "cn-north-1",
            Some("aws-us-gov") => "us-gov-west-1",
            _ => "us-east-1",
        },
        CredentialSource::Process | CredentialSource::Keys { .. } => &open.first()?.0.region,
    };
    Some(region.to_owned())
}
