//! The patch of the bootstrap template of a pool: the nodes create and mount the file systems of its data volumes.

use serde_json::{Map, Value, json};

use super::{
    PatchError, SPEC, kind_of,
    merge::difference,
    variables::PoolVariables,
    volumes::{FileSystem, VolumeVariable},
};

/// The API group of kubeadm's bootstrap templates. All its versions have the same fields for disks and mounts.
const GROUP: &str = "bootstrap.cluster.x-k8s.io/";
/// The kind.
pub(super) const KIND: &str = "KubeadmConfigTemplate";

/// Whether an object is a bootstrap template that can be patched.
pub(crate) fn is_bootstrap_template(object: &Value) -> bool {
    let (api_version, kind) = kind_of(object);
    is_of_kind(api_version, kind)
}

/// The same by version and kind.
pub(super) fn is_of_kind(api_version: &str, kind: &str) -> bool {
    api_version.starts_with(GROUP) && kind == KIND
}

/// A JSON merge patch below `spec.template.spec`; `None` if nothing changes.
///
/// # Errors
/// If the template has a spec that is no object.
pub(crate) fn patch(template: &Value, variables: &PoolVariables) -> Result<Option<Value>, PatchError> {
    let mut volumes: Vec<(&VolumeVariable, &FileSystem)> = file_systems(variables).collect();
    if volumes.is_empty() {
        return Ok(None);
    }
    // A path is mounted before those below it.
    volumes.sort_by(|(_, a), (_, b)| a.mount_path.cmp(&b.mount_path));
    let empty = json!({});
    let spec = template.pointer(SPEC).unwrap_or(&empty);
    let mut desired = spec.as_object().cloned().ok_or(PatchError::NoSpec(KIND))?;
    set_file_systems(&mut desired, &volumes);
    set_mounts(&mut desired, &volumes);
    let patch = difference(spec, &Value::Object(desired));
    Ok(patch.map(|patch| json!({"spec": {"template": {"spec": patch}}})))
}

/// What is wrong with the bootstrap template of a pool whose nodes create file systems.
pub(crate) fn problem(template: Option<&Value>, variables: &PoolVariables) -> Option<String> {
    file_systems(variables).next()?;
    let Some(template) = template else {
        return Some(format!("variable asgDataVolumes: file systems require a {KIND} as bootstrap template"));
    };
    let format = template.pointer(SPEC).and_then(|spec| spec.get("format")?.as_str()).unwrap_or_default();
    (!["", "cloud-config"].contains(&format)).then(|| {
        format!("variable asgDataVolumes: file systems require the format cloud-config of the {KIND}")
    })
}

fn file_systems(variables: &PoolVariables) -> impl Iterator<Item = (&VolumeVariable, &FileSystem)> {
    let volumes = variables.data_volumes.iter().flatten();
    volumes.filter_map(|volume| Some((volume, volume.file_system.as_ref()?)))
}

/// A volume that is created from a snapshot keeps its file system.
fn set_file_systems(spec: &mut Map<String, Value>, volumes: &[(&VolumeVariable, &FileSystem)]) {
    let created: Vec<_> = volumes.iter().filter(|(entry, _)| entry.volume.snapshot_id.is_none()).collect();
    if created.is_empty() {
        return;
    }
    let setup = spec.entry("diskSetup").or_insert_with(|| json!({}));
    let mut all = setup.get("filesystems").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_ours = |known: &Value| created.iter().any(|(entry, on)| known["device"] == entry.device(on));
    all.retain(|known| !is_ours(known));
    all.extend(created.iter().map(|(entry, on)| {
        json!({
            "device": entry.device(on), "filesystem": on.kind.as_str(), "label": entry.label(), "partition": "none",
            "overwrite": false,
        })
    }));
    match setup {
        Value::Object(setup) => drop(setup.insert("filesystems".to_owned(), all.into())),
        other => *other = json!({"filesystems": all}),
    }
}

fn set_mounts(spec: &mut Map<String, Value>, volumes: &[(&VolumeVariable, &FileSystem)]) {
    let mut all = spec.get("mounts").and_then(Value::as_array).cloned().unwrap_or_default();
    all.retain(|mount| volumes.iter().all(|(_, on)| mount.get(1).is_none_or(|path| *path != on.mount_path)));
    all.extend(volumes.iter().map(|(entry, on)| {
        let source = match entry.volume.snapshot_id {
            Some(_) => entry.device(on).to_owned(),
            None => format!("LABEL={}", entry.label()),
        };
        json!([source, on.mount_path, on.kind.as_str()])
    }));
    spec.insert("mounts".to_owned(), all.into());
}
