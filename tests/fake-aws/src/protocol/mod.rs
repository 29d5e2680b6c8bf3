//! The wire formats of the APIs: requests into trees, trees into replies, driven by the service model's facts.

mod json;
mod query;
mod xml;

pub use json::{error as json_error, parse as parse_json, reply as json_reply};
pub use query::parse as parse_query;
pub use xml::{error as xml_error, reply as xml_reply};
