//! The value tree in which calls enter and leave the core, whatever protocol carried them.

use std::collections::BTreeMap;

/// Parameters or a reply: text, lists and maps keyed by the member names of the AWS service model.
///
/// Every scalar is text as AWS writes it: `"3"`, `"true"`, `"2026-01-01T00:00:00Z"`. Lists are plain lists under
/// the member's name: neither the `member.N` of the Auto Scaling query protocol nor the singular names of EC2's
/// requests (`InstanceId.1`) nor its `Set`/`item` replies appear here. EC2 uses the model's member names in both
/// directions too (`LaunchTemplate.LatestVersionNumber`), not the lower-camel wire names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Tree {
    /// A scalar.
    Text(String),
    /// A list, in order.
    List(Vec<Self>),
    /// A structure or a map, in name order.
    Map(BTreeMap<String, Self>),
}

impl Default for Tree {
    fn default() -> Self {
        Self::Map(BTreeMap::new())
    }
}

impl Tree {
    /// An empty structure.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A list of anything that becomes a tree.
    pub fn list<T: Into<Self>>(items: impl IntoIterator<Item = T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }

    /// Adds or replaces a member; a no-op on text and lists.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Self>) -> Self {
        self.set(name, value);
        self
    }

    /// Adds a member if there is a value.
    #[must_use]
    pub fn with_opt<T: Into<Self>>(self, name: &str, value: Option<T>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds or replaces a member in place; a no-op on text and lists.
    pub fn set(&mut self, name: &str, value: impl Into<Self>) {
        if let Self::Map(members) = self {
            members.insert(name.to_owned(), value.into());
        }
    }

    /// A member of a structure.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Map(members) => members.get(name),
            _ => None,
        }
    }

    /// The members of a structure in name order; none for text and lists.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Self)> {
        let members = match self {
            Self::Map(members) => Some(members),
            _ => None,
        };
        members.into_iter().flatten().map(|(name, value)| (name.as_str(), value))
    }

    /// The scalar's text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The items of a list; empty for anything else.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    /// The text of member `name`, if it is there and is a scalar.
    #[must_use]
    pub fn text_of(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Self::text)
    }

    /// The items of member `name`; empty if it is missing.
    #[must_use]
    pub fn items_of(&self, name: &str) -> &[Self] {
        self.get(name).map_or(&[], Self::items)
    }

    /// The texts of the list `name`; empty if it is missing.
    #[must_use]
    pub fn texts_of(&self, name: &str) -> Vec<String> {
        self.items_of(name).iter().filter_map(Self::text).map(str::to_owned).collect()
    }

    /// Member `name` as a number.
    #[must_use]
    pub fn number_of(&self, name: &str) -> Option<i64> {
        self.text_of(name).and_then(|text| text.parse().ok())
    }

    /// Member `name` as a boolean.
    #[must_use]
    pub fn flag_of(&self, name: &str) -> Option<bool> {
        self.text_of(name).and_then(|text| text.parse().ok())
    }

    /// Walks structures by a dotted path such as `LaunchTemplateData.UserData`.
    #[must_use]
    pub fn at(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |tree, name| tree.get(name))
    }

    /// The tree as JSON: text becomes strings, lists arrays, structures objects.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Text(text) => serde_json::Value::String(text.clone()),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Map(members) => {
                members.iter().map(|(name, value)| (name.clone(), value.to_json())).collect()
            }
        }
    }
}

impl From<&str> for Tree {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for Tree {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<String> for Tree {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Tree {
    fn from(value: bool) -> Self {
        Self::Text(value.to_string())
    }
}

macro_rules! from_numbers {
    ($($number:ty),*) => {$(
        impl From<$number> for Tree {
            fn from(value: $number) -> Self {
                Self::Text(value.to_string())
            }
        }
    )*};
}
from_numbers!(i32, i64, u32, u64, usize);

impl<T: Into<Self>> From<Vec<T>> for Tree {
    fn from(items: Vec<T>) -> Self {
        Self::list(items)
    }
}

impl<const N: usize> From<[(&str, Self); N]> for Tree {
    fn from(members: [(&str, Self); N]) -> Self {
        Self::Map(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn getters_read_what_builders_wrote() {
        let tree = Tree::new()
            .with("Name", "a")
            .with("Count", 3)
            .with("On", true)
            .with_opt("None", None::<&str>)
            .with("Ids", vec!["x", "y"])
            .with("Inner", Tree::new().with("Leaf", "z"));
        assert_eq!(tree.text_of("Name"), Some("a"));
        assert_eq!(tree.number_of("Count"), Some(3));
        assert_eq!(tree.flag_of("On"), Some(true));
        assert_eq!(tree.get("None"), None);
        assert_eq!(tree.texts_of("Ids"), ["x", "y"]);
        assert_eq!(tree.at("Inner.Leaf").and_then(Tree::text), Some("z"));
        assert_eq!(tree.to_json()["Ids"][1], "y");
    }
}
