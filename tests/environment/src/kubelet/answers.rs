//! What an error of the API server says.

/// Whether the in-memory API said no, which is all that can be learnt from it: the bodies of its errors are no
/// `Status`, so that the code too is lost. Where the reason matters, a list is asked instead.
pub(super) fn is_unreadable(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 0)
}

pub(super) fn is_absent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

pub(super) fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}
