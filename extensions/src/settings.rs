//! The settings of the extension, typed: what an `ExtensionConfig` or a patch of a `ClusterClass` passes with each request.
//!
//! Discovery does not carry settings, so each hook reads them, and answers with a failure in words if one is unknown or
//! invalid.

use std::time::Duration;

use capasg_api::pool::{DisruptionWindow, Window};
use thiserror::Error;

use crate::{
    protocol::Settings as Texts,
    version::{InvalidVersion, Version},
};

/// The names of all settings.
pub const NAMES: [&str; 8] = [
    "blockTimeoutSeconds",
    "degradedPoolTimeoutSeconds",
    "escalateAfterSeconds",
    "imageParameter",
    "kubernetesVersions",
    "maintenanceWindows",
    "onBlockTimeout",
    "requireApproval",
];

/// The settings that the hooks of topologies read. Core passes the settings of a patch in a `ClusterClass` to these hooks alone,
/// so that others have no effect there.
pub const OF_TOPOLOGIES: [&str; 1] = ["imageParameter"];

/// The longest value of a setting in seconds: a week.
const LONGEST: u64 = 7 * 24 * 3600;
/// The longest text that is read, in bytes.
const LONGEST_TEXT: usize = 64 * 1024;
/// The most windows, as of a pool.
const MOST_WINDOWS: usize = 20;

/// The settings with every default filled in.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How long a hook blocks for a technical reason. Setting `blockTimeoutSeconds`, 60 to 604800; 3600 by default.
    pub block_timeout: Duration,
    /// How long a hook blocks because a pool is not ready. Setting `degradedPoolTimeoutSeconds`, 0 to 604800; 600 by
    /// default.
    pub degraded_pool_timeout: Duration,
    /// What happens after these. Setting `onBlockTimeout`: `Continue` (default) or `Block`.
    pub on_block_timeout: OnBlockTimeout,
    /// How long a hook waits for a user before it reports a warning. Setting `escalateAfterSeconds`, 60 to 604800; 86400 by
    /// default.
    pub escalate_after: Duration,
    /// Whether an upgrade requires the annotation of its approval. Setting `requireApproval`: `true` or `false` (default).
    pub require_approval: bool,
    /// When an upgrade may begin its steps; empty for any time. Setting `maintenanceWindows`.
    pub maintenance_windows: Vec<Window>,
    /// The Kubernetes versions that upgrade plans choose from, sorted. Setting `kubernetesVersions`, separated by commas.
    pub kubernetes_versions: Vec<Version>,
    /// The SSM parameter of the image of nodes, with the placeholders `{version}`, `{minor}` and `{architecture}`. Setting
    /// `imageParameter`.
    pub image_parameter: Option<String>,
}

/// What happens when a technical block reaches its deadline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnBlockTimeout {
    /// The hook no longer blocks for this reason.
    #[default]
    Continue,
    /// The hook continues to block.
    Block,
}

/// Why a setting was rejected. The text names the setting, and neither depends on the time nor on the environment.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// There is no such setting.
    #[error("setting {0}: is unknown; the settings are {names}", names = NAMES.join(", "))]
    Unknown(String),
    /// A value is too long to be read.
    #[error("a setting has more than {LONGEST_TEXT} bytes")]
    TooLong,
    /// The value is not a number in its range.
    #[error("setting {name}: must be a number of seconds from {least} to {LONGEST}")]
    Seconds {
        /// The setting.
        name: &'static str,
        /// The least value.
        least: u64,
    },
    /// The value is none of the possible ones.
    #[error("setting {name}: must be {possible}")]
    Choice {
        /// The setting.
        name: &'static str,
        /// The possible values.
        possible: &'static str,
    },
    /// A version cannot be read.
    #[error("setting kubernetesVersions: {0}")]
    Version(#[from] InvalidVersion),
    /// The windows cannot be read.
    #[error("setting maintenanceWindows: {0}")]
    Windows(#[from] WindowsError),
    /// The parameter has another placeholder, or a character that names of parameters cannot have.
    #[error(
        "setting imageParameter: must be the name of an SSM parameter with no placeholders except {{version}}, {{minor}} and {{architecture}}"
    )]
    ImageParameter,
}

/// Why a list of windows was rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WindowsError {
    /// It is not a YAML list of windows.
    #[error("must be a YAML list of windows, each with schedule, durationSeconds and optionally timeZone")]
    Format,
    /// The text is too long to be read.
    #[error("must not have more than {LONGEST_TEXT} bytes")]
    TooLong,
    /// There are too many.
    #[error("must not have more than {MOST_WINDOWS} windows")]
    TooMany,
    /// The duration is out of range.
    #[error("window {0}: durationSeconds must be from 900 to 604800")]
    Duration(usize),
    /// A window is invalid.
    #[error("window {0}: {1}")]
    Window(usize, capasg_api::pool::WindowError),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            block_timeout: Duration::from_hours(1),
            degraded_pool_timeout: Duration::from_mins(10),
            on_block_timeout: OnBlockTimeout::Continue,
            escalate_after: Duration::from_hours(24),
            require_approval: false,
            maintenance_windows: Vec::new(),
            kubernetes_versions: Vec::new(),
            image_parameter: None,
        }
    }
}

impl Settings {
    /// Reads the settings of a request. The result is that of the first invalid setting in alphabetical order.
    ///
    /// # Errors
    /// If a setting is unknown, or its value is invalid.
    pub fn parse(texts: &Texts) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        for (name, text) in texts {
            let text = text.trim();
            if text.len() > LONGEST_TEXT {
                return Err(SettingsError::TooLong);
            }
            match name.as_str() {
                "blockTimeoutSeconds" => settings.block_timeout = seconds("blockTimeoutSeconds", text, 60)?,
                "degradedPoolTimeoutSeconds" => {
                    settings.degraded_pool_timeout = seconds("degradedPoolTimeoutSeconds", text, 0)?;
                }
                "escalateAfterSeconds" => {
                    settings.escalate_after = seconds("escalateAfterSeconds", text, 60)?;
                }
                "imageParameter" => {
                    if !is_image_parameter(text) {
                        return Err(SettingsError::ImageParameter);
                    }
                    settings.image_parameter = Some(text.to_owned());
                }
                "kubernetesVersions" => {
                    let versions = text.split(',').map(str::trim).filter(|version| !version.is_empty());
                    settings.kubernetes_versions = versions.map(str::parse).collect::<Result<_, _>>()?;
                    settings.kubernetes_versions.sort();
                    settings.kubernetes_versions.dedup();
                }
                "maintenanceWindows" => settings.maintenance_windows = windows(text)?,
                "onBlockTimeout" => {
                    settings.on_block_timeout = match text {
                        "Continue" => OnBlockTimeout::Continue,
                        "Block" => OnBlockTimeout::Block,
                        _ => return Err(choice("onBlockTimeout", "Continue or Block")),
                    };
                }
                "requireApproval" => {
                    settings.require_approval =
                        text.parse().map_err(|_| choice("requireApproval", "true or false"))?;
                }
                _ => return Err(SettingsError::Unknown(name.clone())),
            }
        }
        Ok(settings)
    }
}

impl Settings {
    /// The same with the settings of a patch of a `ClusterClass`, which override those of the `ExtensionConfig`.
    ///
    /// # Errors
    /// If a setting is unknown, or its value is invalid.
    pub(crate) fn overridden(&self, texts: &Texts) -> Result<Self, SettingsError> {
        let own = Self::parse(texts)?;
        let image_parameter = own.image_parameter.or_else(|| self.image_parameter.clone());
        Ok(Self { image_parameter, ..self.clone() })
    }
}

/// Reads a YAML or JSON list of windows, as of `spec.disruption.windows` of a pool; an empty text is an empty list.
///
/// # Errors
/// If it is no such list, or a window is invalid.
pub fn windows(text: &str) -> Result<Vec<Window>, WindowsError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    if text.len() > LONGEST_TEXT {
        return Err(WindowsError::TooLong);
    }
    let windows: Vec<DisruptionWindow> = serde_saphyr::from_str(text).map_err(|_| WindowsError::Format)?;
    if windows.len() > MOST_WINDOWS {
        return Err(WindowsError::TooMany);
    }
    let read = |(index, window): (usize, &DisruptionWindow)| {
        if !(900..=604_800).contains(&window.duration_seconds) {
            return Err(WindowsError::Duration(index));
        }
        Window::new(window).map_err(|error| WindowsError::Window(index, error))
    };
    windows.iter().enumerate().map(read).collect()
}

fn seconds(name: &'static str, text: &str, least: u64) -> Result<Duration, SettingsError> {
    let seconds = text.parse().ok().filter(|seconds| (least..=LONGEST).contains(seconds));
    seconds.map(Duration::from_secs).ok_or(SettingsError::Seconds { name, least })
}

const fn choice(name: &'static str, possible: &'static str) -> SettingsError {
    SettingsError::Choice { name, possible }
}

/// The rules of `spec.machine.image.ssmParameter`, and one more placeholder.
pub(crate) fn is_image_parameter(text: &str) -> bool {
    let plain = ["{version}", "{minor}", "{architecture}"]
        .iter()
        .fold(text.to_owned(), |text, placeholder| text.replace(placeholder, ""));
    let valid = |c: char| c.is_ascii_alphanumeric() || "_.:/-".contains(c);
    !text.is_empty() && text.len() <= 1011 && plain.chars().all(valid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str, text: &str) -> Result<Settings, SettingsError> {
        Settings::parse(&Texts::from([(name.to_owned(), text.to_owned())]))
    }

    #[test]
    fn settings_are_read_and_others_have_defaults() {
        let settings = parse("blockTimeoutSeconds", " 120 ").unwrap();
        assert_eq!(settings.block_timeout, Duration::from_mins(2));
        assert_eq!(settings.degraded_pool_timeout, Duration::from_mins(10));
        let settings = parse("kubernetesVersions", "v1.36.3, v1.35.1,v1.36.3,").unwrap();
        let versions: Vec<_> = settings.kubernetes_versions.iter().map(ToString::to_string).collect();
        assert_eq!(versions, ["v1.35.1", "v1.36.3"]);
        assert!(parse("requireApproval", "true").unwrap().require_approval);
        assert_eq!(parse("onBlockTimeout", "Block").unwrap().on_block_timeout, OnBlockTimeout::Block);
        let text = "[{schedule: '0 22 * * 6', durationSeconds: 7200, timeZone: Europe/Dublin}]";
        assert_eq!(parse("maintenanceWindows", text).unwrap().maintenance_windows.len(), 1);
        let settings = parse("imageParameter", "/images/{architecture}/{minor}/v{version}").unwrap();
        assert!(settings.image_parameter.is_some());
    }

    #[test]
    fn unknown_and_invalid_settings_are_named() {
        for (name, text, expected) in [
            (
                "blockTimeoutSeconds",
                "59",
                "setting blockTimeoutSeconds: must be a number of seconds from 60 to 604800",
            ),
            (
                "escalateAfterSeconds",
                "1h",
                "setting escalateAfterSeconds: must be a number of seconds from 60 to 604800",
            ),
            (
                "degradedPoolTimeoutSeconds",
                "-1",
                "setting degradedPoolTimeoutSeconds: must be a number of seconds from 0 to 604800",
            ),
            ("requireApproval", "yes", "setting requireApproval: must be true or false"),
            ("onBlockTimeout", "Open", "setting onBlockTimeout: must be Continue or Block"),
            (
                "kubernetesVersions",
                "1.36",
                "setting kubernetesVersions: \"1.36\" is not a Kubernetes version such as v1.36.3",
            ),
            (
                "maintenanceWindows",
                "[{schedule: '0 0 30 2 *', durationSeconds: 900}]",
                "setting maintenanceWindows: window 0: schedule: \"0 0 30 2 *\" matches no day",
            ),
            (
                "maintenanceWindows",
                "[{schedule: '0 0 * * *', durationSeconds: 1}]",
                "setting maintenanceWindows: window 0: durationSeconds must be from 900 to 604800",
            ),
        ] {
            assert_eq!(parse(name, text).unwrap_err().to_string(), expected);
        }
        assert_eq!(parse("maintenanceWindows", "nights").unwrap_err(), WindowsError::Format.into());
        assert_eq!(parse("imageParameter", "/images/{zone}").unwrap_err(), SettingsError::ImageParameter);
        let unknown = parse("requireAproval", "true").unwrap_err().to_string();
        assert!(
            unknown.starts_with("setting requireAproval: is unknown; the settings are blockTimeoutSeconds, ")
        );
    }

    #[test]
    fn every_name_is_a_setting() {
        for name in NAMES {
            assert!(!matches!(parse(name, "?"), Err(SettingsError::Unknown(_))), "{name}");
        }
        assert!(OF_TOPOLOGIES.iter().all(|name| NAMES.contains(name)));
    }
}
