//! Errors of the Kubernetes client in words that logs, events and conditions may contain: without the body of a response.
//!
//! The client's own texts contain it: all of it if a response is no `Status`, and values of it if it cannot be parsed.

use kube::{core::Status, runtime::watcher};

/// What the client gives as the reason of an error whose message is the body of the response.
const NOT_PARSED: &str = "Failed to parse error data";

/// Why a request failed.
#[must_use]
pub fn of_request(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => of_status(status),
        kube::Error::SerdeError(error) => of_parser(error),
        kube::Error::FromUtf8(_) => "the response of the API server is not UTF-8".to_owned(),
        // Of a connection: the certificate is named by the last cause alone.
        kube::Error::Service(_) | kube::Error::HyperError(_) => with_causes(error),
        other => other.to_string(),
    }
}

fn with_causes(error: &kube::Error) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

/// Why a watch failed.
#[must_use]
pub fn of_watch(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(error) => format!("cannot list: {}", of_request(error)),
        watcher::Error::WatchStartFailed(error) => format!("cannot start the watch: {}", of_request(error)),
        watcher::Error::WatchFailed(error) => of_request(error),
        watcher::Error::WatchError(status) => of_status(status),
        watcher::Error::NoResourceVersion => error.to_string(),
    }
}

/// Why a response or an object in it cannot be parsed.
#[must_use]
pub fn of_parser(error: &serde_json::Error) -> String {
    format!("the response of the API server is not as expected: {}", without_values(&error.to_string()))
}

fn of_status(status: &Status) -> String {
    if status.reason == NOT_PARSED {
        return format!("the API server responded with {}", status.code);
    }
    format!("the API server responded with {} {}: {}", status.code, status.reason, status.message)
}

/// The message of a parser without the values that it quotes. What was expected, and where, stays.
#[must_use]
pub fn without_values(message: &str) -> String {
    // A value may contain the words that follow it, and what was expected follows the last of them.
    let (found, expected) = message.rfind(", expected ").map_or((message, ""), |at| message.split_at(at));
    let names_a_field = ["missing field `", "duplicate field `"].iter().any(|start| found.starts_with(start));
    let quoted = if names_a_field { None } else { found.find(['"', '`', '\'']) };
    match quoted {
        Some(at) => format!("{}{expected}", found[..at].trim_end()),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Known {
        A(u8),
    }

    #[test]
    fn no_value_of_a_body_is_in_the_text() {
        for body in [
            "\"s3cret, expected `a` \\\" or `b`\"",
            "{\"a\": \"s3cret\"}",
            "{\"a\": 4711}",
            "{\"s3cret\": 1}",
            "s3cret",
        ] {
            let text = of_parser(&serde_json::from_str::<Known>(body).unwrap_err());
            assert!(!text.contains("s3cret") && !text.contains("4711"), "{text}");
            assert!(text.contains(" at line 1 column "), "{text}");
        }
        let Known::A(one) = serde_json::from_str("{\"a\": 1}").unwrap();
        assert_eq!(one, 1);
        let field = "missing field `spec` at line 1 column 2";
        assert_eq!(without_values(field), field);
    }

    #[test]
    fn a_response_that_is_no_status_is_told_by_its_code() {
        let error = |reason: &str| {
            let status = Status::failure("s3cret", reason).with_code(502);
            of_request(&kube::Error::Api(status.boxed()))
        };
        assert_eq!(error(NOT_PARSED), "the API server responded with 502");
        assert_eq!(error("Forbidden"), "the API server responded with 502 Forbidden: s3cret");
        let bytes = String::from_utf8(vec![0xff]).unwrap_err();
        assert!(of_request(&kube::Error::FromUtf8(bytes)).ends_with("is not UTF-8"));
    }
}
