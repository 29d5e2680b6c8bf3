//! The capacity of a node of the pool, for autoscalers that scale a pool up from zero (G5). Pure.

use std::collections::BTreeMap;

use capasg_api::{
    conditions::{Finding, GROUP_READY},
    pool::NodeInfo,
    reasons::group_ready,
};
use capasg_cloud::{InstanceType, InstanceTypes};

use crate::machine_pool::model::ResolvedImage;

/// `status.capacity`: for each resource, the smallest amount of any of the types. A device that one of the types does
/// not have is left out, since a pod that requires it might get a node without it. Elastic Fabric Adapters are left
/// out, since no spec attaches any.
#[must_use]
pub fn capacity(types: &InstanceTypes, ephemeral_storage_gib: Option<i32>) -> BTreeMap<String, String> {
    let mut least: Option<BTreeMap<String, i64>> = None;
    for kind in &types.offered {
        let of_kind = resources(kind);
        least = Some(match least {
            None => of_kind,
            Some(least) => least
                .into_iter()
                .filter_map(|(name, amount)| of_kind.get(&name).map(|other| (name, amount.min(*other))))
                .collect(),
        });
    }
    let mut capacity: BTreeMap<String, String> = least
        .unwrap_or_default()
        .into_iter()
        .map(|(name, amount)| {
            let quantity = if name == MEMORY { format!("{amount}Mi") } else { amount.to_string() };
            (name, quantity)
        })
        .collect();
    if let Some(gib) = ephemeral_storage_gib.filter(|_| !capacity.is_empty()) {
        capacity.insert(EPHEMERAL_STORAGE.to_owned(), format!("{gib}Gi"));
    }
    capacity
}

/// The finding about types that the region does not offer. AWS accepts some specs with such a type, and rejects only
/// the launch.
#[must_use]
pub fn not_offered(region: &str, types: &InstanceTypes) -> Option<Finding> {
    let unknown: Vec<&str> = types.unknown.iter().map(String::as_str).collect();
    let noun = if unknown.len() == 1 { "instance type" } else { "instance types" };
    let message = format!(
        "region {region} does not offer {noun} {}. Correct spec.instanceTypes. The controller retries \
         immediately after an edit.",
        unknown.join(", ")
    );
    let finding = Finding::new(GROUP_READY, false, group_ready::INSTANCE_TYPE_NOT_FOUND, message);
    (!unknown.is_empty()).then_some(finding)
}

const MEMORY: &str = "memory";
/// The resource that the volume of the kubelet provides.
pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";

/// The resources of a type, memory in MiB. Devices have the names of their device plugins.
fn resources(kind: &InstanceType) -> BTreeMap<String, i64> {
    let mut resources =
        BTreeMap::from([("cpu".to_owned(), i64::from(kind.vcpus)), (MEMORY.to_owned(), kind.memory_mib)]);
    let mut add = |name: &str, count: i32| {
        if count > 0 {
            *resources.entry(name.to_owned()).or_default() += i64::from(count);
        }
    };
    for gpu in &kind.gpus {
        match gpu.manufacturer.to_ascii_lowercase().as_str() {
            "nvidia" => add("nvidia.com/gpu", gpu.count),
            "amd" => add("amd.com/gpu", gpu.count),
            "habana" => add("habana.ai/gaudi", gpu.count),
            _ => {}
        }
    }
    add("aws.amazon.com/neuron", kind.neuron_devices);
    add("aws.amazon.com/neuroncore", kind.neuron_cores);
    resources
}

/// `status.nodeInfo`: of the image, or of the types if they all agree.
#[must_use]
pub fn node_info(types: &InstanceTypes, image: Option<&ResolvedImage>) -> Option<NodeInfo> {
    let of_types = || {
        let mut all = types.offered.iter().flat_map(|kind| &kind.architectures);
        let first = all.next()?;
        all.all(|other| other == first).then_some(first)
    };
    let architecture = image.and_then(|image| image.architecture.as_ref()).or_else(of_types);
    let operating_system = image.map(|image| if image.is_windows { "windows" } else { "linux" });
    let info = NodeInfo {
        architecture: architecture.map(|name| kubernetes_name(name).to_owned()),
        operating_system: operating_system.map(str::to_owned),
    };
    (info != NodeInfo::default()).then_some(info)
}

/// The name of an architecture in Kubernetes, by its name in AWS.
fn kubernetes_name(architecture: &str) -> &str {
    match architecture {
        "x86_64" | "x86_64_mac" => "amd64",
        "arm64_mac" => "arm64",
        "i386" => "386",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc};

    use capasg_cloud::Gpu;
    use proptest::prelude::*;

    use super::*;

    fn kind(name: &str, vcpus: i32, memory_mib: i64) -> InstanceType {
        InstanceType {
            name: name.to_owned(),
            vcpus,
            memory_mib,
            architectures: BTreeSet::from(["x86_64".to_owned()]),
            gpus: Vec::new(),
            neuron_devices: 0,
            neuron_cores: 0,
        }
    }

    fn gpu(manufacturer: &str, count: i32) -> Gpu {
        Gpu { manufacturer: manufacturer.to_owned(), count }
    }

    fn offered(kinds: Vec<InstanceType>) -> InstanceTypes {
        InstanceTypes { offered: kinds.into_iter().map(Arc::new).collect(), unknown: BTreeSet::new() }
    }

    fn pairs(capacity: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
        capacity.iter().map(|(name, quantity)| (name.as_str(), quantity.as_str())).collect()
    }

    fn image(architecture: Option<&str>, is_windows: bool) -> ResolvedImage {
        ResolvedImage {
            id: "ami-1".to_owned(),
            root_device: "/dev/xvda".to_owned(),
            architecture: architecture.map(str::to_owned),
            is_windows,
            block_devices: Vec::new(),
        }
    }

    #[test]
    fn g5_a_single_type_is_reported_in_kubernetes_quantities() {
        let types = offered(vec![kind("m7i.large", 2, 8192)]);
        assert_eq!(
            pairs(&capacity(&types, Some(80))),
            [("cpu", "2"), ("ephemeral-storage", "80Gi"), ("memory", "8192Mi")]
        );
        assert_eq!(pairs(&capacity(&types, None)), [("cpu", "2"), ("memory", "8192Mi")]);
    }

    #[test]
    fn g5_of_several_types_the_least_of_each_resource_counts() {
        let types = offered(vec![kind("a", 8, 8192), kind("b", 2, 65536), kind("c", 4, 16384)]);
        assert_eq!(pairs(&capacity(&types, None)), [("cpu", "2"), ("memory", "8192Mi")]);
    }

    #[test]
    fn g5_devices_have_the_names_of_their_plugins() {
        let mut many = kind("p5.48xlarge", 192, 2_097_152);
        many.gpus = vec![gpu("NVIDIA", 8)];
        let mut odd = kind("x", 2, 1024);
        odd.gpus = vec![gpu("AMD", 1), gpu("Habana", 2), gpu("Unheard of", 3)];
        (odd.neuron_devices, odd.neuron_cores) = (6, 12);
        let all = capacity(&offered(vec![many.clone()]), None);
        assert_eq!(all.get("nvidia.com/gpu").map(String::as_str), Some("8"));
        assert_eq!(
            pairs(&capacity(&offered(vec![odd]), None)),
            [
                ("amd.com/gpu", "1"),
                ("aws.amazon.com/neuron", "6"),
                ("aws.amazon.com/neuroncore", "12"),
                ("cpu", "2"),
                ("habana.ai/gaudi", "2"),
                ("memory", "1024Mi"),
            ]
        );
        let mixed = capacity(&offered(vec![many, kind("m7i.large", 2, 8192)]), None);
        assert_eq!(pairs(&mixed), [("cpu", "2"), ("memory", "8192Mi")], "one type of the two has no GPU");
    }

    #[test]
    fn g5_nothing_is_reported_of_unknown_types() {
        assert!(capacity(&InstanceTypes::default(), Some(80)).is_empty());
        assert_eq!(node_info(&InstanceTypes::default(), None), None);
    }

    #[test]
    fn g5_node_info_is_that_of_the_image() {
        let reported = |types: &InstanceTypes, image: Option<&ResolvedImage>| {
            let info = node_info(types, image).unwrap();
            (info.architecture, info.operating_system)
        };
        let some = |text: &str| Some(text.to_owned());
        let types = offered(vec![kind("a", 1, 1)]);
        let arm = image(Some("arm64"), false);
        assert_eq!(reported(&types, Some(&arm)), (some("arm64"), some("linux")));
        assert_eq!(reported(&types, Some(&image(None, true))), (some("amd64"), some("windows")));
        assert_eq!(reported(&types, None), (some("amd64"), None));
        let mut both = kind("b", 1, 1);
        both.architectures = BTreeSet::from(["arm64".to_owned()]);
        let mixed = offered(vec![kind("a", 1, 1), both]);
        assert_eq!(reported(&mixed, Some(&image(None, false))), (None, some("linux")));
    }

    #[test]
    fn g5_types_that_the_region_does_not_offer_are_named() {
        let mut types = offered(vec![kind("a", 1, 1)]);
        assert_eq!(not_offered("eu-west-1", &types), None);
        types.unknown = BTreeSet::from(["m7i.lrage".to_owned(), "m9.huge".to_owned()]);
        let finding = not_offered("eu-west-1", &types).unwrap();
        assert_eq!((finding.type_, finding.reason), (GROUP_READY, "InstanceTypeNotFound"));
        assert_eq!(
            finding.message,
            "region eu-west-1 does not offer instance types m7i.lrage, m9.huge. Correct spec.instanceTypes. \
             The controller retries immediately after an edit."
        );
    }

    proptest! {
        /// A node of any of the types has at least what is reported.
        #[test]
        fn g5_no_type_has_less_than_is_reported(
            kinds in prop::collection::vec((1..256i32, 1..1_000_000i64, 0..9i32, 0..9i32), 1..6)
        ) {
            let kinds: Vec<InstanceType> = kinds
                .into_iter()
                .enumerate()
                .map(|(index, (vcpus, memory, gpus, neuron))| InstanceType {
                    gpus: vec![gpu("NVIDIA", gpus)],
                    neuron_devices: neuron,
                    neuron_cores: neuron * 2,
                    ..kind(&index.to_string(), vcpus, memory)
                })
                .collect();
            let reported = capacity(&offered(kinds.clone()), None);
            for kind in &kinds {
                let has = resources(kind);
                for (name, quantity) in &reported {
                    let amount: i64 = quantity.trim_end_matches("Mi").parse().unwrap();
                    prop_assert!(has.get(name).is_some_and(|has| *has >= amount), "{name} {quantity} of {kind:?}");
                }
            }
            for name in ["cpu", "memory"] {
                prop_assert!(reported.contains_key(name), "needed to scale from zero");
            }
        }
    }
}
