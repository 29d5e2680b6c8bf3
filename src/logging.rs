//! Log lines: one JSON object each on standard error, with the spans that name the object and the reconcile.

use std::{io, panic};

use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use crate::cli::LoggingFormat;

/// The crates whose verbosity a user chooses. Everything else only logs warnings: an SDK that logs requests would put
/// bootstrap data and credentials into the log (rule H8), so no level enables that.
const OURS: [&str; 7] = [
    "capasg",
    "capasg_addons",
    "capasg_api",
    "capasg_cloud",
    "capasg_cloud_aws",
    "capasg_controllers",
    "capasg_extensions",
];

/// Starts logging; call once.
pub fn start(format: LoggingFormat, verbosity: u8) {
    let registry = tracing_subscriber::registry().with(EnvFilter::new(directives(verbosity)));
    match format {
        LoggingFormat::Json => registry
            .with(
                fmt::layer()
                    .json()
                    .flatten_event(true)
                    .with_current_span(false)
                    .with_span_list(true)
                    .with_writer(io::stderr),
            )
            .init(),
        LoggingFormat::Text => registry.with(fmt::layer().with_writer(io::stderr)).init(),
    }
    panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        tracing::error!(location, panic = panic.payload_as_str().unwrap_or("unknown"), "a task panicked");
    }));
}

/// 0 and 1: the lifecycle of the manager, changes in AWS, warnings and errors; 2 to 4: also minor failures and additional
/// reads; 5 and more: also skipped reads.
fn directives(verbosity: u8) -> String {
    let ours = match verbosity {
        0 | 1 => "info",
        2..=4 => "debug",
        _ => "trace",
    };
    OURS.iter().fold(String::from("warn"), |all, target| all + "," + target + "=" + ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Rules: H8
    #[test]
    fn no_verbosity_opens_the_logs_of_libraries() {
        for verbosity in [0, 1, 2, 4, 5, 10, u8::MAX] {
            let text = directives(verbosity);
            let filter = text.parse::<EnvFilter>().unwrap();
            assert!(filter.max_level_hint().unwrap() >= tracing::level_filters::LevelFilter::INFO, "{text}");
            for directive in text.split(',').skip(1) {
                assert!(directive.starts_with("capasg"), "{directive}");
            }
            assert!(text.starts_with("warn,"), "{text}");
        }
        assert!(directives(2).contains("capasg_controllers=debug"));
        assert!(directives(5).contains("capasg_cloud=trace"));
    }
}
