//! Errors as one line of text.

use capasg_api::errors::of_request;

/// An error with its causes. A cause that the text before contains already is left out, since many errors of libraries
/// contain the text of their cause. No body of a response of the API server is in it.
pub fn line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let of_client = cause.downcast_ref::<kube::Error>();
        let text = of_client.map_or_else(|| cause.to_string(), of_request);
        if text.is_empty() || line.contains(&text) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(&text);
        if of_client.is_some() {
            break;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use std::io;

    use anyhow::{Context as _, Error};

    use super::*;

    /// As kube words it: each error contains the text of its cause.
    #[derive(Debug, thiserror::Error)]
    #[error("failed to infer config: kubeconfig: (failed to read '/config': {0})")]
    struct Inferred(#[source] io::Error);

    #[test]
    fn a_cause_is_not_repeated() {
        let missing = io::Error::other("No such file or directory (os error 2)");
        let error = Error::new(Inferred(missing)).context("cannot load a kubeconfig");
        assert_eq!(
            line(&error),
            "cannot load a kubeconfig: failed to infer config: kubeconfig: (failed to read '/config': No such file or \
             directory (os error 2))"
        );
    }

    #[test]
    fn other_causes_are_named_in_order() {
        let error = Err::<(), _>(io::Error::other("disk full")).context("cannot write").context("failed");
        assert_eq!(line(&error.unwrap_err()), "failed: cannot write: disk full");
    }
}
