//! Suspended processes.
//!
//! AWS takes a call without process names for all processes, so none is sent for an empty set.

use std::collections::BTreeSet;

use aws_sdk_autoscaling::Client;
use capasg_cloud::{CloudError, Result, WriteReply};

use crate::call::done;

/// `SuspendProcesses`.
pub(crate) async fn suspend(
    client: &Client,
    api: &'static str,
    group: &str,
    processes: &BTreeSet<String>,
) -> Result<WriteReply> {
    let request = client
        .suspend_processes()
        .auto_scaling_group_name(group)
        .set_scaling_processes(Some(named(api, processes)?));
    done(api, request.send()).await
}

/// `ResumeProcesses`.
pub(crate) async fn resume(
    client: &Client,
    api: &'static str,
    group: &str,
    processes: &BTreeSet<String>,
) -> Result<WriteReply> {
    let request = client
        .resume_processes()
        .auto_scaling_group_name(group)
        .set_scaling_processes(Some(named(api, processes)?));
    done(api, request.send()).await
}

fn named(api: &'static str, processes: &BTreeSet<String>) -> Result<Vec<String>> {
    if processes.is_empty() {
        return Err(CloudError::unsendable(
            api,
            "no process is specified, which AWS treats as all processes",
        ));
    }
    Ok(processes.iter().cloned().collect())
}
