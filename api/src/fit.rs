//! Cuts a status to what its CRD allows. The API server rejects the whole status if one list or string is too long or too
//! short, and the object then has no condition at all.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write,
    sync::LazyLock,
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps, JSONSchemaPropsOrArray,
    JSONSchemaPropsOrBool,
};
use kube::{Resource, core::object::HasStatus};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::crd;

/// The field of a status that counts what is left out of its lists, if its schema has it.
const OMITTED: &str = "omitted";
/// A shorter text is an ID or a name, which has no room for a count of what is left out.
const SHORTEST_MESSAGE: usize = 1024;

/// The schema of each status by kind: the limits have no other home.
static SCHEMAS: LazyLock<HashMap<String, JSONSchemaProps>> = LazyLock::new(|| {
    let status = |version: CustomResourceDefinitionVersion| {
        version.schema?.open_api_v3_schema?.properties?.remove("status")
    };
    let schema = |definition: CustomResourceDefinition| {
        let found = definition.spec.versions.into_iter().next().and_then(status)?;
        Some((definition.spec.names.kind, found))
    };
    crd::crds().into_iter().filter_map(schema).collect()
});

/// The status to write, which fits its CRD; none if the object has it already. The status that the API server accepted fits.
#[must_use]
pub fn changed<K>(status: K::Status, before: Option<&K::Status>) -> Option<K::Status>
where
    K: HasStatus + Resource<DynamicType = ()>,
    K::Status: Serialize + DeserializeOwned + PartialEq,
{
    // Of thousands of instances few change: what is equal is not converted.
    if before == Some(&status) {
        return None;
    }
    Some(fit::<K>(status)).filter(|status| before != Some(status))
}

/// A status whose lists, maps and strings are as long as the CRD of the kind allows. Messages end with the number of
/// characters that are left out; the field `omitted` of a status has the numbers of items that its lists lack. What is
/// shorter than the CRD allows, such as an empty string of AWS, is left out.
#[must_use]
fn fit<K>(status: K::Status) -> K::Status
where
    K: HasStatus + Resource<DynamicType = ()>,
    K::Status: Serialize + DeserializeOwned,
{
    let Some(schema) = SCHEMAS.get(K::kind(&()).as_ref()) else { return status };
    let Ok(mut value) = serde_json::to_value(&status) else { return status };
    // What fits is not converted back.
    if cut_status(schema, &mut value) { serde_json::from_value(value).unwrap_or(status) } else { status }
}

/// A text of at most this many bytes, which is no more characters than that; it is cut between characters, and ends with
/// the number of characters that are left out.
#[must_use]
pub fn text(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let total = text.chars().count();
        let room = note(total).len();
        text.truncate(text.floor_char_boundary(limit.saturating_sub(room)));
        let left_out = total - text.chars().count();
        // Writing to a String does not fail.
        let _ = write!(text, "{}", note(left_out));
    }
    text
}

fn note(left_out: usize) -> String {
    format!(" … and {left_out} more characters")
}

/// Cuts a status, and tells whether it changed.
fn cut_status(schema: &JSONSchemaProps, status: &mut Value) -> bool {
    let counts = schema.properties.as_ref().is_some_and(|properties| properties.contains_key(OMITTED));
    let mut omitted = Omitted::default();
    if counts && let Some(before) = status.get(OMITTED).and_then(Value::as_object) {
        let count = |(path, count): (&String, &Value)| Some((path.clone(), count.as_u64()?));
        omitted.before = before.iter().filter_map(count).collect();
    }
    cut(schema, status, &mut omitted);
    if let Some(members) = status.as_object_mut().filter(|_| counts) {
        if omitted.now.is_empty() {
            members.remove(OMITTED);
        } else {
            members.insert(OMITTED.to_owned(), json!(omitted.now));
        }
    }
    omitted.is_cut || counts && omitted.now != omitted.before
}

/// The numbers of items that are left out, by the path of the list.
#[derive(Default)]
struct Omitted<'a> {
    /// The properties that lead to what is being cut.
    path: Vec<&'a str>,
    /// As the status has them. A list that was cut before and is not read again keeps its count.
    before: BTreeMap<String, u64>,
    now: BTreeMap<String, u64>,
    /// Something is longer than its limit.
    is_cut: bool,
}

impl Omitted<'_> {
    /// Counts what a list or a map of `length` items lacks.
    fn count(&mut self, length: usize, limit: usize) {
        let Some(beyond) = length.checked_sub(limit) else { return };
        self.is_cut |= beyond > 0;
        let path = self.path.join(".");
        let left_out = match u64::try_from(beyond).unwrap_or_default() {
            0 => self.before.get(&path).copied().unwrap_or_default(),
            beyond => beyond,
        };
        if left_out > 0 {
            *self.now.entry(path).or_default() += left_out;
        }
    }
}

fn cut<'a>(schema: &'a JSONSchemaProps, value: &mut Value, omitted: &mut Omitted<'a>) {
    match value {
        Value::String(string) => {
            let Some(limit) = limit(schema.max_length) else { return };
            if string.len() <= limit || string.chars().count() <= limit {
                return;
            }
            omitted.is_cut = true;
            if limit < SHORTEST_MESSAGE || schema.pattern.is_some() {
                *string = string.chars().take(limit).collect();
            } else {
                *string = text(std::mem::take(string), limit);
            }
        }
        Value::Array(items) => {
            if let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items {
                let length = items.len();
                items.retain(|value| !is_too_short(item, value));
                omitted.is_cut |= items.len() < length;
            }
            if let Some(limit) = limit(schema.max_items) {
                omitted.count(items.len(), limit);
                items.truncate(limit);
            }
            if let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items {
                for value in items {
                    cut(item, value, omitted);
                }
            }
        }
        Value::Object(members) => {
            let length = members.len();
            members.retain(|key, value| {
                property(schema, key).is_none_or(|(_, property)| !is_too_short(property, value))
            });
            omitted.is_cut |= members.len() < length;
            if let Some(limit) = limit(schema.max_properties) {
                omitted.count(members.len(), limit);
                let beyond: Vec<String> = members.keys().skip(limit).cloned().collect();
                for key in beyond {
                    members.remove(&key);
                }
            }
            for (key, value) in members.iter_mut() {
                if let Some((name, property)) = property(schema, key) {
                    omitted.path.push(name);
                    cut(property, value, omitted);
                    omitted.path.pop();
                } else if let Some(JSONSchemaPropsOrBool::Schema(property)) = &schema.additional_properties {
                    cut(property, value, omitted);
                }
            }
        }
        _ => {}
    }
}

/// A property of a schema, and its name.
fn property<'a>(schema: &'a JSONSchemaProps, key: &str) -> Option<(&'a String, &'a JSONSchemaProps)> {
    schema.properties.as_ref()?.get_key_value(key)
}

/// Whether a string is too short, or an object requires one that is.
fn is_too_short(schema: &JSONSchemaProps, value: &Value) -> bool {
    match value {
        Value::String(string) => {
            limit(schema.min_length).is_some_and(|least| string.chars().take(least).count() < least)
        }
        Value::Object(members) => schema.required.iter().flatten().any(|key| {
            let required = property(schema, key).zip(members.get(key));
            required.is_some_and(|((_, property), value)| is_too_short(property, value))
        }),
        _ => false,
    }
}

fn limit(bound: Option<i64>) -> Option<usize> {
    bound.and_then(|bound| usize::try_from(bound).ok())
}

#[cfg(test)]
mod tests {
    use capasg_test_objects::exceeded_limits;

    use super::*;
    use crate::{
        ASGMachine, ASGMachinePool, ASGMachinePoolStatus, ASGMachineStatus,
        machine::{AddressType, MachineAddress},
        pool::{GroupStatus, LaunchFailureStatus, SubnetStatus},
        time::to_kubernetes,
    };

    /// More of everything than the schema allows.
    fn filled(schema: &JSONSchemaProps, path: &str) -> Value {
        let over = |bound: Option<i64>| limit(bound).map_or(1, |limit| limit + 7);
        match schema.type_.as_deref() {
            Some("string") if schema.enum_.is_none() => json!("é".repeat(over(schema.max_length))),
            Some("array") => {
                let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items else { panic!("{path}") };
                Value::Array(vec![filled(item, path); over(schema.max_items)])
            }
            Some("object") => {
                let mut members = serde_json::Map::new();
                for (key, property) in schema.properties.iter().flatten().filter(|(key, _)| *key != OMITTED) {
                    members.insert(key.clone(), filled(property, &format!("{path}.{key}")));
                }
                if let Some(JSONSchemaPropsOrBool::Schema(property)) = &schema.additional_properties {
                    for number in 0..over(schema.max_properties) {
                        members.insert(format!("key-{number}"), filled(property, path));
                    }
                }
                Value::Object(members)
            }
            _ => Value::Null,
        }
    }

    #[test]
    fn every_list_map_and_string_of_every_status_is_cut_to_the_limits_of_its_schema() {
        for kind in ["ASGMachinePool", "ASGMachine", "ASGIdentity"] {
            let schema = &SCHEMAS[kind];
            let as_json = serde_json::to_value(schema).unwrap();
            let mut status = filled(schema, kind);
            let found = exceeded_limits(&as_json, &status, kind);
            assert!(!found.is_empty(), "{kind} is filled beyond its limits");
            cut_status(schema, &mut status);
            assert_eq!(exceeded_limits(&as_json, &status, kind), [""; 0]);
        }
    }

    #[test]
    fn what_the_lists_lack_is_counted_and_stays_counted() {
        let availability_zone = "eu-west-1a".to_owned();
        let subnet = |number| SubnetStatus {
            id: format!("subnet-{number:03}"),
            availability_zone: availability_zone.clone(),
        };
        let status = ASGMachinePoolStatus {
            security_group_ids: (0..70).map(|number| format!("sg-{number:03}")).collect(),
            subnets: (0..300).map(subnet).collect(),
            group: Some(GroupStatus {
                name: "group".to_owned(),
                suspended_processes: (0..33).map(|number| number.to_string()).collect(),
                ..GroupStatus::default()
            }),
            ..ASGMachinePoolStatus::default()
        };
        let fits = fit::<ASGMachinePool>(status);
        assert_eq!((fits.security_group_ids.len(), fits.subnets.len()), (64, 256));
        let counts = [("group.suspendedProcesses", 1), ("securityGroupIDs", 6), ("subnets", 44)];
        let counts: BTreeMap<String, i32> = counts.map(|(path, count)| (path.to_owned(), count)).into();
        assert_eq!(fits.omitted, counts);
        let mut again = fit::<ASGMachinePool>(fits.clone());
        assert_eq!(again, fits, "what is not read again keeps its count");
        again.security_group_ids.truncate(3);
        assert!(!fit::<ASGMachinePool>(again).omitted.contains_key("securityGroupIDs"));
    }

    #[test]
    fn a_status_is_written_if_it_differs_once_it_is_cut() {
        let ids = |count: i32| ASGMachinePoolStatus {
            security_group_ids: (0..count).map(|number| format!("sg-{number:03}")).collect(),
            ..ASGMachinePoolStatus::default()
        };
        let changed = changed::<ASGMachinePool>;
        let before = changed(ids(70), None).unwrap();
        assert_eq!(changed(before.clone(), Some(&before)), None);
        assert_eq!(changed(ids(70), Some(&before)), None);
        assert_eq!(changed(ids(3), Some(&before)), Some(ids(3)));
        let more = changed(ids(71), Some(&before)).unwrap();
        assert_eq!(more.omitted["securityGroupIDs"], 7);
    }

    #[test]
    fn the_addresses_of_a_machine_are_cut() {
        let address =
            MachineAddress { address_type: AddressType::InternalIp, address: "10.0.0.1".to_owned() };
        let status = ASGMachineStatus { addresses: vec![address; 40], ..ASGMachineStatus::default() };
        assert_eq!(fit::<ASGMachine>(status).addresses.len(), 32);
    }

    #[test]
    fn what_is_too_short_is_left_out() {
        let subnet =
            |id: &str, zone: &str| SubnetStatus { id: id.to_owned(), availability_zone: zone.to_owned() };
        let failure = |message: &str| LaunchFailureStatus {
            reason: "LaunchFailed".to_owned(),
            message: message.to_owned(),
            instance_type: Some("m7i.large".to_owned()),
            availability_zone: Some(String::new()),
            time: to_kubernetes(chrono::DateTime::UNIX_EPOCH),
        };
        let status = |message: &str| ASGMachinePoolStatus {
            subnets: vec![subnet("subnet-1", ""), subnet("subnet-2", "eu-west-1b")],
            security_group_ids: vec![String::new(), "sg-1".to_owned()],
            last_launch_failure: Some(failure(message)),
            version: Some(String::new()),
            ..ASGMachinePoolStatus::default()
        };
        let fits = fit::<ASGMachinePool>(status("no"));
        assert_eq!(fits.subnets, [subnet("subnet-2", "eu-west-1b")], "the zone is required");
        assert_eq!(fits.security_group_ids, ["sg-1"]);
        assert_eq!(fits.version, None);
        let failure = LaunchFailureStatus { availability_zone: None, ..failure("no") };
        assert_eq!(fits.last_launch_failure, Some(failure));
        assert_eq!(fit::<ASGMachinePool>(status("")).last_launch_failure, None, "its message is required");
        assert_eq!(changed::<ASGMachinePool>(status("no"), Some(&fits)), None);
        let machine = ASGMachineStatus { failure_domain: Some(String::new()), ..ASGMachineStatus::default() };
        assert_eq!(fit::<ASGMachine>(machine).failure_domain, None);
    }

    #[test]
    fn a_text_is_cut_between_characters_and_says_how_much_is_left_out() {
        assert_eq!(text("as it is".to_owned(), 1024), "as it is");
        for character in ["x", "é", "🦀"] {
            let long = character.repeat(40_000);
            let cut = text(long.clone(), 1024);
            assert!(cut.len() <= 1024, "{}", cut.len());
            let kept = cut.matches(character).count();
            assert!(cut.ends_with(&format!("{character} … and {} more characters", 40_000 - kept)), "{cut}");
            assert_eq!(text(cut.clone(), 1024), cut);
        }
    }
}
