//! Calls of Amazon EC2 and the parameter store, by resource.

pub(crate) mod console;
mod filters;
pub(crate) mod images;
pub(crate) mod instance_types;
pub(crate) mod instances;
pub(crate) mod network;
pub(crate) mod offerings;
mod template_data;
pub(crate) mod templates;
