//! Pools and templates by the thousand: right ones, ones at the limits of the schema, and broken ones.
//!
//! The schema itself says what there is to break, so that a new field is generated as soon as it is in it.

use capasg_api::crd;
use serde_json::{Value, json};

use super::edit::with;
use super::pool::{maximal_pool, minimal_pool};
use super::random::Random;
use super::template::template_of;

/// Makes objects of the kinds that people write.
#[derive(Debug)]
pub struct Generator {
    /// A pool with every field set, whose lists are short.
    full: Value,
    /// The schema of a pool's spec.
    schema: Value,
}

impl Default for Generator {
    fn default() -> Self {
        let mut full = maximal_pool();
        shorten(&mut full);
        let pool = crd::crds().into_iter().find(|crd| crd.spec.names.kind == "ASGMachinePool");
        let pool = pool.and_then(|crd| serde_json::to_value(crd).ok()).unwrap_or_default();
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
        Self { full, schema: pool.pointer(schema).cloned().unwrap_or_default() }
    }
}

/// Lists and maps of three: the longest ones are tried by the cases of the limits.
fn shorten(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.truncate(3);
            items.iter_mut().for_each(shorten);
        }
        Value::Object(members) => members.values_mut().for_each(shorten),
        _ => {}
    }
}

impl Generator {
    /// The object of a seed: a pool, or in a quarter of the cases a template. Three in ten are unbroken.
    #[must_use]
    pub fn object(&self, seed: u64) -> Value {
        let random = &mut Random::new(seed);
        let mut pool = minimal_pool();
        for (name, value) in self.full["spec"].as_object().into_iter().flatten() {
            if random.chance(30) {
                pool["spec"][name] = some_of(random, value);
            }
        }
        if random.chance(70) {
            for _ in 0..=random.index(3) {
                self.break_one(random, &mut pool);
            }
        }
        if random.chance(25) { template_of(&pool) } else { pool }
    }

    fn break_one(&self, random: &mut Random, pool: &mut Value) {
        let (path, schema) = self.place(random);
        let usual = self.full.pointer(&format!("/{path}")).cloned().unwrap_or(Value::Null);
        let value = broken(random, schema, &usual);
        // What is on the way may have been broken before.
        let parents: Vec<&str> = path.split('/').collect();
        for depth in 1..parents.len() {
            let parent = format!("/{}", parents[..depth].join("/"));
            if pool.pointer(&parent).is_some_and(|found| !found.is_object() && !found.is_array()) {
                return;
            }
            let index_beyond = parents[depth].parse::<usize>().ok().is_some_and(|index| {
                pool.pointer(&parent).and_then(Value::as_array).is_none_or(|items| items.len() <= index)
            });
            if index_beyond {
                let items = self.full.pointer(&parent).cloned().unwrap_or_default();
                *pool = with(pool.clone(), &parent[1..], items);
            }
            let is_list = pool.pointer(&parent).is_some_and(Value::is_array);
            if is_list && parents[depth].parse::<usize>().is_err() {
                return;
            }
        }
        *pool = with(pool.clone(), &path, value);
    }

    /// A place in the spec, with its schema.
    fn place(&self, random: &mut Random) -> (String, &Value) {
        let (mut path, mut schema) = ("spec".to_owned(), &self.schema);
        loop {
            let properties = schema["properties"].as_object();
            if let Some(properties) = properties.filter(|properties| !properties.is_empty()) {
                let names: Vec<&String> = properties.keys().collect();
                let name = *random.one_of(&names);
                schema = &properties[name];
                path = format!("{path}/{name}");
            } else if schema["items"].is_object() {
                schema = &schema["items"];
                path += "/0";
            }
            let is_leaf = !schema["properties"].is_object() && !schema["items"].is_object();
            if is_leaf || random.chance(25) {
                return (path, schema);
            }
        }
    }
}

/// The value, or an object with some of its members.
fn some_of(random: &mut Random, value: &Value) -> Value {
    let Value::Object(members) = value else { return value.clone() };
    let mut some = serde_json::Map::new();
    for (name, value) in members {
        if random.chance(70) {
            some.insert(name.clone(), some_of(random, value));
        }
    }
    some.into()
}

/// A value that is at a limit, beyond it, or of another type.
fn broken(random: &mut Random, schema: &Value, usual: &Value) -> Value {
    if random.chance(15) {
        let others =
            [json!(null), json!({}), json!([]), json!("x"), json!(7), json!(true), json!(1.5), json!("")];
        return random.one_of(&others).clone();
    }
    let choices = match schema["type"].as_str().unwrap_or_default() {
        "integer" => {
            // The schema has them as floating-point numbers.
            let limit = |name: &str| {
                schema[name].as_f64().and_then(|number| format!("{number:.0}").parse().ok()).unwrap_or(0_i64)
            };
            let (least, most) = (limit("minimum"), limit("maximum"));
            vec![least - 1, least, least + 1, most - 1, most, most + 1, 0, -1, i64::from(i32::MAX), i64::MAX]
                .into_iter()
                .map(Value::from)
                .collect()
        }
        "boolean" => vec![json!(true), json!(false)],
        "array" => {
            let item = usual.get(0).cloned().unwrap_or(json!("x"));
            let most = schema["maxItems"].as_u64().and_then(|most| usize::try_from(most).ok());
            let most = most.unwrap_or(3).min(64);
            vec![
                json!([]),
                json!([null]),
                json!([item, item]),
                json!(vec![item.clone(); most + 1]),
                json!([[]]),
            ]
        }
        "object" => {
            let mut more = usual.clone();
            if more.is_object() {
                more["unknown"] = json!({"to": "us"});
            }
            vec![json!({}), more, json!({"unknown": 1}), json!({"": ""}), json!({"a": null})]
        }
        _ => strings(schema, usual),
    };
    random.one_of(&choices).clone()
}

fn strings(schema: &Value, usual: &Value) -> Vec<Value> {
    let limit = |name: &str| schema[name].as_u64().and_then(|limit| usize::try_from(limit).ok());
    let (least, most) = (limit("minLength").unwrap_or(0), limit("maxLength").unwrap_or(64));
    let usual = usual.as_str().unwrap_or("x");
    let mut choices = vec![
        json!("a".repeat(least.saturating_sub(1))),
        json!("a".repeat(least)),
        json!("a".repeat(most)),
        json!("a".repeat(most + 1)),
        json!(format!("{usual}\u{0}")),
        json!(format!(" {usual}")),
        json!(usual.to_uppercase()),
        json!("é漢🦀"),
        json!("${VALUE} {version} {minor} {{"),
        json!(usual),
    ];
    choices.extend(schema["enum"].as_array().into_iter().flatten().cloned());
    choices
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn objects_are_those_of_their_seeds_and_of_many_kinds() {
        let generator = Generator::default();
        assert!(generator.schema["properties"]["region"].is_object());
        let objects: Vec<Value> = (0..2_000).map(|seed| generator.object(seed)).collect();
        assert_eq!(objects[7], Generator::default().object(7));
        let different: BTreeSet<String> = objects.iter().map(Value::to_string).collect();
        assert!(different.len() > 1_800, "{} of {}", different.len(), objects.len());
        let templates = objects.iter().filter(|object| object["kind"] == "ASGMachinePoolTemplate").count();
        assert!((300..700).contains(&templates), "{templates}");
        let readable = objects
            .iter()
            .filter(|object| object["kind"] == "ASGMachinePool")
            .filter(|object| serde_json::from_value::<capasg_api::ASGMachinePool>((*object).clone()).is_ok());
        assert!(readable.count() > 500);
    }
}
