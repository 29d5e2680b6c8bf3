//! What an instance of a type has, as `DescribeInstanceTypes` shows it.

use std::collections::BTreeSet;

/// An instance type. It never changes: AWS makes new types instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceType {
    /// `InstanceType`, for example `m7i.large`.
    pub name: String,
    /// `VCpuInfo.DefaultVCpus`.
    pub vcpus: i32,
    /// `MemoryInfo.SizeInMiB`: what the instance has, before the kernel takes its part.
    pub memory_mib: i64,
    /// `ProcessorInfo.SupportedArchitectures`, for example `x86_64`.
    pub architectures: BTreeSet<String>,
    /// `GpuInfo.Gpus`, one entry for each kind of device.
    pub gpus: Vec<Gpu>,
    /// `NeuronInfo.NeuronDevices`: how many Inferentia or Trainium devices.
    pub neuron_devices: i32,
    /// The cores of all these devices together (`NeuronDevices.CoreInfo.Count`).
    pub neuron_cores: i32,
}

/// GPUs of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// `Manufacturer`, for example `NVIDIA`.
    pub manufacturer: String,
    /// How many devices the operating system sees: `Count`, or `LogicalGpuCount` of a type that has a part of one.
    pub count: i32,
}
