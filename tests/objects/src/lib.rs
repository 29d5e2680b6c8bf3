//! Objects for tests: those that the API server must accept, those that it must reject with a given message, and generated
//! ones. CEL rules run on the API server, so only a test against a real one proves them.

mod case;
mod cases;
mod edit;
mod foreign;
mod generated;
mod limits;
mod long;
mod machine;
mod operators;
mod policies;
mod pool;
mod pool_limits;
mod pool_rules;
mod random;
mod template;

pub use case::{CelCase, ValidCase};
pub use cases::{cel_cases, schema_cases, valid_cases};
pub use edit::{with, without};
pub use foreign::foreign;
pub use generated::Generator;
pub use limits::exceeded_limits;
pub use long::is_long;
pub use machine::machine;
pub use policies::{extension_policies, manager_policies};
pub use pool::{maximal_pool, minimal_pool};
pub use random::Random;
pub use template::{minimal_template, template_of};
