//! The archive of a chart that users store in an object, instead of a repository.

use std::fmt::{self, Write as _};

use sha2::{Digest as _, Sha256};

/// How many bytes of the digest are kept: twice as many digits fit into a label.
const DIGEST: usize = 16;

/// A packaged chart, as `helm package` creates it. It may be from a Secret, so that `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct Archive(pub Vec<u8>);

impl Archive {
    /// A digest of the content: 32 hexadecimal digits of its SHA-256.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hex = String::with_capacity(2 * DIGEST);
        for byte in &Sha256::digest(&self.0)[..DIGEST] {
            // Writing to a String does not fail.
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Archive({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_a_digest_and_is_not_printed() {
        let archive = Archive(b"s3cret".to_vec());
        assert_eq!(archive.digest().len(), 32);
        assert_ne!(archive.digest(), Archive(b"other".to_vec()).digest());
        assert_eq!(format!("{archive:?}"), "Archive(6 bytes)");
    }
}
