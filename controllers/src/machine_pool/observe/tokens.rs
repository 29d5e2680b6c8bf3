//! Masks bootstrap tokens in bootstrap data, so that a rotation does not change their hash (H2). Pure.
//!
//! The data may encode what contains the token. Ignition has files as data URLs: percent-encoded, or base64 of gzip.
//! cloud-init reads files in base64 as well, and data that is compressed as a whole.

use std::io::Read as _;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use flate2::read::MultiGzDecoder;

use crate::machine_pool::observe::user_data::GZIP;

/// The text that replaces a token. The hashes of existing launch template versions are made with it.
const MASK: &[u8] = b"<token>";
/// The length of a kubeadm bootstrap token: `[a-z0-9]{6}.[a-z0-9]{16}`.
const TOKEN_LENGTH: usize = 23;
/// The position of the dot in a token.
const DOT: usize = 6;
/// A token in base64 is at least this long.
const SHORTEST_ENCODED: usize = TOKEN_LENGTH * 4 / 3;
/// How many encodings may be nested: base64 and gzip of a file, in data that is encoded in the same way.
const NESTED: u32 = 4;
/// At most this much of compressed data is read, so that a few bytes do not occupy all memory.
const LARGEST: u64 = 4 << 20;
/// At most this much is decompressed of data and of all files in it, so that a few bytes do not occupy a processor: user
/// data have at most 16 KiB.
const MOST_DECOMPRESSED: u64 = 2 * LARGEST;
/// What a file counts at least: opening it takes time as well.
const MIN_COUNTED: u64 = 1 << 10;

/// Replaces each kubeadm bootstrap token by a fixed text, and what encodes one by its decoded and masked content.
///
/// Text that looks like a token counts where it is a word of its own. `known` is the token that the bootstrap config
/// names, which counts wherever it is.
#[must_use]
pub fn mask_tokens(data: &[u8], known: Option<&str>) -> Vec<u8> {
    let known = known.map(str::as_bytes).filter(|token| is_token(token));
    let mut masking = Masking { known, left: MOST_DECOMPRESSED };
    masking.masked(data, NESTED).unwrap_or_else(|| data.to_vec())
}

/// The masking of one document.
struct Masking<'a> {
    /// The token that the bootstrap config names.
    known: Option<&'a [u8]>,
    /// How many bytes may still be decompressed.
    left: u64,
}

impl Masking<'_> {
    /// The masked data; `None` if they hold no token.
    fn masked(&mut self, data: &[u8], nested: u32) -> Option<Vec<u8>> {
        self.masked_file(data, nested).or_else(|| self.masked_text(data, nested))
    }

    fn masked_file(&mut self, data: &[u8], nested: u32) -> Option<Vec<u8>> {
        let nested = nested.checked_sub(1)?;
        let content = self.decompress(data)?;
        self.masked(&content, nested)
    }

    fn masked_text(&mut self, data: &[u8], nested: u32) -> Option<Vec<u8>> {
        let mut text = Vec::with_capacity(data.len());
        let mut found = false;
        let mut at = 0;
        while at < data.len() {
            if token_at(data, at, self.known) {
                text.extend_from_slice(MASK);
                at += TOKEN_LENGTH;
                found = true;
                continue;
            }
            let encoded = encoded_at(data, at);
            if let Some(decoded) = encoded.and_then(|encoded| self.masked_base64(encoded, nested)) {
                text.extend_from_slice(&decoded);
                at += encoded.map_or(1, <[u8]>::len);
                found = true;
                continue;
            }
            text.push(data[at]);
            at += 1;
        }
        found.then_some(text)
    }

    fn masked_base64(&mut self, encoded: &[u8], nested: u32) -> Option<Vec<u8>> {
        let nested = nested.checked_sub(1)?;
        self.masked(&STANDARD_NO_PAD.decode(encoded).ok()?, nested)
    }

    /// The content of a gzip file, as far as it is read.
    fn decompress(&mut self, data: &[u8]) -> Option<Vec<u8>> {
        if !data.starts_with(&GZIP) || self.left == 0 {
            return None;
        }
        let mut content = Vec::new();
        let read = MultiGzDecoder::new(data).take(LARGEST.min(self.left)).read_to_end(&mut content);
        // What is read before an error was decompressed as well; a file counts at least its header.
        let used = u64::try_from(content.len()).unwrap_or(u64::MAX).max(MIN_COUNTED);
        self.left = self.left.saturating_sub(used);
        read.ok()?;
        Some(content)
    }
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_token(text: &[u8]) -> bool {
    let fits = |(at, byte): (usize, &u8)| if at == DOT { *byte == b'.' } else { is_token_byte(*byte) };
    text.len() == TOKEN_LENGTH && text.iter().enumerate().all(fits)
}

fn token_at(data: &[u8], at: usize, known: Option<&[u8]>) -> bool {
    let Some(window) = data.get(at..at + TOKEN_LENGTH) else { return false };
    let is_word =
        || begins_word(data, at) && data.get(at + TOKEN_LENGTH).is_none_or(|byte| !is_token_byte(*byte));
    known == Some(window) || (is_token(window) && is_word())
}

/// Whether a word may begin here. In percent-encoded text it does after an encoded byte, such as `%20`.
fn begins_word(data: &[u8], at: usize) -> bool {
    let is_percent_encoded = |byte: &[u8]| byte[0] == b'%' && byte[1..].iter().all(u8::is_ascii_hexdigit);
    at == 0
        || !is_token_byte(data[at - 1])
        || at.checked_sub(3).is_some_and(|start| is_percent_encoded(&data[start..at]))
}

/// The base64 text that begins here, if it is long enough for a token.
fn encoded_at(data: &[u8], at: usize) -> Option<&[u8]> {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    if at > 0 && is_base64(data[at - 1]) {
        return None;
    }
    let rest = &data[at..];
    let length = rest.iter().position(|byte| !is_base64(*byte)).unwrap_or(rest.len());
    (length >= SHORTEST_ENCODED).then(|| &rest[..length])
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use base64::engine::general_purpose::STANDARD;
    use flate2::{Compression, write::GzEncoder};

    use super::*;

    const ONE: &str = "abcdef.0123456789abcdef";
    const TWO: &str = "zzzzzz.fedcba9876543210";

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    /// Whether data with either token are masked to the same text, without either token.
    fn rotates_unnoticed(render: impl Fn(&str) -> Vec<u8>) -> bool {
        let one = mask_tokens(&render(ONE), None);
        one == mask_tokens(&render(TWO), None) && one != render(ONE)
    }

    #[test]
    fn tokens_are_masked_at_any_position() {
        let clean = |token: &str| format!("token: {token}\n--token={token} \"{token}\"").into_bytes();
        assert!(rotates_unnoticed(clean));
        assert!(!rotates_unnoticed(|token| format!("x{token}").into_bytes()), "a longer word is no token");
        assert!(!rotates_unnoticed(|token| format!("{token}0").into_bytes()));
    }

    /// The hashes of data that earlier releases masked are those of earlier releases: an upgrade changes none.
    #[test]
    fn plain_data_are_masked_as_earlier_releases_masked_them() {
        let data = format!(
            "#cloud-config\nca: {}\n- kubeadm join --token {ONE}\n- %{ONE} x{ONE} {ONE}z\n",
            "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5eg=="
        );
        let masked = format!(
            "#cloud-config\nca: {}\n- kubeadm join --token <token>\n- %<token> x{ONE} {ONE}z\n",
            "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5eg=="
        );
        for known in [None, Some(""), Some("not a token"), Some(TWO)] {
            assert_eq!(mask_tokens(data.as_bytes(), known), masked.as_bytes());
        }
        assert_eq!(mask_tokens(b"no token", Some(ONE)), b"no token");
    }

    /// The kubeadm bootstrap provider renders Ignition with percent-encoded files.
    // Rules: H2
    #[test]
    fn tokens_in_percent_encoded_data_urls_are_masked() {
        let ignition = |token: &str| {
            format!("{{\"source\":\"data:,%0A%20%20token%3A%20{token}%0A%20%20unsafe%3A%20true\"}}")
                .into_bytes()
        };
        assert!(rotates_unnoticed(ignition));
    }

    // Rules: H2
    #[test]
    fn tokens_in_base64_and_gzip_are_masked() {
        let join = |token: &str| format!("discovery:\n  bootstrapToken:\n    token: {token}\n").into_bytes();
        let ignition =
            |file: &[u8]| format!("{{\"source\":\"data:;base64,{}\"}}", STANDARD.encode(file)).into_bytes();
        assert!(rotates_unnoticed(|token| ignition(&join(token))));
        assert!(rotates_unnoticed(|token| ignition(&gzip(&join(token)))));
        assert!(rotates_unnoticed(|token| gzip(&ignition(&gzip(&join(token))))));
        let without = ignition(&gzip(b"no token in this file, which is long enough to be decoded"));
        assert_eq!(mask_tokens(&without, Some(ONE)), without, "what holds no token stays as it is");
    }

    // Rules: H2
    #[test]
    fn the_token_of_the_bootstrap_config_is_masked_wherever_it_is() {
        let data = format!("\\n{ONE}\\n{TWO}");
        assert_eq!(mask_tokens(data.as_bytes(), Some(ONE)), format!("\\n<token>\\n{TWO}").into_bytes());
    }

    #[test]
    fn odd_data_are_not_decoded_without_end() {
        let bomb = gzip(&vec![b'0'; 64 << 20]);
        assert_eq!(mask_tokens(&bomb, None), bomb);
        // Every file is such a bomb, in a file that is compressed itself.
        let file = STANDARD.encode(gzip(&vec![b' '; 4 << 20]));
        let files = gzip(format!("{file} ").repeat(4_000).as_bytes());
        let mut masking = Masking { known: None, left: MOST_DECOMPRESSED };
        assert_eq!(masking.masked(&files, NESTED), None);
        assert_eq!(masking.left, 0);
        let cut = &gzip(format!("token: {ONE}").as_bytes())[..20];
        assert_eq!(mask_tokens(cut, None), cut);
        let nested = (0..20).fold(ONE.as_bytes().to_vec(), |data, _| STANDARD.encode(data).into_bytes());
        assert_eq!(mask_tokens(&nested, None), nested);
    }
}
