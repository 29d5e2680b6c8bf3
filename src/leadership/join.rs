//! How a replica takes part in the election of its role, as the flags say.

use std::{fs, sync::Arc};

use anyhow::{Context as _, Result};
use kube::Client;

use super::{Election, KubeLeases, Seat, Timing};
use crate::{cli::LeaderElection, kubernetes};

/// Where a pod finds the name of its own namespace.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The election for the Lease `name`, if there is one, and the seat that it wins.
///
/// # Errors
/// If the namespace of the Lease is not known.
pub fn join(
    flags: &LeaderElection,
    client: &Client,
    name: &'static str,
) -> Result<(Option<Election<KubeLeases>>, Arc<Seat>)> {
    if !flags.leader_elect {
        return Ok((None, Arc::new(Seat::always())));
    }
    let namespace =
        own_namespace(flags).context("--leader-elect requires --leader-election-namespace outside a pod")?;
    let timing = Timing {
        lease_duration: flags.lease_duration,
        renew_deadline: flags.renew_deadline,
        retry_period: flags.retry_period,
    };
    let seat = Arc::new(Seat::vacant());
    let leases = KubeLeases::new(client.clone(), &namespace, name);
    let election = Election::new(leases, namespace, kubernetes::identity(), timing, Arc::clone(&seat));
    Ok((Some(election), seat))
}

/// The namespace of the Lease: the one of the pod unless the flags name one; none outside a pod.
#[must_use]
pub fn own_namespace(flags: &LeaderElection) -> Option<String> {
    flags.election_namespace.clone().or_else(|| {
        let read = fs::read_to_string(OWN_NAMESPACE).ok()?;
        Some(read.trim().to_owned()).filter(|namespace| !namespace.is_empty())
    })
}
