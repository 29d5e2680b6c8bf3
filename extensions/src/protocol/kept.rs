//! Reads JSON of which only some members are kept, so that the rest takes no memory.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// What of a value is kept.
#[derive(Debug)]
pub(super) enum Kept {
    /// All of it.
    All,
    /// These members of an object. What is no object is null.
    Members(&'static [(&'static str, Self)]),
}

impl<'de> DeserializeSeed<'de> for &Kept {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self {
            Kept::All => serde::Deserialize::deserialize(deserializer),
            Kept::Members(members) => deserializer.deserialize_any(Members(members)),
        }
    }
}

struct Members(&'static [(&'static str, Kept)]);

impl<'de> Visitor<'de> for Members {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Null)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            match self.0.iter().find(|(known, _)| *known == name) {
                Some((_, of)) => drop(kept.insert(name, members.next_value_seed(of)?)),
                None => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Value::Object(kept))
    }
}
