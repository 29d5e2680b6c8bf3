//! Faults: calls that fail, are slow, or have their effect without an answer, by operation and place.

use serde::{Deserialize, Serialize};

use crate::{Scope, Service, Tree, log};

/// A fault that waits for its calls. All conditions must hold; missing ones hold for every call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// The operation, or `*` for every one.
    pub operation: String,
    /// Only calls of this API.
    #[serde(default)]
    pub service: Option<Service>,
    /// Only calls of this account.
    #[serde(default)]
    pub account: Option<String>,
    /// Only calls in this region.
    #[serde(default)]
    pub region: Option<String>,
    /// Only calls that name this group (or this launch template by name).
    #[serde(default)]
    pub group: Option<String>,
    /// Only calls that name this instance.
    #[serde(default)]
    pub instance: Option<String>,
    /// Only calls with this parameter.
    #[serde(default)]
    pub parameter: Option<String>,
    /// Only calls that are signed with this access key.
    #[serde(default)]
    pub access_key: Option<String>,
    /// Lets this many matching calls pass first.
    #[serde(default)]
    pub skip: u32,
    /// Strikes this often; `None` is for ever. Default 1.
    #[serde(default = "once")]
    pub times: Option<u32>,
    /// Milliseconds (wall clock) by which the answer is held back over HTTP; in process it is only reported.
    #[serde(default)]
    pub delay_millis: u64,
    /// What happens to the call.
    #[serde(default)]
    pub effect: Effect,
}

#[expect(clippy::unnecessary_wraps, reason = "serde's default must have the field's type")]
fn once() -> Option<u32> {
    Some(1)
}

/// What a fault does to a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Effect {
    /// Nothing but the delay.
    #[default]
    None,
    /// The call is refused and changes nothing.
    Error {
        /// HTTP status.
        status: u16,
        /// AWS's code.
        code: String,
        /// AWS's words.
        message: String,
    },
    /// The call has its effect, but its reply is lost: over HTTP the connection is closed.
    LoseReply,
    /// A read answers as if there were no groups, templates and instances; on other calls it does nothing.
    Blind,
    /// The call is lost before it has any effect; to the caller it looks like [`Effect::LoseReply`].
    LoseRequest,
    /// The reply is lost, and the effect comes this much virtual time later.
    ApplyLate {
        /// Milliseconds of virtual time.
        after_millis: u64,
    },
}

impl Fault {
    /// A fault that strikes the next call of an operation.
    #[must_use]
    pub fn new(operation: &str, effect: Effect) -> Self {
        Self {
            operation: operation.to_owned(),
            service: None,
            account: None,
            region: None,
            group: None,
            instance: None,
            parameter: None,
            access_key: None,
            skip: 0,
            times: Some(1),
            delay_millis: 0,
            effect,
        }
    }

    /// A fault that refuses the next call of an operation.
    #[must_use]
    pub fn error(operation: &str, status: u16, code: &str, message: &str) -> Self {
        let (code, message) = (code.to_owned(), message.to_owned());
        Self::new(operation, Effect::Error { status, code, message })
    }

    /// How often it strikes; `None` is for ever.
    #[must_use]
    pub fn times(mut self, times: Option<u32>) -> Self {
        self.times = times;
        self
    }

    /// Lets calls pass before it strikes.
    #[must_use]
    pub fn after(mut self, calls: u32) -> Self {
        self.skip = calls;
        self
    }

    /// Only calls in a region.
    #[must_use]
    pub fn in_region(mut self, region: &str) -> Self {
        self.region = Some(region.to_owned());
        self
    }

    /// Only calls that name a group.
    #[must_use]
    pub fn for_group(mut self, group: &str) -> Self {
        self.group = Some(group.to_owned());
        self
    }

    /// Only calls that name an instance.
    #[must_use]
    pub fn for_instance(mut self, instance: &str) -> Self {
        self.instance = Some(instance.to_owned());
        self
    }

    /// Only calls with a parameter.
    #[must_use]
    pub fn with_parameter(mut self, parameter: &str) -> Self {
        self.parameter = Some(parameter.to_owned());
        self
    }

    /// Only calls that are signed with an access key.
    #[must_use]
    pub fn by_access_key(mut self, access_key: &str) -> Self {
        self.access_key = Some(access_key.to_owned());
        self
    }

    fn matches(&self, call: &Seen<'_>) -> bool {
        let Seen { scope, service, action, params, access_key, groups } = *call;
        (self.operation == "*" || self.operation == action)
            && self.service.is_none_or(|wanted| wanted == service)
            && self.account.as_ref().is_none_or(|account| *account == scope.account)
            && self.region.as_ref().is_none_or(|region| *region == scope.region)
            && self.group.as_ref().is_none_or(|group| groups.contains(group))
            && self.instance.as_ref().is_none_or(|id| log::instances_of(params).contains(id))
            && self.parameter.as_ref().is_none_or(|name| params.get(name).is_some())
            && (self.access_key.is_none() || self.access_key.as_deref() == access_key)
    }
}

/// What the conditions of faults are compared with.
pub(crate) struct Seen<'a> {
    pub scope: &'a Scope,
    pub service: Service,
    pub action: &'a str,
    pub params: &'a Tree,
    pub access_key: Option<&'a str>,
    /// The groups and launch templates that the call names, or whose instances it names.
    pub groups: &'a [String],
}

/// The faults that are set, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    pub(crate) fn clear(&mut self, region: Option<&str>) {
        self.0.retain(|fault| region.is_some() && fault.region.as_deref() != region);
    }

    pub(crate) fn remove(&mut self, fault: &Fault) {
        self.0.retain(|one| one != fault);
    }

    pub(crate) fn list(&self) -> &[Fault] {
        &self.0
    }

    /// The fault that strikes this call, if any; it is used up by that.
    pub(crate) fn take(&mut self, call: &Seen<'_>) -> Option<Fault> {
        let index = self.0.iter_mut().position(|fault| {
            let hit = fault.matches(call);
            let passes = hit && fault.skip > 0;
            fault.skip -= u32::from(passes);
            hit && !passes
        })?;
        let fault = &mut self.0[index];
        let struck = fault.clone();
        if let Some(times) = fault.times.as_mut() {
            *times = times.saturating_sub(1);
            if *times == 0 {
                self.0.remove(index);
            }
        }
        Some(struck)
    }
}
