//! The variable `asgDataVolumes`: what the group attaches to each instance, and the file systems that its node creates there.

use std::collections::BTreeSet;

use capasg_api::pool::DataVolume;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The most data volumes of a pool.
pub(super) const MOST: usize = 27;

/// One entry of the variable: a data volume of the pool, and optionally a file system on it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub(super) struct VolumeVariable {
    /// The volume, a field of the `ASGMachinePoolTemplate`.
    pub(super) volume: DataVolume,
    /// The file system, a part of the bootstrap template.
    pub(super) file_system: Option<FileSystem>,
}

/// A file system on a data volume.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FileSystem {
    /// Where it is mounted.
    pub(super) mount_path: String,
    /// Its type.
    #[serde(rename = "type", default)]
    pub(super) kind: FileSystemType,
    /// The device as the instance names it; the device name of the volume unless it is set.
    pub(super) device: Option<String>,
}

/// The type of a file system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FileSystemType {
    #[default]
    Ext4,
    Xfs,
}

impl FileSystemType {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }
}

impl TryFrom<Map<String, Value>> for VolumeVariable {
    type Error = serde_json::Error;

    fn try_from(mut members: Map<String, Value>) -> Result<Self, Self::Error> {
        let file_system = members.remove("fileSystem").map(serde_json::from_value).transpose()?;
        Ok(Self { volume: serde_json::from_value(members.into())?, file_system })
    }
}

impl VolumeVariable {
    /// The label of the file system, by which it is mounted: the instance may name its devices in another order after each
    /// start. At most 12 characters, which is what XFS allows.
    pub(super) fn label(&self) -> String {
        format!("data-{}", self.volume.device_name.trim_start_matches("/dev/"))
    }

    /// The device as the instance names it.
    pub(super) fn device<'a>(&'a self, file_system: &'a FileSystem) -> &'a str {
        file_system.device.as_deref().unwrap_or(&self.volume.device_name)
    }
}

/// What is wrong with the variable, apart from what the rules of the fields say.
pub(super) fn problem(volumes: &[VolumeVariable]) -> Option<String> {
    if volumes.len() > MOST {
        return Some(format!("must not have more than {MOST} volumes"));
    }
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for entry in volumes {
        let volume = &entry.volume;
        let name = &volume.device_name;
        if !is_device_name(name) {
            return Some(format!("deviceName must be a device name such as /dev/xvdb, not {name:?}"));
        }
        if !names.insert(name) {
            return Some(format!("deviceName {name} must not occur twice"));
        }
        if volume.size_gib.is_none() && volume.snapshot_id.is_none() {
            return Some(format!("volume {name}: set sizeGiB, snapshotID or both"));
        }
        let Some(file_system) = &entry.file_system else { continue };
        if !is_path(&file_system.mount_path) || !is_path(entry.device(file_system)) {
            return Some(format!(
                "volume {name}: mountPath and device must be absolute paths without spaces"
            ));
        }
        if !paths.insert(&file_system.mount_path) {
            return Some(format!("mountPath {} must not occur twice", file_system.mount_path));
        }
    }
    None
}

/// The rule of `machine.dataVolumes[].deviceName`.
fn is_device_name(name: &str) -> bool {
    let rest =
        name.strip_prefix("/dev/").and_then(|rest| rest.strip_prefix("xvd").or(rest.strip_prefix("sd")));
    let Some(rest) = rest else { return false };
    let letters = rest.chars().take_while(char::is_ascii_lowercase).count();
    let digits = &rest[letters..];
    (1..=2).contains(&letters) && digits.len() <= 2 && digits.chars().all(|c| c.is_ascii_digit())
}

/// A path that needs no quotes in `fstab`, and is not the root.
fn is_path(path: &str) -> bool {
    let valid = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
    path.len() > 1 && path.len() <= 256 && path.starts_with('/') && path.chars().all(valid)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<Vec<VolumeVariable>, String> {
        let volumes: Vec<VolumeVariable> =
            serde_json::from_value(value).map_err(|error| error.to_string())?;
        problem(&volumes).map_or(Ok(volumes), Err)
    }

    #[test]
    fn volumes_are_read_with_their_file_systems() {
        let volumes = read(json!([
            {"deviceName": "/dev/xvdb", "sizeGiB": 100, "fileSystem": {"mountPath": "/var/lib/containerd"}},
            {"deviceName": "/dev/sdf1", "snapshotID": "snap-0a1b2c3d"},
        ]))
        .unwrap();
        assert_eq!(volumes[0].label(), "data-xvdb");
        let file_system = volumes[0].file_system.as_ref().unwrap();
        assert_eq!((volumes[0].device(file_system), file_system.kind.as_str()), ("/dev/xvdb", "ext4"));
        assert_eq!((volumes[0].volume.size_gib, &volumes[1].file_system), (Some(100), &None));
        let longest = read(json!([{"deviceName": "/dev/xvdba12", "sizeGiB": 1}])).unwrap();
        assert_eq!(longest[0].label().len(), 12, "XFS allows no longer label");
    }

    #[test]
    fn what_no_node_could_mount_is_rejected() {
        let volume =
            |file_system: Value| json!({"deviceName": "/dev/xvdb", "sizeGiB": 1, "fileSystem": file_system});
        for (value, part) in [
            (json!([{"deviceName": "/dev/nvme1n1", "sizeGiB": 1}]), "must be a device name"),
            (json!([{"deviceName": "/dev/xvdabc", "sizeGiB": 1}]), "must be a device name"),
            (json!([{"deviceName": "/dev/xvdb"}]), "set sizeGiB, snapshotID or both"),
            (
                json!([{"deviceName": "/dev/xvdb", "sizeGiB": 1}, {"deviceName": "/dev/xvdb", "sizeGiB": 2}]),
                "twice",
            ),
            (json!([volume(json!({"mountPath": "data"}))]), "absolute paths"),
            (json!([volume(json!({"mountPath": "/"}))]), "absolute paths"),
            (json!([volume(json!({"mountPath": "/a b"}))]), "absolute paths"),
            (json!([volume(json!({"mountPath": "/a", "device": "LABEL=a"}))]), "absolute paths"),
            (json!([volume(json!({"mountPath": "/a", "type": "btrfs"}))]), "unknown variant"),
            (json!([volume(json!({"path": "/a"}))]), "unknown field"),
            (json!([volume(json!({}))]), "missing field"),
            (json!([{"sizeGiB": 1}]), "missing field"),
        ] {
            let why = read(value.clone()).unwrap_err();
            assert!(why.contains(part), "{value}: {why}");
        }
        let two = json!([
            volume(json!({"mountPath": "/a"})),
            {"deviceName": "/dev/xvdc", "sizeGiB": 1, "fileSystem": {"mountPath": "/a"}},
        ]);
        assert_eq!(read(two).unwrap_err(), "mountPath /a must not occur twice");
        let many: Vec<Value> =
            (0..28).map(|number| json!({"deviceName": format!("/dev/sdb{number}"), "sizeGiB": 1})).collect();
        assert_eq!(read(many.into()).unwrap_err(), "must not have more than 27 volumes");
    }
}
