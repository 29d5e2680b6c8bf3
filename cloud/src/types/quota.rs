//! The quotas of EC2 for vCPUs: an account has one in each region for each purchase option and group of instance families.

use std::collections::BTreeMap;

use super::PurchaseOption;

/// A quota for vCPUs of running instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VcpuQuota {
    /// `QuotaCode`, for example `L-1216C47A`.
    pub code: &'static str,
    /// `QuotaName`, which has the purchase option and the families.
    pub name: &'static str,
}

/// An instance that is pending or running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningInstance {
    /// `InstanceType`.
    pub instance_type: String,
    /// How it is paid for (`InstanceLifecycle`).
    pub purchase: PurchaseOption,
    /// `CpuOptions`: cores multiplied by threads per core; 0 if AWS does not say.
    pub vcpus: i64,
}

/// Families whose vCPUs AWS counts together.
struct Group {
    /// The letters before the generation.
    families: &'static [&'static str],
    on_demand: VcpuQuota,
    /// AWS has no Spot quota for some.
    spot: Option<VcpuQuota>,
}

const fn quota(code: &'static str, name: &'static str) -> VcpuQuota {
    VcpuQuota { code, name }
}

/// As Service Quotas lists them for the service `ec2`. A family that is missing here has no known quota.
static GROUPS: [Group; 10] = [
    Group {
        families: &["a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"],
        on_demand: quota("L-1216C47A", "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"),
        spot: Some(quota("L-34B43A08", "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests")),
    },
    Group {
        families: &["dl"],
        on_demand: quota("L-6E869C2A", "Running On-Demand DL instances"),
        spot: Some(quota("L-85EED4F7", "All DL Spot Instance Requests")),
    },
    Group {
        families: &["f"],
        on_demand: quota("L-74FC7D96", "Running On-Demand F instances"),
        spot: Some(quota("L-88CF9481", "All F Spot Instance Requests")),
    },
    Group {
        families: &["g", "gr", "vt"],
        on_demand: quota("L-DB2E81BA", "Running On-Demand G and VT instances"),
        spot: Some(quota("L-3819A6DF", "All G and VT Spot Instance Requests")),
    },
    Group {
        families: &["hpc"],
        on_demand: quota("L-F7808C92", "Running On-Demand HPC instances"),
        spot: None,
    },
    Group {
        families: &["inf"],
        on_demand: quota("L-1945791B", "Running On-Demand Inf instances"),
        spot: Some(quota("L-B5D1601B", "All Inf Spot Instance Requests")),
    },
    Group {
        families: &["p"],
        on_demand: quota("L-417A185B", "Running On-Demand P instances"),
        spot: Some(quota("L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests")),
    },
    Group {
        families: &["trn"],
        on_demand: quota("L-2C3B7624", "Running On-Demand Trn instances"),
        spot: Some(quota("L-6B0D517C", "All Trn Spot Instance Requests")),
    },
    Group {
        families: &["u"],
        on_demand: quota("L-43DA4232", "Running On-Demand High Memory instances"),
        spot: None,
    },
    Group {
        families: &["x"],
        on_demand: quota("L-7295265B", "Running On-Demand X instances"),
        spot: Some(quota("L-E3A00192", "All X Spot Instance Requests")),
    },
];

impl VcpuQuota {
    /// The quota that instances of a type count towards; `None` if it is not known.
    #[must_use]
    pub fn of(instance_type: &str, purchase: PurchaseOption) -> Option<Self> {
        let (family, _) = instance_type.split_once('.')?;
        let letters = family.find(|c: char| !c.is_ascii_lowercase())?;
        let (letters, generation) = family.split_at(letters);
        let group = GROUPS.iter().find(|group| group.families.contains(&letters))?;
        match purchase {
            PurchaseOption::OnDemand => Some(group.on_demand),
            // Sources differ about the Spot quota of P5 and later.
            PurchaseOption::Spot if letters == "p" && !generation.starts_with(['2', '3', '4']) => None,
            PurchaseOption::Spot => group.spot,
            // Capacity Blocks do not count.
            PurchaseOption::Scheduled => None,
        }
    }
}

/// The vCPUs in use by quota.
#[must_use]
pub(crate) fn vcpus_by_quota(instances: &[RunningInstance]) -> BTreeMap<VcpuQuota, i64> {
    let mut used = BTreeMap::new();
    for instance in instances {
        if let Some(quota) = VcpuQuota::of(&instance.instance_type, instance.purchase) {
            *used.entry(quota).or_default() += instance.vcpus;
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{PurchaseOption::*, *};

    fn code(instance_type: &str, purchase: PurchaseOption) -> Option<&'static str> {
        VcpuQuota::of(instance_type, purchase).map(|quota| quota.code)
    }

    #[test]
    fn types_count_towards_the_quota_of_their_family_and_purchase_option() {
        for (name, on_demand, spot) in [
            ("m7i.large", Some("L-1216C47A"), Some("L-34B43A08")),
            ("m7i-flex.large", Some("L-1216C47A"), Some("L-34B43A08")),
            ("t3.nano", Some("L-1216C47A"), Some("L-34B43A08")),
            ("im4gn.large", Some("L-1216C47A"), Some("L-34B43A08")),
            ("dl1.24xlarge", Some("L-6E869C2A"), Some("L-85EED4F7")),
            ("f2.6xlarge", Some("L-74FC7D96"), Some("L-88CF9481")),
            ("g5.xlarge", Some("L-DB2E81BA"), Some("L-3819A6DF")),
            ("gr6.4xlarge", Some("L-DB2E81BA"), Some("L-3819A6DF")),
            ("vt1.3xlarge", Some("L-DB2E81BA"), Some("L-3819A6DF")),
            ("hpc7a.96xlarge", Some("L-F7808C92"), None),
            ("inf2.xlarge", Some("L-1945791B"), Some("L-B5D1601B")),
            ("p4d.24xlarge", Some("L-417A185B"), Some("L-7212CCBC")),
            ("p5.48xlarge", Some("L-417A185B"), None),
            ("trn1n.32xlarge", Some("L-2C3B7624"), Some("L-6B0D517C")),
            ("u-6tb1.metal", Some("L-43DA4232"), None),
            ("u7i-12tb.224xlarge", Some("L-43DA4232"), None),
            ("x2idn.16xlarge", Some("L-7295265B"), Some("L-E3A00192")),
            ("mac2.metal", None, None),
            ("hs1.8xlarge", None, None),
            ("nonsense", None, None),
            ("m.large", None, None),
            ("", None, None),
        ] {
            assert_eq!((code(name, OnDemand), code(name, Spot)), (on_demand, spot), "{name}");
            assert_eq!(code(name, Scheduled), None, "{name}");
        }
    }

    #[test]
    fn no_code_and_no_family_is_listed_twice() {
        let codes = || GROUPS.iter().flat_map(|group| [Some(group.on_demand), group.spot]).flatten();
        assert_eq!(codes().map(|quota| quota.code).collect::<BTreeSet<_>>().len(), codes().count());
        let families = || GROUPS.iter().flat_map(|group| group.families);
        assert_eq!(families().collect::<BTreeSet<_>>().len(), families().count());
    }

    #[test]
    fn vcpus_in_use_are_summed_by_quota() {
        let instance =
            |name: &str, purchase, vcpus| RunningInstance { instance_type: name.to_owned(), purchase, vcpus };
        let used = vcpus_by_quota(&[
            instance("m7i.large", OnDemand, 2),
            instance("c7i.xlarge", OnDemand, 4),
            instance("m7i.large", Spot, 2),
            instance("g5.xlarge", OnDemand, 4),
            instance("mac2.metal", OnDemand, 12),
            instance("m7i.large", Scheduled, 2),
        ]);
        let used: Vec<(&str, i64)> = used.iter().map(|(quota, vcpus)| (quota.code, *vcpus)).collect();
        assert_eq!(used, [("L-1216C47A", 6), ("L-34B43A08", 2), ("L-DB2E81BA", 4)]);
    }
}
