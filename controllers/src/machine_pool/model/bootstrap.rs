//! What is known of bootstrap data without keeping them, and why there are none.

use std::fmt;

/// AWS takes at most this many bytes of user data, before base64 (EC2 User Guide, "Run commands at launch").
pub const LIMIT: usize = 16 * 1024;
/// What is known of a Secret's content without keeping the content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BootstrapDigest {
    /// Name of the Secret.
    pub secret: String,
    /// Its resourceVersion when it was read.
    pub version: String,
    /// Hash of the data as the Secret holds them: how they are encoded for AWS makes no new version.
    pub content: String,
    /// Hash of the data with tokens masked; of the Secret's name where a person provides it.
    pub data: String,
    /// Whether the data change by themselves: they hold a bootstrap token, or come from a provider of which that is not
    /// known.
    pub rotates: bool,
    /// Hash of the bootstrap config's spec without discovery; of the Secret's name where a person provides it.
    pub spec: String,
}

/// Why there is no bootstrap data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootstrapProblem {
    /// Nothing names a Secret yet, or the Secret is not there yet (H1).
    Waiting(String),
    /// More than AWS takes (H6).
    TooLarge {
        /// How much it is.
        size: Oversized,
        /// What a person has to shorten.
        source: String,
    },
    /// The API server did not answer.
    Failed(String),
}

/// What bootstrap data are written in: key `format` of their Secret (H1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// cloud-init's, also where nothing is said. cloud-init reads user data compressed by gzip.
    CloudConfig,
    /// Ignition's. On AWS it reads no compressed user data.
    Ignition,
    /// Anything else; whether its reader decompresses is not known.
    Other(String),
}

impl Format {
    /// The format of a Secret whose key `format` holds this.
    #[must_use]
    pub fn named(format: Option<&str>) -> Self {
        match format.map(str::trim) {
            None | Some("" | "cloud-config") => Self::CloudConfig,
            Some("ignition") => Self::Ignition,
            Some(other) => Self::Other(other.to_owned()),
        }
    }
}

/// Bootstrap data that AWS does not take, in words for a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oversized {
    /// Their size, in bytes.
    pub raw: usize,
    /// Their size when compressed, in bytes, if their reader could decompress them.
    pub compressed: Option<usize>,
    /// What they are written in.
    pub format: Format,
}

impl fmt::Display for Oversized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bootstrap data have {} bytes", self.raw)?;
        if let Some(compressed) = self.compressed {
            write!(f, ", {compressed} compressed")?;
        }
        write!(f, "; AWS takes at most {LIMIT}")?;
        match &self.format {
            Format::CloudConfig => Ok(()),
            Format::Ignition => f.write_str(", and Ignition reads no compressed user data"),
            Format::Other(format) => write!(f, ", and data of format {format} are not compressed"),
        }
    }
}
