//! Listening addresses as Go writes them: `:9440` is every interface, `0` is none.

use std::{fmt, io, str::FromStr};

use anyhow::{Context as _, Result};
use thiserror::Error;
use tokio::net::TcpListener;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Nowhere: the server is off.
    Off,
    /// On a host (empty: every interface) and a port.
    On {
        /// Name or address; empty is every interface.
        host: String,
        /// TCP port; 0 lets the system choose.
        port: u16,
    },
}

/// Why an address was rejected.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{0}` is not an address such as :9440, localhost:9440 or 0")]
pub struct InvalidAddress(String);

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "0" {
            return Ok(Self::Off);
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(|| InvalidAddress(text.to_owned()))?;
        let port = port.parse().map_err(|_| InvalidAddress(text.to_owned()))?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        Ok(Self::On { host: host.to_owned(), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => out.write_str("0"),
            Self::On { host, port } if host.contains(':') => write!(out, "[{host}]:{port}"),
            Self::On { host, port } => write!(out, "{host}:{port}"),
        }
    }
}

impl Address {
    /// Opens the listener; `None` when the server is off.
    ///
    /// # Errors
    /// If the address is in use or not of this host.
    pub async fn listen(&self) -> Result<Option<TcpListener>> {
        self.bind().await.with_context(|| format!("cannot listen on {self}"))
    }

    async fn bind(&self) -> io::Result<Option<TcpListener>> {
        match self {
            Self::Off => Ok(None),
            Self::On { host, port } if host.is_empty() => match TcpListener::bind(("::", *port)).await {
                Ok(listener) => Ok(Some(listener)),
                // A node without IPv6.
                Err(_) => TcpListener::bind(("0.0.0.0", *port)).await.map(Some),
            },
            Self::On { host, port } => TcpListener::bind((host.as_str(), *port)).await.map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_the_forms_of_go() {
        for text in ["0", ":9440", "localhost:8443", "127.0.0.1:0", "[::1]:8443"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in ["", "9440", "localhost", ":http", ":70000"] {
            assert_eq!(text.parse::<Address>(), Err(InvalidAddress(text.to_owned())));
        }
    }

    #[tokio::test]
    async fn every_interface_includes_loopback() {
        let every = Address::On { host: String::new(), port: 0 }.bind().await.unwrap().unwrap();
        let port = every.local_addr().unwrap().port();
        assert!(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok());
        assert!(Address::Off.bind().await.unwrap().is_none());
    }
}
