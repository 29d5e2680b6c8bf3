//! The reconciles of both kinds: they read what a decision requires, report it, and carry it out.

mod archive;
mod chart_proxy;
mod chart_status;
mod context;
mod drift;
mod error;
mod events;
mod kept_results;
mod newest;
mod next;
mod observe;
mod preview;
mod reconcile;
mod release_values;
mod selection;
mod source;
mod template_data;
mod write;

pub use chart_proxy::reconcile_chart;
pub use context::{Context, ObjectKey, OperationObserver, Parts, Policy};
pub use error::ReconcileError;
pub use next::Next;
use next::RETRY;
pub use preview::preview;
pub use reconcile::reconcile;
