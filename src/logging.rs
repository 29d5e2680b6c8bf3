//! Log lines: one JSON object each on standard error, with the spans that name the object and the reconcile.

use std::{io, panic};

use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter,
    fmt::{self, MakeWriter},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use crate::cli::LoggingFormat;

/// The crates whose verbosity a user chooses. Everything else only logs warnings: an SDK that logs requests would put
/// bootstrap data and credentials into the log (rule H8), so no level enables that. Nothing that they log may contain the body
/// of a response: they use `capasg_api::errors`.
const OURS: [&str; 7] = [
    "capasg",
    "capasg_addons",
    "capasg_api",
    "capasg_cloud",
    "capasg_cloud_aws",
    "capasg_controllers",
    "capasg_extensions",
];

/// What logs bodies of responses at the levels that are left: the client of Kubernetes one that it cannot parse, and the other
/// ones errors with the response in them. Our own crates log these errors as well.
const SILENT: [&str; 4] =
    ["kube_client::client=off", "kube_runtime=off", "aws_config=off", "aws_smithy_runtime_api=off"];

/// Starts logging; call once.
pub fn start(format: LoggingFormat, verbosity: u8) {
    subscriber(format, verbosity, io::stderr).init();
    panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        tracing::error!(location, panic = panic.payload_as_str().unwrap_or("unknown"), "a task panicked");
    }));
}

/// What writes the log lines.
fn subscriber<W>(format: LoggingFormat, verbosity: u8, writer: W) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let registry = tracing_subscriber::registry().with(EnvFilter::new(directives(verbosity)));
    match format {
        LoggingFormat::Json => Box::new(
            registry.with(
                fmt::layer()
                    .json()
                    .flatten_event(true)
                    .with_current_span(false)
                    .with_span_list(true)
                    .with_writer(writer),
            ),
        ),
        LoggingFormat::Text => Box::new(registry.with(fmt::layer().with_writer(writer))),
    }
}

/// 0 and 1: the lifecycle of the manager, changes in AWS, warnings and errors; 2 to 4: also minor failures and additional
/// reads; 5 and more: also skipped reads.
fn directives(verbosity: u8) -> String {
    let ours = match verbosity {
        0 | 1 => "info",
        2..=4 => "debug",
        _ => "trace",
    };
    let all = SILENT.iter().fold(String::from("warn"), |all, silent| all + "," + silent);
    OURS.iter().fold(all, |all, target| all + "," + target + "=" + ours)
}

#[cfg(test)]
mod tests;
