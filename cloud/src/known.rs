//! What is known of something that may not exist.

/// What is known of something that may not exist.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Known<T> {
    /// It was not read yet.
    #[default]
    Unknown,
    /// It was read, and does not exist.
    Absent,
    /// It was read, and is this.
    Present(T),
}

impl<T> Known<T> {
    /// What was read, if it exists.
    #[must_use]
    pub fn present(&self) -> Option<&T> {
        match self {
            Self::Present(value) => Some(value),
            Self::Unknown | Self::Absent => None,
        }
    }

    /// Whether it was not read yet.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    /// Whether it was read, and does not exist.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

/// The answer to a read: `None` is absence.
impl<T> From<Option<T>> for Known<T> {
    fn from(read: Option<T>) -> Self {
        read.map_or(Self::Absent, Self::Present)
    }
}
