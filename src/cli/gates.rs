//! `--feature-gates`: switches for unfinished features. There are none yet, so every name is rejected.

use std::str::FromStr;

use thiserror::Error;

/// The chosen feature gates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeatureGates;

/// Why feature gates were rejected.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum InvalidGates {
    /// Not `Name=true` or `Name=false`.
    #[error("`{0}` is not of the form Name=true or Name=false")]
    Form(String),
    /// A name that this version does not know.
    #[error(
        "unknown feature gate `{0}`: this version has no feature gates. Remove `{0}` from --feature-gates; gates of other \
         providers, such as MachinePool, are set for them alone"
    )]
    Unknown(String),
}

impl FromStr for FeatureGates {
    type Err = InvalidGates;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split(',').find(|gate| !gate.is_empty()) {
            None => Ok(Self),
            Some(gate) => Err(match gate.split_once('=') {
                Some((name, "true" | "false")) => InvalidGates::Unknown(name.to_owned()),
                _ => InvalidGates::Form(gate.to_owned()),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_gate_that_it_does_not_know() {
        assert_eq!("".parse(), Ok(FeatureGates));
        assert_eq!(
            "MachinePool=true".parse::<FeatureGates>(),
            Err(InvalidGates::Unknown("MachinePool".into()))
        );
        assert_eq!("MachinePool".parse::<FeatureGates>(), Err(InvalidGates::Form("MachinePool".into())));
    }
}
