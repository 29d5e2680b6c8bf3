//! Free TCP ports on the loopback address.

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, TcpListener},
    sync::{Mutex, PoisonError},
};

use anyhow::{Result, bail};

/// The ports we choose from. They lie under the kernel's range for outgoing connections (32768 and up by
/// default), so that no client socket takes one between our look and the server's bind, and under 19000, where
/// the in-memory workload clusters begin (19000 for their debug server, 20000 to 30000 for their API servers).
const RANGE: std::ops::Range<u16> = 10_000..19_000;

static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// A port on 127.0.0.1 that nobody listens on and that this process has not been given before.
///
/// # Errors
/// When every port of the range is taken.
pub fn free() -> Result<u16> {
    let span = RANGE.end - RANGE.start;
    // Processes start their search at different places, so that two of them rarely look at the same port.
    let offset = u16::try_from(std::process::id() * 97 % u32::from(span)).unwrap_or_default();
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    for step in 0..span {
        let port = RANGE.start + (offset + step) % span;
        if !given.contains(&port) && is_free(port) {
            given.insert(port);
            return Ok(port);
        }
    }
    bail!("no free port from {} to {}", RANGE.start, RANGE.end - 1)
}

/// Whether nobody listens on this port.
pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_distinct_and_can_be_bound() {
        let ports: BTreeSet<u16> = (0..50).map(|_| free().unwrap()).collect();
        assert_eq!(ports.len(), 50);
        let _listeners: Vec<_> =
            ports.iter().map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).unwrap()).collect();
    }

    #[test]
    fn a_port_in_use_is_passed_over() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, free().unwrap())).unwrap();
        let used = listener.local_addr().unwrap().port();
        assert!((0..20).all(|_| free().unwrap() != used));
    }
}
