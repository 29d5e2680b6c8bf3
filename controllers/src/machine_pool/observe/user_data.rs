//! Encodes bootstrap data as EC2 user data: as they are, or compressed if AWS would reject them otherwise (H6).

use std::io::Write as _;

use flate2::{Compression, GzBuilder};

use crate::machine_pool::model::{Format, Oversized, USER_DATA_LIMIT};

/// The first bytes of a gzip file (RFC 1952).
pub(super) const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The value for an unknown operating system (RFC 1952), so that the result is the same on every machine.
const NO_SYSTEM: u8 = 255;

/// The user data for some bootstrap data (H6).
///
/// The same data always become the same bytes, so that a repeated call to AWS is the same call.
///
/// # Errors
/// They are larger than AWS accepts even if compressed.
pub fn encode(data: Vec<u8>, format: &Format) -> Result<Vec<u8>, Oversized> {
    if data.len() <= USER_DATA_LIMIT {
        return Ok(data);
    }
    let oversized =
        |compressed| Oversized { raw: data.len(), compressed, format: format.clone(), is_windows: false };
    if *format != Format::CloudConfig || data.starts_with(&GZIP) {
        return Err(oversized(None));
    }
    let compressed = gzip(&data);
    if compressed.len() > USER_DATA_LIMIT { Err(oversized(Some(compressed.len()))) } else { Ok(compressed) }
}

/// Compresses data without a file name or a time.
fn gzip(data: &[u8]) -> Vec<u8> {
    let encoder = GzBuilder::new().mtime(0).operating_system(NO_SYSTEM);
    let mut encoder = encoder.write(Vec::new(), Compression::best());
    // Writing into memory does not fail.
    encoder.write_all(data).and_then(|()| encoder.finish()).unwrap_or_else(|_| data.to_vec())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    const INIT: Format = Format::CloudConfig;

    fn unpack(data: &[u8]) -> Vec<u8> {
        let mut unpacked = Vec::new();
        GzDecoder::new(data).read_to_end(&mut unpacked).unwrap();
        unpacked
    }

    /// Bytes that do not compress.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn h6_the_limit_is_the_last_size_that_is_sent_as_it_is() {
        let data = vec![b'a'; USER_DATA_LIMIT];
        assert_eq!(encode(data.clone(), &INIT), Ok(data));
        let more = vec![b'a'; USER_DATA_LIMIT + 1];
        let sent = encode(more.clone(), &INIT).unwrap();
        assert!(sent.len() < USER_DATA_LIMIT && sent.starts_with(&GZIP));
        assert_eq!(unpack(&sent), more);
    }

    #[test]
    fn h6_what_does_not_compress_is_reported_with_both_sizes() {
        let message = encode(noise(20_000), &INIT).unwrap_err().to_string();
        assert!(message.starts_with("bootstrap data has 20000 bytes, 2"), "{message}");
        assert!(message.ends_with(" compressed; AWS accepts at most 16384"), "{message}");
    }

    #[test]
    fn h6_ignition_is_never_compressed() {
        for (name, why) in [
            ("ignition", "Ignition does not support compressed user data"),
            ("talos", "the controller does not compress data of format talos"),
        ] {
            let format = Format::of(b"{}", Some(name));
            let data = vec![b'{'; USER_DATA_LIMIT];
            assert_eq!(encode(data.clone(), &format), Ok(data));
            let message = encode(vec![b'{'; USER_DATA_LIMIT + 1], &format).unwrap_err().to_string();
            assert_eq!(
                message,
                format!("bootstrap data has 16385 bytes; AWS accepts at most 16384, and {why}")
            );
        }
    }

    #[test]
    fn h1_no_format_is_cloud_init_s() {
        for name in [None, Some(""), Some("cloud-config"), Some("cloud-config\n")] {
            assert_eq!(Format::of(b"#cloud-config", name), INIT);
        }
        assert_eq!(Format::of(b"", Some("ignition")), Format::Ignition);
    }

    #[test]
    fn h1_an_ignition_config_without_a_format_is_ignition() {
        let config = br#"{"ignition": {"version": "3.4.0"}, "storage": {}}"#;
        for name in [None, Some("")] {
            assert_eq!(Format::of(config, name), Format::Ignition);
        }
        assert_eq!(Format::of(config, Some("cloud-config")), INIT, "what a Secret says holds");
        for other in [&b"{\"runcmd\": []}"[..], b"ignition: {}", b"{\"ignition\": {", b"[1]"] {
            assert_eq!(Format::of(other, None), INIT, "{other:?}");
        }
    }

    #[test]
    fn h6_data_that_are_compressed_already_are_not_compressed_again() {
        let small = gzip(b"data");
        assert_eq!(encode(small.clone(), &INIT), Ok(small));
        let mut large = noise(USER_DATA_LIMIT + 1);
        large[..2].copy_from_slice(&GZIP);
        assert!(encode(large, &INIT).is_err());
    }

    #[test]
    fn h6_compressed_data_hold_no_time_name_or_system() {
        assert_eq!(gzip(b"data")[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255]);
    }

    #[test]
    fn h6_w4_what_is_sent_fits_and_is_the_same_each_time() {
        for length in [
            0,
            1,
            USER_DATA_LIMIT - 1,
            USER_DATA_LIMIT,
            USER_DATA_LIMIT + 1,
            2 * USER_DATA_LIMIT,
            20 * USER_DATA_LIMIT,
        ] {
            let lines = (0..).flat_map(|line: u32| format!("- path: /etc/file-{}\n", line % 97).into_bytes());
            let data: Vec<u8> = lines.take(length).collect();
            let sent = encode(data.clone(), &INIT).unwrap();
            assert!(sent.len() <= USER_DATA_LIMIT, "{length}");
            assert_eq!(sent, encode(data.clone(), &INIT).unwrap());
            assert_eq!(if length > USER_DATA_LIMIT { unpack(&sent) } else { sent }, data);
        }
    }
}
