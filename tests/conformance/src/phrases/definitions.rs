//! What `kubectl explain` prints and what the API server answers: descriptions and messages of the definitions.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::Text;

pub fn texts(path: &str, yaml: &str) -> Result<Vec<Text>> {
    let value: Value = serde_saphyr::from_str(yaml).with_context(|| format!("cannot parse {path}"))?;
    let mut texts = Vec::new();
    collect(path, &value, "", &mut texts);
    Ok(texts)
}

fn collect(path: &str, value: &Value, place: &str, texts: &mut Vec<Text>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if key == "description" || key == "message" => {
                        let place = if place.is_empty() { key } else { place }.to_owned();
                        texts.push(Text { path: path.to_owned(), place, text: text.clone() });
                    }
                    value => {
                        // The names of fields, without the schema's own words.
                        let silent = ["properties", "items", "versions", "schema", "openAPIV3Schema"];
                        let next = match (silent.contains(&key.as_str()), place.is_empty()) {
                            (true, _) => place.to_owned(),
                            (false, true) => key.clone(),
                            (false, false) => format!("{place}.{key}"),
                        };
                        collect(path, value, &next, texts);
                    }
                }
            }
        }
        Value::Array(values) => {
            for value in values {
                collect(path, value, place, texts);
            }
        }
        _ => {}
    }
}
