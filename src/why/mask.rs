//! Takes secrets out of the console output of an instance: what has the form of a secret, and everything that its user data
//! contain.

use std::{collections::BTreeSet, io::Read as _};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::read::GzDecoder;

/// What takes the place of a secret.
const MASKED: &str = "[masked]";
/// A shorter line of the user data is a keyword, not a secret.
const SHORTEST_LINE: usize = 8;
/// A shorter word of the user data is not masked by itself.
const SHORTEST_WORD: usize = 16;
/// The first bytes of a gzip file (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// No user data are larger when they are unpacked.
const LARGEST: u64 = 1 << 20;
/// Files within user data within user data.
const DEPTH: usize = 3;
/// What a secret follows, in lower case.
const LABELS: [&str; 6] = ["token", "password", "passwd", "secret", "certificate-key", "certificatekey"];

/// What has to be taken out.
pub struct Mask {
    /// The lines and words of the user data, the longest first.
    known: Vec<String>,
}

impl Mask {
    /// Masks what these user data contain, as they are, compressed, and in Base64.
    pub fn new(user_data: &[u8]) -> Self {
        let mut known = BTreeSet::new();
        collect(user_data, &mut known, DEPTH);
        let mut known: Vec<String> = known.into_iter().collect();
        known.sort_by_key(|text| std::cmp::Reverse(text.len()));
        Self { known }
    }

    /// The text without secrets, and without control characters that a terminal would follow.
    pub fn apply(&self, text: &str) -> String {
        let mut in_key = false;
        let lines = text.lines().map(|line| {
            let line = without_controls(line);
            let (begins, ends) = (line.contains("-----BEGIN "), line.contains("-----END "));
            let masked = in_key || begins;
            in_key = masked && !ends;
            if masked {
                return MASKED.to_owned();
            }
            let mut line = line;
            for known in &self.known {
                if line.contains(known.as_str()) {
                    line = line.replace(known.as_str(), MASKED);
                }
            }
            words(&line)
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Console output has sequences that move the cursor or change colours.
fn without_controls(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    let mut rest = line.chars().peekable();
    while let Some(one) = rest.next() {
        if one == '\u{1b}' && rest.peek() == Some(&'[') {
            // A control sequence ends with a letter (ECMA-48).
            for part in rest.by_ref().skip(1) {
                if part.is_ascii_alphabetic() {
                    break;
                }
            }
        } else if one == '\t' {
            kept.push(' ');
        } else if !one.is_control() {
            kept.push(one);
        }
    }
    kept
}

fn collect(data: &[u8], known: &mut BTreeSet<String>, depth: usize) {
    if depth == 0 {
        return;
    }
    if data.starts_with(&GZIP) {
        let mut unpacked = Vec::new();
        if GzDecoder::new(data).take(LARGEST).read_to_end(&mut unpacked).is_ok() {
            collect(&unpacked, known, depth - 1);
        }
        return;
    }
    for line in String::from_utf8_lossy(data).lines().map(str::trim) {
        // A step of a cloud-config or of a script is shown without its place in the list.
        for line in [line, line.trim_start_matches(['-', ' ', '\'', '"'])] {
            if line.len() >= SHORTEST_LINE {
                known.insert(line.trim_end_matches(['\'', '"']).to_owned());
            }
        }
        for word in line.split(|one: char| !is_of_word(one)).filter(|word| word.len() >= SHORTEST_WORD) {
            if let Ok(decoded) = STANDARD.decode(word) {
                collect(&decoded, known, depth - 1);
            }
            // A value, without its name; names of files have slashes.
            let values = word.split('=').filter(|value| value.len() >= SHORTEST_WORD && !value.contains('/'));
            let random = values.filter(|value| value.contains(|one: char| one.is_ascii_digit()));
            known.extend(random.map(str::to_owned));
        }
    }
}

fn is_of_word(one: char) -> bool {
    one.is_ascii_alphanumeric() || matches!(one, '+' | '/' | '=' | '_' | '-')
}

/// The line without words that have the form of a secret, or that follow the name of one.
fn words(line: &str) -> String {
    let mut masked = String::with_capacity(line.len());
    let mut after_label = false;
    for part in
        line.split_inclusive([' ', '"', '\'', ',', '=', ':', '(', ')', '[', ']', '{', '}', '<', '>', '@'])
    {
        let word = part.trim_end_matches(|one: char| one == '=' || !is_of_word(one) && one != '.');
        let end = &part[word.len()..];
        if word.is_empty() {
            // Only what separates a name from its value.
            after_label &= end.chars().all(|one| " \"'=:".contains(one));
        } else {
            let is_label = LABELS.iter().any(|label| word.to_ascii_lowercase().ends_with(label));
            let is_secret = has_secret_form(word) || after_label && !is_label && word.len() >= 4;
            masked.push_str(if is_secret { MASKED } else { word });
            after_label = is_label && end.chars().all(|one| " \"'=:".contains(one));
        }
        masked.push_str(end);
    }
    masked
}

/// Whether a word has the form of a bootstrap token, a certificate key, a JSON web token, a key of an AWS user, or other
/// random data.
fn has_secret_form(word: &str) -> bool {
    let is_lower = |text: &str| text.bytes().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit());
    // [a-z0-9]{6}.[a-z0-9]{16} (kubeadm), also within a longer word.
    let is_token = word.match_indices('.').any(|(at, _)| {
        let (before, after) = (word.get(at.wrapping_sub(6)..at), word.get(at + 1..at + 17));
        before.zip(after).is_some_and(|(before, after)| is_lower(before) && is_lower(after))
    });
    // Certificate keys of kubeadm have 64 digits, and an access key ID of AWS 20 characters.
    let is_hex = word.split(|one: char| !one.is_ascii_hexdigit()).any(|run| run.len() >= 40);
    let is_access_key = (word.starts_with("AKIA") || word.starts_with("ASIA")) && word.len() >= 20;
    // Names of hosts and files are not in mixed case.
    let is_mixed = |run: &str| {
        let has = |is: fn(&u8) -> bool| run.bytes().any(|one| is(&one));
        has(u8::is_ascii_digit) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)
    };
    let is_random = word.split(|one| !is_of_word(one)).any(|run| run.len() >= 40 && is_mixed(run));
    is_token || is_hex || is_access_key || is_random || word.starts_with("eyJ")
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn masked(user_data: &[u8], text: &str) -> String {
        Mask::new(user_data).apply(text)
    }

    #[test]
    fn what_has_the_form_of_a_secret_is_masked() {
        let hash = "a1".repeat(32);
        for secret in [
            "abcdef.0123456789abcdef",
            hash.as_str(),
            "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln",
            "AKIAIOSFODNN7EXAMPLE",
            "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        ] {
            for text in [
                format!("kubeadm join 10.0.0.1:6443 --token {secret} --v=5"),
                format!("--token={secret}"),
                format!("discovery: \"{secret}\", next"),
                format!("https://user:{secret}@example.com/path"),
                secret.to_owned(),
            ] {
                let shown = masked(b"", &text);
                assert!(!shown.contains(secret) && shown.contains(MASKED), "{text} -> {shown}");
            }
        }
        let shown = masked(b"", "password: hunter2 user: me --certificate-key=abc12 ok");
        assert_eq!(shown, "password: [masked] user: me --certificate-key=[masked] ok");
        assert_eq!(
            masked(b"", "x\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\ny"),
            "x\n[masked]\n[masked]\n[masked]\ny"
        );
    }

    #[test]
    fn what_says_why_a_node_does_not_join_is_kept() {
        for text in [
            "[   12.345678] cloud-init[1234]: error execution phase preflight: couldn't validate the identity of the API Server",
            "Get \"https://prod-apiserver-1234567890.eu-west-1.elb.amazonaws.com:6443/api\": dial tcp 10.0.0.1:6443: i/o timeout",
            "x509: certificate has expired or is not yet valid: current time 2026-01-01T00:00:00Z is before 2026-03-01T00:00:00Z",
            "could not find a JWS signature in the cluster-info ConfigMap for token ID",
            "kubelet: failed to pull image registry.k8s.io/pause:3.10: not found",
            "ip-10-0-0-1 login:",
        ] {
            assert_eq!(masked(b"#cloud-config\n", text), text);
        }
    }

    #[test]
    fn user_data_are_masked_in_each_encoding() {
        let secret = "runcmd-secret-value-17";
        let inner = STANDARD.encode(format!("key={secret}\nanother line of it"));
        let plain = format!(
            "#cloud-config\nwrite_files:\n- path: /etc/x\n  content: {inner}\nruncmd:\n  - \"echo my own words\"\n"
        );
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        packer.write_all(plain.as_bytes()).unwrap();
        for data in [plain.clone().into_bytes(), packer.finish().unwrap()] {
            let shown = masked(
                &data,
                &format!("+ echo my own words\nx {secret} y\nanother line of it\n{inner}\nkubelet started\n"),
            );
            assert_eq!(shown, "+ [masked]\nx [masked] y\n[masked]\n[masked]\nkubelet started");
        }
    }

    #[test]
    fn nothing_is_left_that_a_terminal_would_follow() {
        assert_eq!(masked(b"", "\u{1b}[31mred\u{1b}[0m\u{7}\tok\r\nnext"), "red ok\nnext");
    }
}
