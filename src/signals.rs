//! SIGTERM and SIGINT stop the process gracefully; a second one stops it at once, as without a handler.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::info;

/// A token that is cancelled by the first SIGTERM or SIGINT.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn shutdown() -> io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        for first in [true, false] {
            let name = tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            };
            if first {
                info!(signal = name, "stopping");
                stop.cancel();
            } else {
                info!(signal = name, "stopping at once");
                std::process::exit(1);
            }
        }
    });
    Ok(token)
}
