//! One request of a call, and how the keys of its condition are made.

use std::collections::BTreeMap;

use crate::{Call, Tree, iam::Request};

/// A request of a call, and what its refusal is told as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::iam) struct Asked {
    pub(in crate::iam) request: Request,
    pub(in crate::iam) via: Via,
    /// It is about a resource that should exist and does not.
    pub(in crate::iam) is_absent: bool,
}

/// Why a call asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::iam) enum Via {
    /// It is the call's own action.
    Itself,
    /// A group uses the launch template with this id.
    Template(String),
    /// The first group of an account makes a service-linked role.
    ServiceLinkedRole,
}

impl Asked {
    pub(super) fn itself(request: Request) -> Self {
        Self { request, via: Via::Itself, is_absent: false }
    }
}

/// The name of a call's own action.
pub(super) fn action(call: &Call) -> String {
    format!("{}:{}", call.service.as_str(), call.action)
}

/// Tags in a request, as the condition keys of `aws:RequestTag` and `aws:TagKeys`.
pub(super) fn with_request_tags(request: Request, tags: &[Tree]) -> Request {
    tags.iter().fold(request, |request, tag| {
        let key = tag.text_of("Key").unwrap_or_default();
        let request = request.with("aws:TagKeys", key);
        match tag.text_of("Value") {
            Some(value) => request.with(&format!("aws:RequestTag/{key}"), value),
            None => request,
        }
    })
}

/// Tags of a resource, as the condition keys that the services call by their own names as well.
pub(super) fn with_resource_tags(
    request: Request,
    service: &str,
    tags: &BTreeMap<String, String>,
) -> Request {
    let own = format!("{service}:ResourceTag");
    request.with_tags(&["aws:ResourceTag", &own], tags)
}
