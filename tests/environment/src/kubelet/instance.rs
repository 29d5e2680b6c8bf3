//! The machines that kubelets run on.

/// A running machine, as its cloud knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// For example `i-0a1b2c3d4e5f60718`.
    pub id: String,
    /// Availability zone, for example `eu-west-1a`.
    pub zone: String,
    /// For example `m7i.large`.
    pub instance_type: String,
    /// The image that it was launched from.
    pub image: String,
    /// The version of the kubelet in the image, for example `v1.36.3`, if the cloud knows it.
    pub version: Option<String>,
    /// The private DNS name, which becomes the Node's name; empty: the id does.
    pub hostname: String,
    /// The private IPv4 address; may be empty.
    pub address: String,
    /// The user data, as the machine reads it: no longer base64.
    pub user_data: Vec<u8>,
}

/// Where running instances are listed.
pub trait Instances: Send + Sync + 'static {
    /// All machines that run now: launched, and not shutting down.
    fn running(&self) -> Vec<Instance>;
}
