//! Images, and the block devices that their instances have.

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// `ImageId`.
    pub id: String,
    /// `RootDeviceName`, for example `/dev/xvda`.
    pub root_device_name: Option<String>,
    /// `Architecture`, for example `x86_64`.
    pub architecture: Option<String>,
    /// Whether `Platform` is `windows`; AWS names no other.
    pub is_windows: bool,
    /// `BlockDeviceMappings`: the root device, and all others.
    pub block_devices: Vec<ImageBlockDevice>,
}

/// One `BlockDeviceMapping` of an image. A mapping with neither a volume nor a virtual name is that of a device which the
/// image suppresses (`NoDevice`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageBlockDevice {
    /// `DeviceName`.
    pub device_name: String,
    /// `VirtualName` of an instance store volume, for example `ephemeral0`.
    pub virtual_name: Option<String>,
    /// `Ebs`.
    pub volume: Option<ImageVolume>,
}

/// An EBS volume that each instance of an image has, unless a launch template sets it otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageVolume {
    /// `VolumeSize` in GiB; it may exceed the size of the snapshot.
    pub size_gib: Option<i32>,
    /// `VolumeType`.
    pub volume_type: Option<String>,
    /// `Encrypted`: whether the snapshot is, so that the volume always is.
    pub encrypted: bool,
    /// `SnapshotId`.
    pub snapshot_id: Option<String>,
    /// `DeleteOnTermination`.
    pub delete_on_termination: bool,
}

/// Whether an operating system may give two device names of EC2 to the same device: Linux calls `/dev/sdb` `/dev/xvdb`, and
/// `/dev/sda1` and `/dev/xvda` are both names of root devices. EC2 itself tells the names apart.
#[must_use]
pub fn is_same_device(one: &str, other: &str) -> bool {
    one == other || matches!((device(one), device(other)), (Some(one), Some(other)) if one == other)
}

/// What differs between the names of different devices: `b` of `/dev/sdb`, `/dev/xvdb` and `xvdb`.
fn device(name: &str) -> Option<&str> {
    let name = name.strip_prefix("/dev/").unwrap_or(name);
    let letters = name.strip_prefix("xvd").or_else(|| name.strip_prefix("sd"))?;
    Some(if letters == "a1" { "a" } else { letters })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_same_device_are_found() {
        for (one, other) in [
            ("/dev/sda1", "/dev/xvda"),
            ("/dev/sda1", "/dev/sda"),
            ("/dev/xvda1", "/dev/sda1"),
            ("/dev/sdb", "/dev/xvdb"),
            ("xvdf", "/dev/sdf"),
            ("/dev/nvme0n1", "/dev/nvme0n1"),
        ] {
            assert!(is_same_device(one, other) && is_same_device(other, one), "{one} {other}");
        }
        for (one, other) in [
            ("/dev/sda1", "/dev/sdb"),
            ("/dev/xvdb", "/dev/xvdba"),
            ("/dev/sdb1", "/dev/sdb"),
            ("/dev/nvme0n1", "/dev/nvme1n1"),
            ("", "/dev/sda"),
        ] {
            assert!(!is_same_device(one, other), "{one} {other}");
        }
    }
}
