//! Helm as a child process. Helm renders, applies and stores; nothing of it is implemented here.
//!
//! Each [`Operation`] has a private folder, which Helm runs in with an emptied environment. Values, kubeconfigs and
//! credentials are files there. What Helm prints on failure is classified ([`Failure`]) and then dropped.

mod access;
mod archive;
mod arguments;
mod downloads;
mod environment;
mod error;
mod failure;
mod files;
mod names;
mod operation;
mod private_folder;
mod program;
mod release;
mod repository;
mod source;
mod starts;
pub mod storage;
mod time_limit;

pub use access::{Access, AccessError, DockerConfiguration, RepositoryCredentials, Verification};
pub use archive::Archive;
pub use arguments::{Labels, Merge, ReleaseKey};
pub use error::HelmError;
pub use failure::{Failure, FailureClass};
pub use names::{ChartName, InvalidName, Namespace, ObjectName, ReleaseName, Version};
pub use operation::{Operation, Target};
pub use program::Helm;
pub use release::{ChartMetadata, Release, ReleaseState, Revision};
pub use repository::{PlainHttp, Repository};
pub use source::{ChartSource, Source};
pub use time_limit::TimeLimit;
