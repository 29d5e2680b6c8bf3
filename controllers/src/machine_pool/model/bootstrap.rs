//! Digests of bootstrap data, which is not kept in memory, and why there is no bootstrap data.

use std::fmt;

/// AWS accepts at most this many bytes of user data, before base64 (EC2 User Guide, "Run commands at launch").
pub const LIMIT: usize = 16 * 1024;

/// The hashes of a Secret's content, which itself is not kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BootstrapDigest {
    /// Name of the Secret.
    pub secret: String,
    /// Its resourceVersion when it was read.
    pub version: String,
    /// Hash of the data as the Secret holds it: another encoding for AWS does not create a new version.
    pub content: String,
    /// Hash of the data with tokens masked; of the Secret's name if a user provides the Secret.
    pub data: String,
    /// Whether the data changes by itself: the bootstrap config names a bootstrap token, the data holds one, or it
    /// comes from a provider that may put one there.
    pub rotates: bool,
    /// Hash of the bootstrap config's spec without discovery; of the Secret's name if a user provides the Secret.
    pub spec: String,
    /// Why an image that boots Windows cannot use the data.
    pub on_windows: Option<BootstrapProblem>,
}

/// Why there is no bootstrap data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootstrapProblem {
    /// The MachinePool names no Secret yet, or the Secret does not exist yet (H1).
    Waiting(String),
    /// It is larger than AWS accepts (H6).
    TooLarge {
        /// Its size.
        size: Oversized,
        /// What a user has to shorten.
        source: String,
    },
    /// It is compressed, and the image boots Windows, on which nothing decompresses user data.
    Compressed {
        /// What a user has to store uncompressed.
        source: String,
    },
    /// The API server did not answer.
    Failed(String),
}

/// The format of bootstrap data: key `format` of its Secret (H1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// The format of cloud-init, which is the default. cloud-init reads user data compressed by gzip.
    CloudConfig,
    /// The format of Ignition. On AWS it reads no compressed user data.
    Ignition,
    /// Another format; whether its reader decompresses is not known.
    Other(String),
}

impl Format {
    /// The format of a Secret with this data, whose key `format` holds this. Data without a format is that of cloud-init,
    /// unless it is an Ignition config, a JSON object with this member.
    #[must_use]
    pub fn of(data: &[u8], format: Option<&str>) -> Self {
        match format.map(str::trim) {
            None | Some("") if is_ignition(data) => Self::Ignition,
            None | Some("" | "cloud-config") => Self::CloudConfig,
            Some("ignition") => Self::Ignition,
            Some(other) => Self::Other(other.to_owned()),
        }
    }
}

/// Whether data is a JSON object with the member `ignition`.
fn is_ignition(data: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Config {
        #[serde(rename = "ignition")]
        _ignition: serde::de::IgnoredAny,
    }
    data.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<Config>(data).is_ok()
}

/// Bootstrap data that is larger than AWS accepts, as a condition describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oversized {
    /// Its size, in bytes.
    pub raw: usize,
    /// Its size when compressed, in bytes, if its reader could decompress it.
    pub compressed: Option<usize>,
    /// Its format.
    pub format: Format,
    /// Whether the image boots Windows, on which nothing decompresses user data.
    pub is_windows: bool,
}

impl fmt::Display for Oversized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bootstrap data has {} bytes", self.raw)?;
        if let Some(compressed) = self.compressed {
            write!(f, ", {compressed} compressed")?;
        }
        write!(f, "; AWS accepts at most {LIMIT}")?;
        if self.is_windows {
            return f.write_str(", and Windows does not support compressed user data");
        }
        match &self.format {
            Format::CloudConfig => Ok(()),
            Format::Ignition => f.write_str(", and Ignition does not support compressed user data"),
            Format::Other(format) => {
                write!(f, ", and the controller does not compress data of format {format}")
            }
        }
    }
}
