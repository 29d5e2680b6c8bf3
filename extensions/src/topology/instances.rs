//! Instance types by class, size and architecture.

use capasg_api::pool::InstanceTypeEntry;
use serde::Deserialize;

/// The variable `asgInstances`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Instances {
    /// The types, in order of preference; overrides class and size.
    pub(super) types: Option<Vec<InstanceTypeEntry>>,
    /// The class.
    pub(super) class: Option<Class>,
    /// The size, as AWS names it: `large`, `2xlarge`.
    pub(super) size: Option<String>,
    /// The architecture of the types and of the image.
    #[serde(default)]
    pub(super) architecture: Architecture,
}

/// What nodes are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Class {
    General,
    Compute,
    Memory,
    Gpu,
}

/// The architecture, as Kubernetes names it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Architecture {
    #[default]
    Amd64,
    Arm64,
}

impl Architecture {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// The architecture of an instance type by the name of its family: Graviton families have a `g` among the letters after
    /// the generation (`m7g`, `c6gn`, `g5g`), and `a1`. `None` if the name is not of that form.
    pub(super) fn of_type(instance_type: &str) -> Option<Self> {
        let (family, _) = instance_type.split_once('.')?;
        let attributes = family.trim_start_matches(|c: char| c.is_ascii_lowercase() || c == '-');
        let attributes = attributes.trim_start_matches(|c: char| c.is_ascii_digit());
        if attributes.len() == family.len() {
            return None;
        }
        let attributes = attributes.split('-').next().unwrap_or_default();
        Some(if family == "a1" || attributes.contains('g') { Self::Arm64 } else { Self::Amd64 })
    }
}

impl Instances {
    /// The instance types.
    pub(super) fn types(&self) -> Result<Vec<InstanceTypeEntry>, String> {
        if let Some(types) = &self.types {
            return match types.len() {
                1..=40 => Ok(types.clone()),
                _ => Err("types must have 1 to 40 instance types".to_owned()),
            };
        }
        let (Some(class), Some(size)) = (self.class, self.size.as_deref()) else {
            return Err("set types, or class and size".to_owned());
        };
        let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if size.is_empty() || size.len() > 32 || !size.chars().all(valid) {
            return Err("size must be the size of an instance type, such as large or 2xlarge".to_owned());
        }
        let entry = |family: &&str| InstanceTypeEntry::new(format!("{family}.{size}"));
        Ok(families(class, self.architecture).iter().map(entry).collect())
    }
}

/// The families of a class, the preferred one first. Several, so that a group has other types when AWS has no capacity.
const fn families(class: Class, architecture: Architecture) -> &'static [&'static str] {
    match (class, architecture) {
        (Class::General, Architecture::Amd64) => &["m7i", "m7a", "m6i", "m6a"],
        (Class::General, Architecture::Arm64) => &["m8g", "m7g", "m6g"],
        (Class::Compute, Architecture::Amd64) => &["c7i", "c7a", "c6i", "c6a"],
        (Class::Compute, Architecture::Arm64) => &["c8g", "c7g", "c6g"],
        (Class::Memory, Architecture::Amd64) => &["r7i", "r7a", "r6i", "r6a"],
        (Class::Memory, Architecture::Arm64) => &["r8g", "r7g", "r6g"],
        (Class::Gpu, Architecture::Amd64) => &["g6", "g5"],
        (Class::Gpu, Architecture::Arm64) => &["g5g"],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn types(value: serde_json::Value) -> Result<Vec<String>, String> {
        let types = serde_json::from_value::<Instances>(value).map_err(|error| error.to_string())?.types()?;
        Ok(types.into_iter().map(|entry| entry.type_).collect())
    }

    #[test]
    fn types_follow_from_class_size_and_architecture() {
        assert_eq!(
            types(json!({"class": "general", "size": "xlarge"})).unwrap(),
            ["m7i.xlarge", "m7a.xlarge", "m6i.xlarge", "m6a.xlarge"]
        );
        assert_eq!(
            types(json!({"class": "gpu", "size": "2xlarge", "architecture": "arm64"})).unwrap(),
            ["g5g.2xlarge"]
        );
        assert_eq!(types(json!({"types": [{"type": "c7i.large"}], "class": "gpu"})).unwrap(), ["c7i.large"]);
    }

    #[test]
    fn what_gives_no_types_is_rejected() {
        for value in [
            json!({}),
            json!({"class": "general"}),
            json!({"size": "large"}),
            json!({"class": "general", "size": "Large;"}),
            json!({"types": []}),
            json!({"types": ["c7i.large"]}),
            json!({"class": "cheap", "size": "large"}),
            json!({"clas": "general"}),
        ] {
            assert!(types(value.clone()).is_err(), "{value}");
        }
    }

    #[test]
    fn every_family_has_the_architecture_of_its_class() {
        for class in [Class::General, Class::Compute, Class::Memory, Class::Gpu] {
            for architecture in [Architecture::Amd64, Architecture::Arm64] {
                for family in families(class, architecture) {
                    assert_eq!(
                        Architecture::of_type(&format!("{family}.large")),
                        Some(architecture),
                        "{family}"
                    );
                }
            }
        }
        for (name, architecture) in [
            ("a1.large", Some(Architecture::Arm64)),
            ("c6gn.large", Some(Architecture::Arm64)),
            ("x2gd.large", Some(Architecture::Arm64)),
            ("g4dn.xlarge", Some(Architecture::Amd64)),
            ("u-6tb1.metal", Some(Architecture::Amd64)),
            ("m7i-flex.large", Some(Architecture::Amd64)),
            ("nonsense", None),
        ] {
            assert_eq!(Architecture::of_type(name), architecture, "{name}");
        }
    }
}
