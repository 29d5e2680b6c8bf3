//! The pools of a Cluster that does not exist yet, as far as its topology, its `ClusterClass` and their templates say it.
//!
//! Core patches the templates later. Inline patches with a value or a variable are applied here, and those of this extension;
//! what another patch changes is not known, and so not checked.

use std::collections::{BTreeMap, BTreeSet};

use capasg_api::{
    identity::IdentityReference,
    pool::{Image, InstanceTypeEntry, InstancesDistribution, SecurityGroupSelector, SubnetSelector},
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{API_VERSION, KIND, SPEC, Variables, is_pool_template, patch, variables::PoolVariables};
use crate::{
    ports::Kind,
    protocol::{Cluster, Hook, Settings as Texts, Variable},
    settings::Settings,
};

/// The most machine pools that the schema of a Cluster accepts.
const MOST: usize = 2000;

/// A pool that is to be created. What is not known is `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PlannedPool {
    /// Its name in the topology.
    pub(crate) name: String,
    /// Its region.
    pub(crate) region: String,
    /// Its own identity, if it names one.
    pub(crate) identity: PlannedReference,
    /// Its replicas; 0 if the topology has no number.
    pub(crate) replicas: i32,
    /// Its failure domains; empty for those of its subnets.
    pub(crate) zones: BTreeSet<String>,
    /// Its subnets.
    pub(crate) subnets: Option<Vec<SubnetSelector>>,
    /// Its security groups.
    pub(crate) security_groups: Option<Vec<SecurityGroupSelector>>,
    /// Its image.
    pub(crate) image: Option<Image>,
    /// Its instance types.
    pub(crate) types: Option<Vec<String>>,
    /// Its purchase options.
    pub(crate) distribution: Option<InstancesDistribution>,
}

/// What `spec.identityRef` of an object that is to be created names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum PlannedReference {
    /// Patches decide, or it cannot be read.
    #[default]
    Unknown,
    /// This identity, or none.
    Known(Option<IdentityReference>),
}

/// The templates of pools that a `ClusterClass` refers to, by the name of the class of the machine pool.
pub(crate) fn templates_of(class: &Value) -> BTreeMap<&str, &str> {
    let classes = items(class, "/spec/workers/machinePools");
    let of_pool = |pool: &'_ Value| {
        let template = pool.pointer("/infrastructure/templateRef")?;
        let is = |field: &str, expected: &str| template.get(field).and_then(Value::as_str) == Some(expected);
        (is("apiVersion", API_VERSION) && is("kind", KIND)).then_some(())
    };
    let named = classes
        .filter(|pool| of_pool(pool).is_some())
        .filter_map(|pool| Some((text(pool, "/class")?, text(pool, "/infrastructure/templateRef/name")?)));
    named.collect()
}

/// The pools of a Cluster whose templates are given by the name of their class. A pool whose region is not known is left out.
pub(crate) fn planned_pools(
    cluster: &Cluster,
    class: &Value,
    templates: &BTreeMap<String, Value>,
    settings: &Settings,
) -> Vec<PlannedPool> {
    let topology = cluster.topology();
    let all: Vec<Variable> = decoded(topology, "/variables").unwrap_or_default();
    let pools = items(topology, "/workers/machinePools").take(MOST).filter_map(|pool| {
        let of_class = text(pool, "/class")?;
        let template = templates.get(of_class).filter(|template| is_pool_template(template))?;
        let own: Vec<Variable> = decoded(pool, "/variables/overrides").unwrap_or_default();
        let mut draft = Draft { template: template.clone(), unknown: BTreeSet::new() };
        for patch in items(class, "/spec/patches") {
            draft.patch(patch, of_class, &Variables::of(&all, &own), settings);
        }
        let classes = || items(class, "/spec/workers/machinePools");
        let default = || classes().find(|other| text(other, "/class") == Some(of_class));
        let zones = decoded(pool, "/failureDomains").or_else(|| decoded(default()?, "/failureDomains"));
        Some(PlannedPool {
            name: text(pool, "/name")?.to_owned(),
            replicas: decoded(pool, "/replicas").unwrap_or_default(),
            zones: zones.unwrap_or_default(),
            region: draft.known("region")?,
            identity: draft.identity(),
            subnets: draft.known("subnets"),
            security_groups: draft.known("machine/securityGroups"),
            image: draft.known("machine/image"),
            types: draft
                .known("instanceTypes")
                .map(|types: Vec<InstanceTypeEntry>| types.into_iter().map(|entry| entry.type_).collect()),
            distribution: draft.known_or_default("instancesDistribution"),
        })
    });
    pools.collect()
}

/// The template of the object of a class that names the identity of its Clusters.
pub(crate) struct IdentityHolder<'a> {
    pub(crate) kind: Kind,
    pub(crate) name: &'a str,
}

/// As [`capasg_api::capi::Cluster::aws_identity_holder`] of the Clusters of a class; `None` if they have none.
pub(crate) fn identity_holder(class: &Value) -> Option<IdentityHolder<'_>> {
    HOLDERS.iter().find_map(|holder| {
        let template = class.pointer(&format!("/spec/{}/templateRef", holder.field))?;
        let group = text(template, "/apiVersion")?.split_once('/')?.0;
        let is = group == holder.group && text(template, "/kind") == Some(holder.name);
        is.then_some(())?;
        Some(IdentityHolder { kind: holder.kind, name: text(template, "/name")? })
    })
}

/// What `spec.identityRef` of the object will name.
pub(crate) fn planned_identity_ref(
    cluster: &Cluster,
    class: &Value,
    kind: Kind,
    template: Value,
) -> PlannedReference {
    let Some(holder) = HOLDERS.iter().find(|holder| holder.kind == kind) else {
        return PlannedReference::Unknown;
    };
    let all: Vec<Variable> = decoded(cluster.topology(), "/variables").unwrap_or_default();
    let variables = Variables::of(&all, &[]);
    let mut draft = Draft { template, unknown: BTreeSet::new() };
    for patch in items(class, "/spec/patches") {
        match patch.get("external") {
            // This extension changes no other template than those of pools.
            Some(external) if is_ours(external) => {}
            Some(external) if text(external, "/generatePatchesExtension").is_some() => {
                draft.unknown.insert(String::new());
            }
            Some(_) => {}
            None => draft.inline(patch, &variables, |definition| {
                let matches = format!("/selector/matchResources/{}", holder.matched);
                text(definition, "/selector/kind") == Some(holder.name)
                    && definition.pointer(&matches).and_then(Value::as_bool) == Some(true)
            }),
        }
    }
    draft.identity()
}

/// A template whose object names the identity of a Cluster.
struct Holder {
    kind: Kind,
    /// The kind of the template.
    name: &'static str,
    group: &'static str,
    /// The field of a class that refers to it.
    field: &'static str,
    /// The member of `matchResources` that selects it in a patch.
    matched: &'static str,
}

const HOLDERS: [Holder; 2] = [
    Holder {
        kind: Kind::ClusterTemplate,
        name: "AWSClusterTemplate",
        group: "infrastructure.cluster.x-k8s.io",
        field: "infrastructure",
        matched: "infrastructureCluster",
    },
    Holder {
        kind: Kind::ControlPlaneTemplate,
        name: "AWSManagedControlPlaneTemplate",
        group: "controlplane.cluster.x-k8s.io",
        field: "controlPlane",
        matched: "controlPlane",
    },
];

/// Whether an external patch is one of this extension.
fn is_ours(external: &Value) -> bool {
    text(external, "/generatePatchesExtension")
        .and_then(|handler| handler.split_once('.'))
        .is_some_and(|(name, _)| name == Hook::GeneratePatches.handler())
}

/// A template while patches are applied to it.
struct Draft {
    template: Value,
    /// The paths below the spec whose content is not known.
    unknown: BTreeSet<String>,
}

impl Draft {
    fn patch(&mut self, patch: &Value, class: &str, variables: &Variables<'_>, settings: &Settings) {
        if let Some(external) = patch.get("external") {
            return self.external(external, variables, settings);
        }
        self.inline(patch, variables, |definition| selects(definition, class));
    }

    fn inline(&mut self, patch: &Value, variables: &Variables<'_>, selects: impl Fn(&Value) -> bool) {
        let certain = text(patch, "/enabledIf").is_none();
        let definitions = items(patch, "/definitions").filter(|definition| selects(definition));
        for change in definitions.flat_map(|definition| items(definition, "/jsonPatches")) {
            let Some(field) = text(change, "/path").and_then(below_spec) else { continue };
            let value = match text(change, "/valueFrom/variable") {
                Some(name) => variables.get(name),
                None => change.get("value"),
            };
            let adds = matches!(text(change, "/op"), Some("add" | "replace"));
            let value = value.filter(|_| certain && adds);
            match value {
                Some(value) if self.set(field, value.clone()) => self.forget_unknown(field),
                _ => {
                    self.unknown.insert(field.to_owned());
                }
            }
        }
    }

    fn external(&mut self, external: &Value, variables: &Variables<'_>, settings: &Settings) {
        if text(external, "/generatePatchesExtension").is_none() {
            return;
        }
        let ours = is_ours(external);
        let own: Option<Texts> = decoded(external, "/settings");
        let own = own.map_or_else(|| Ok(settings.clone()), |texts| settings.overridden(&texts));
        let (Ok(values), Ok(settings), true) = (PoolVariables::read(variables), own, ours) else {
            self.unknown.insert(String::new());
            return;
        };
        match patch(&self.template, variables, &settings) {
            Ok(Some(patch)) => json_patch::merge(&mut self.template, &patch),
            Ok(None) => {}
            Err(_) => {
                self.unknown.insert(String::new());
                return;
            }
        }
        for (path, is_set) in [
            ("region", values.region.is_some()),
            ("instanceTypes", values.instances.is_some()),
            ("instancesDistribution", values.purchase.is_some()),
            ("subnets", values.subnets.is_some()),
        ] {
            if is_set {
                self.forget_unknown(path);
            }
        }
        // The architecture of an image follows from the types.
        if (values.image.is_some() || settings.image_parameter.is_some()) && self.is_known("instanceTypes") {
            self.forget_unknown("machine/image");
        }
    }

    /// Sets a member of the spec; fails where the path is not one of members of objects.
    fn set(&mut self, path: &str, value: Value) -> bool {
        let Some(mut place) = self.template.pointer_mut(SPEC) else { return false };
        let (parents, last) = path.rsplit_once('/').map_or(("", path), |(parents, last)| (parents, last));
        for parent in parents.split('/').filter(|parent| !parent.is_empty()) {
            let Some(next) = place.get_mut(parent).filter(|next| next.is_object()) else { return false };
            place = next;
        }
        place.as_object_mut().is_some_and(|object: &mut Map<_, _>| {
            object.insert(last.to_owned(), value);
            true
        })
    }

    /// What was not known at and below a path is known.
    fn forget_unknown(&mut self, path: &str) {
        self.unknown.retain(|unknown| !is_within(unknown, path));
    }

    fn is_known(&self, path: &str) -> bool {
        !self.unknown.iter().any(|unknown| is_within(unknown, path) || is_within(path, unknown))
    }

    fn known<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        self.is_known(path).then(|| decoded(self.template.pointer(SPEC)?, &format!("/{path}")))?
    }

    fn identity(&self) -> PlannedReference {
        let known = self.known_or_default("identityRef");
        known.map_or(PlannedReference::Unknown, PlannedReference::Known)
    }

    /// The same for a field that is known to have its default if it is absent.
    fn known_or_default<T: DeserializeOwned + Default>(&self, path: &str) -> Option<T> {
        let is_set = self.template.pointer(SPEC)?.pointer(&format!("/{path}")).is_some();
        if is_set || !self.is_known(path) { self.known(path) } else { Some(T::default()) }
    }
}

/// Whether a path is another one or below it.
fn is_within(path: &str, parent: &str) -> bool {
    let rest = path.strip_prefix(parent);
    parent.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a definition of an inline patch applies to the templates of pools of a class.
fn selects(definition: &Value, class: &str) -> bool {
    let names = items(definition, "/selector/matchResources/machinePoolClass/names");
    let matches = |name: &Value| name.as_str().is_some_and(|name| may_match(name, class));
    text(definition, "/selector/kind") == Some(KIND) && names.into_iter().any(matches)
}

/// A name, or one with `*` at its beginning or its end.
fn may_match(pattern: &str, class: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) if class.ends_with(end) => true,
        (_, Some(start)) if class.starts_with(start) => true,
        _ => pattern == class,
    }
}

fn below_spec(path: &str) -> Option<&str> {
    let rest = path.strip_prefix(SPEC)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

fn items<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn decoded<T: DeserializeOwned>(object: &Value, pointer: &str) -> Option<T> {
    T::deserialize(object.pointer(pointer)?).ok()
}
