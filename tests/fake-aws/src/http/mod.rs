//! The HTTP front: the AWS APIs as the unchanged SDK speaks them, and the control API under `/_sim/`.

mod api;
mod control_api;
mod credentials;
mod iam_api;
mod pace;
mod server;
mod shared;

pub use pace::Pace;
pub use server::Server;
