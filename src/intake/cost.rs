//! The memory that a JSON text takes at most when it is parsed into values or types.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// What an object or array takes besides its members: the first node of a map, or the struct that it is read
/// into, in a list that grows by doubling. Measured: 740 bytes for each `{"":0}` in a list of `serde_json::Value`.
const CONTAINER: usize = 768;
/// The members of an object that [`CONTAINER`] has room for.
const ROOM: usize = 11;
/// What the texts of such a member take besides their size: its name and its value are allocated.
const TEXTS: usize = 64;
/// What any other member, or an element, takes: its texts and its place, in a list that grows by doubling.
const ENTRY: usize = 128;

/// Why a body is not parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAccepted {
    /// It is not a JSON object.
    NotJson,
    /// It has too many values.
    TooMany,
}

/// An estimate of the memory in bytes that parsing takes, without parsing.
///
/// # Errors
/// If the text is not a JSON object, is nested deeper than 127 times, or the estimate exceeds `most`.
pub fn cost(text: &[u8], most: usize) -> Result<usize, NotAccepted> {
    if text.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(NotAccepted::NotJson);
    }
    let mut sum = Sum { bytes: text.len(), most };
    let mut parser = serde_json::Deserializer::from_slice(text);
    let counted = Count(&mut sum).deserialize(&mut parser).and_then(|()| parser.end());
    match counted {
        _ if sum.bytes > most => Err(NotAccepted::TooMany),
        Ok(()) => Ok(sum.bytes),
        Err(_) => Err(NotAccepted::NotJson),
    }
}

struct Sum {
    bytes: usize,
    most: usize,
}

impl Sum {
    /// Fails as soon as there is too much.
    fn add<E: Error>(&mut self, bytes: usize) -> Result<(), E> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.most { Err(E::custom("too many values")) } else { Ok(()) }
    }
}

/// Adds what one value takes.
struct Count<'a>(&'a mut Sum);

impl<'de> DeserializeSeed<'de> for Count<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Count<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.0.add(CONTAINER)?;
        while items.next_element_seed(Count(self.0))?.is_some() {
            self.0.add(ENTRY)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        self.0.add(CONTAINER)?;
        let mut count = 0;
        while members.next_key_seed(Name)?.is_some() {
            count += 1;
            self.0.add(if count <= ROOM { TEXTS } else { ENTRY })?;
            members.next_value_seed(Count(self.0))?;
        }
        Ok(())
    }
}

/// The name of a member, which counts with its value.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}
