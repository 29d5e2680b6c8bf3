//! In which order things happened: writes to the API server and calls to AWS on one line of time.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::Result;
use capasg_environment::{Environment, Write};
use capasg_fake_aws::{LogEntry, LogFilter};
use chrono::{DateTime, Utc};

/// What terminated the instances of a namespace's pools since a moment, oldest first: one line per event.
pub fn terminations_since(
    environment: &Environment,
    namespace: &str,
    region: &str,
    since: DateTime<Utc>,
) -> Result<String> {
    let mut events: BTreeMap<DateTime<Utc>, Vec<String>> = BTreeMap::new();
    for write in environment.management().api().writes()? {
        if write.at >= since
            && write.namespace == namespace
            && let Some(line) = of_write(&write)
        {
            events.entry(write.at).or_default().push(line);
        }
    }
    for call in environment.cloud().simulator().log(&LogFilter::region(region).mutations()) {
        if let Some(at) = call.wall_time.filter(|at| *at >= since) {
            events.entry(at).or_default().push(of_call(&call));
        }
    }
    let mut text = String::new();
    for (at, lines) in events {
        let seconds = (at - since).as_seconds_f64();
        for line in lines {
            writeln!(text, "{seconds:7.2} s  {line}")?;
        }
    }
    Ok(text)
}

fn of_write(write: &Write) -> Option<String> {
    let who = write.user.rsplit(':').next().unwrap_or_default();
    let deleted = write.verb == "delete" && write.code < 300 && write.subresource.is_empty();
    let kind = match write.resource.as_str() {
        "machines" => "Machine",
        "asgmachines" => "ASGMachine",
        "machinepools" if write.verb == "patch" && write.subresource == "scale" => {
            return Some(format!("{:<38} MachinePool {} scaled", who, write.name));
        }
        _ => return None,
    };
    deleted.then(|| format!("{who:<38} deletes {kind} {}", write.name))
}

fn of_call(call: &LogEntry) -> String {
    let instances = call.instances.join(" ");
    let desired = &call.params["DesiredCapacity"];
    let desired = if desired.is_null() { String::new() } else { format!(" DesiredCapacity {desired}") };
    format!("{:<38} {} {instances}{desired}", "AWS", call.action).trim_end().to_owned()
}
