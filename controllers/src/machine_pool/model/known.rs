//! A fact that is read from AWS: whether it was read, and what was found.

use capasg_cloud::CloudError;

/// A resource in AWS, as far as it was read.
#[derive(Debug, Clone)]
pub enum Known<T> {
    /// It was not read, or the read failed with this error.
    Unread(Option<CloudError>),
    /// It does not exist.
    Absent,
    /// It exists.
    Present(T),
}

impl<T> Known<T> {
    /// The result of a read.
    #[must_use]
    pub fn of(read: Result<Option<T>, CloudError>) -> Self {
        match read {
            Ok(Some(found)) => Self::Present(found),
            Ok(None) => Self::Absent,
            Err(error) => Self::Unread(Some(error)),
        }
    }

    /// Whether it was read.
    #[must_use]
    pub fn is_read(&self) -> bool {
        !matches!(self, Self::Unread(_))
    }

    /// The resource, if it exists.
    #[must_use]
    pub fn present(&self) -> Option<&T> {
        match self {
            Self::Present(found) => Some(found),
            Self::Unread(_) | Self::Absent => None,
        }
    }

    /// Why the read failed, if it did.
    #[must_use]
    pub fn error(&self) -> Option<&CloudError> {
        match self {
            Self::Unread(error) => error.as_ref(),
            Self::Absent | Self::Present(_) => None,
        }
    }
}
