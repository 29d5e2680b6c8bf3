//! One attribute of a group, compared with its desired value.

use std::collections::BTreeSet;

use capasg_cloud::{GroupChange, GroupSettings, GroupTag, LifecycleHook};

use crate::machine_pool::model::call_kind::CallKind;

/// One attribute: the desired value and the observed one.
#[derive(Debug, Clone)]
pub(super) struct Attribute {
    pub path: String,
    pub seen: String,
    pub wanted: String,
    pub differs: bool,
    pub corrections: Vec<Correction>,
}

/// A part of a call that corrects an attribute.
#[derive(Debug, Clone)]
pub(super) enum Correction {
    /// What the group launches.
    Launch,
    /// Another parameter of `UpdateAutoScalingGroup`.
    Settings(fn(&mut GroupChange, &GroupSettings)),
    Tag(String, GroupTag),
    Untag(String),
    Suspend(BTreeSet<String>),
    Resume(BTreeSet<String>),
    Protect(BTreeSet<String>),
    PutHook(LifecycleHook),
    DeleteHook(String),
}

impl Correction {
    /// The call that it is a part of.
    pub fn call(&self) -> CallKind {
        match self {
            Self::Launch => CallKind::UpdateLaunch,
            Self::Settings(_) => CallKind::UpdateSettings,
            Self::Tag(..) => CallKind::TagGroup,
            Self::Untag(_) => CallKind::UntagGroup,
            Self::Suspend(_) => CallKind::SuspendProcesses,
            Self::Resume(_) => CallKind::ResumeProcesses,
            Self::Protect(_) => CallKind::SetInstanceProtection,
            Self::PutHook(_) => CallKind::PutLifecycleHook,
            Self::DeleteHook(_) => CallKind::DeleteLifecycleHook,
        }
    }
}

/// The attributes that are compared.
#[derive(Debug, Default)]
pub(super) struct List(pub Vec<Attribute>);

impl List {
    /// Adds an attribute that is corrected by one part of a call.
    pub fn add<T: PartialEq + ?Sized>(
        &mut self,
        path: impl Into<String>,
        (wanted, seen): (&T, &T),
        text: impl Fn(&T) -> String,
        correction: Correction,
    ) {
        self.0.push(Attribute {
            path: path.into(),
            seen: text(seen),
            wanted: text(wanted),
            differs: wanted != seen,
            corrections: vec![correction],
        });
    }
}
