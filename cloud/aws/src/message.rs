//! AWS's messages in a form that can be reported: without what differs between two answers to the same mistake.
//!
//! A message goes into a condition, and a condition that changes with every attempt would wake everything that
//! watches it; so request ids and the encoded details of a rejected authorization are removed. Both are logged.

/// What introduces the details of EC2's `UnauthorizedOperation`, readable only through STS.
const ENCODED_DETAILS: &str = "encoded authorization failure message";
/// How services introduce a request id, in lower case.
const REQUEST_ID: [&str; 3] = ["request id", "requestid", "request-id"];

/// The message without request ids and encoded authorization details.
pub(crate) fn stable(message: &str) -> String {
    let mut text = message.trim().to_owned();
    for label in REQUEST_ID.into_iter().chain([ENCODED_DETAILS]) {
        while let Some(shorter) = without_labelled(&text, label) {
            text = shorter;
        }
    }
    text
}

/// The encoded details of a rejected authorization, as the message contains them. They name the policy that denies the
/// call, also one of the organization, and only those who may call STS `DecodeAuthorizationMessage` can read them.
pub(crate) fn encoded_details(message: &str) -> Option<&str> {
    // Lower-casing ASCII keeps byte positions.
    let start = message.to_ascii_lowercase().find(ENCODED_DETAILS)?;
    let value = message.get(start + ENCODED_DETAILS.len()..)?.trim_start_matches([':', '=', ' ']);
    value.split_whitespace().next()
}

/// The message with a secret that AWS may have echoed replaced by what it is.
pub(crate) fn without_secret(message: &str, secret: &str, name: &str) -> String {
    if secret.is_empty() { message.to_owned() } else { message.replace(secret, name) }
}

/// Takes out the first `label: value` and the separators that become pointless; `None` if there is none.
fn without_labelled(text: &str, label: &str) -> Option<String> {
    // Lower-casing ASCII keeps byte positions.
    let lower = text.to_ascii_lowercase();
    let (before, value) = lower.match_indices(label).find_map(|(start, _)| {
        let after = text.get(start + label.len()..)?.trim_start();
        Some((text.get(..start)?, after.strip_prefix([':', '='])?.trim_start()))
    })?;
    let is_end = |c: char| c.is_whitespace() || matches!(c, ';' | ',' | ')' | ']');
    let after = value.get(value.find(is_end).unwrap_or(value.len())..)?;
    let before = before.trim_end_matches([' ', ';', ',']);
    let joined = match (before.strip_suffix('('), after.strip_prefix(')')) {
        (Some(before), Some(after)) => format!("{}{after}", before.trim_end()),
        _ => format!("{before}{after}"),
    };
    Some(joined.trim().to_owned())
}
