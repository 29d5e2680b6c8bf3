//! Errors of the client as those of the Kubernetes port.

use capasg_api::errors;
use kube::core::Status;

use crate::kubernetes::KubeError;

/// The port's error for one of the client.
pub(super) fn port_error(what: String, error: &kube::Error) -> KubeError {
    match error {
        kube::Error::Api(status) if status.is_not_found() => KubeError::NotFound { what },
        kube::Error::Api(status) if status.is_conflict() || is_of_another_uid(status) => {
            KubeError::Conflict { what }
        }
        kube::Error::Api(status) if status.is_forbidden() => {
            KubeError::Forbidden { what, message: errors::of_request(error) }
        }
        kube::Error::Api(status) if matches!(status.code, 400 | 422) => {
            KubeError::Rejected { what, message: errors::of_request(error) }
        }
        other => KubeError::Other { what, message: errors::of_request(other) },
    }
}

/// Whether a patch with the uid that was read met another object of that name: the API server answers 422 to it, since
/// `metadata.uid` cannot be changed (`ValidateObjectMetaUpdate` of apimachinery), and 409 only to a resourceVersion.
fn is_of_another_uid(status: &Status) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 422 && causes.any(|cause| cause.field == "metadata.uid")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_of_another_object_of_that_name_is_a_conflict() {
        let answer = |field: &str| {
            let cause = json!({"reason": "FieldValueInvalid", "message": "is immutable", "field": field});
            let status = json!({"code": 422, "reason": "Invalid", "details": {"causes": [cause]}});
            let status = serde_json::from_value(status).unwrap();
            port_error("patching".to_owned(), &kube::Error::Api(status)).reason()
        };
        assert_eq!(answer("metadata.uid"), "KubernetesConflict");
        assert_eq!(answer("spec.replicas"), "KubernetesError");
    }
}
