//! Errors of a reconcile: what fails in the management cluster. Failures of a workload cluster are conditions.

use crate::values::ValuesError;

/// Why a reconcile failed. It is repeated.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// An object could not be read.
    #[error("cannot read {what}: {}", described(.source))]
    Read {
        /// What.
        what: &'static str,
        /// The cause.
        source: kube::Error,
    },
    /// An object could not be written.
    #[error("cannot write {what}: {}", described(.source))]
    Write {
        /// What.
        what: &'static str,
        /// The cause.
        source: kube::Error,
    },
    /// Another replica may lead by now: no operation on a release begins.
    #[error("this replica does not hold the Lease; the next leader continues")]
    NotLeading,
    /// The values could not be read.
    #[error(transparent)]
    Values(#[from] ValuesError),
}

impl ReconcileError {
    /// Whether the role of the manager does not allow a read.
    pub(super) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Read { source: kube::Error::Api(status), .. } if status.is_forbidden())
    }

    /// Whether the API server rejects the request, and not only for now.
    pub(super) fn is_lasting(&self) -> bool {
        let (Self::Read { source, .. } | Self::Write { source, .. }) = self else { return false };
        let kube::Error::Api(status) = source else { return false };
        // A conflict, a time-out, a limit of requests and a restart end by themselves; a webhook that fails does not (500).
        (400..=500).contains(&status.code) && ![408, 409, 429].contains(&status.code)
    }

    /// The reason, for metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Read { .. } => "ReadFailed",
            Self::Write { source: kube::Error::Api(status), .. } if status.is_conflict() => "Conflict",
            Self::Write { .. } => "WriteFailed",
            Self::NotLeading => "NotLeading",
            Self::Values(_) => "ValuesFailed",
        }
    }
}

/// A cause for logs, without messages of the API server or of parsers: they may contain values of the object.
fn described(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            let fields: Vec<&str> =
                causes.map(|cause| cause.field.as_str()).filter(|field| !field.is_empty()).collect();
            let of = if fields.is_empty() { String::new() } else { format!(" ({})", fields.join(", ")) };
            format!("the API server responded with {} {}{of}", status.code, status.reason)
        }
        kube::Error::SerdeError(_) => "the response of the API server is not as expected".to_owned(),
        kube::Error::Auth(_) => "no credentials for the API server; check the kubeconfig".to_owned(),
        _ => "the API server did not respond".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rejected_write_names_fields_and_no_values() {
        let status: Status = serde_json::from_value(json!({
            "status": "Failure", "code": 422, "reason": "Invalid", "message": "spec.values: Invalid value: \"s3cret\"",
            "details": {"causes": [{"field": "spec.values", "message": "Invalid value: \"s3cret\"", "reason": "Invalid"}]},
        }))
        .unwrap();
        let source = kube::Error::Api(Box::new(status));
        let error = ReconcileError::Write { what: "a HelmReleaseProxy", source };
        assert_eq!(error.reason(), "WriteFailed");
        assert_eq!(
            error.to_string(),
            "cannot write a HelmReleaseProxy: the API server responded with 422 Invalid (spec.values)"
        );
    }
}
