//! The adapter that implements the cloud port with the official AWS SDK.
