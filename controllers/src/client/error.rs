//! Errors of the client as those of the Kubernetes port.

use crate::kubernetes::KubeError;

/// The port's error for one of the client.
pub(super) fn port_error(what: String, error: &kube::Error) -> KubeError {
    match error {
        kube::Error::Api(status) if status.is_not_found() => KubeError::NotFound { what },
        kube::Error::Api(status) if status.is_conflict() => KubeError::Conflict { what },
        other => KubeError::Other { what, message: other.to_string() },
    }
}
