//! Instance types and their resources.

use aws_sdk_ec2::{
    Client,
    types::{
        GpuDeviceInfo, GpuInfo, InstanceTypeInfo, MemoryInfo, NeuronDeviceInfo, NeuronInfo, ProcessorInfo,
        VCpuInfo,
    },
};
use capasg_cloud::{Gpu, InstanceType, Page, Result};

use super::filters::filter;
use crate::call::{call, unreadable};

/// The most that this call returns at once.
const MAX_RESULTS: i32 = 100;

/// `DescribeInstanceTypes` by filter: a type that the region does not offer is absent instead of failing the call.
pub(crate) async fn describe(
    client: &Client,
    names: &[String],
    token: Option<String>,
) -> Result<Page<InstanceType>> {
    if names.is_empty() {
        return Ok(Page::last(Vec::new()));
    }
    let api = "DescribeInstanceTypes";
    let request = client
        .describe_instance_types()
        .filters(filter("instance-type", names))
        .max_results(MAX_RESULTS)
        .set_next_token(token);
    let reply = call(api, request.send()).await?;
    let items = reply.instance_types().iter().map(|info| instance_type(api, info)).collect::<Result<_>>()?;
    Ok(Page { items, next_token: reply.next_token })
}

fn instance_type(api: &'static str, info: &InstanceTypeInfo) -> Result<InstanceType> {
    let name = info.instance_type().ok_or_else(|| unreadable(api, "InstanceType"))?;
    let vcpus = info.v_cpu_info().and_then(VCpuInfo::default_v_cpus);
    let memory = info.memory_info().and_then(MemoryInfo::size_in_mib);
    let processor = info.processor_info();
    let gpus = info.gpu_info().map(GpuInfo::gpus).unwrap_or_default();
    let neuron = info.neuron_info().map(NeuronInfo::neuron_devices).unwrap_or_default();
    Ok(InstanceType {
        name: name.as_str().to_owned(),
        vcpus: vcpus.ok_or_else(|| unreadable(api, "VCpuInfo.DefaultVCpus"))?,
        memory_mib: memory.ok_or_else(|| unreadable(api, "MemoryInfo.SizeInMiB"))?,
        architectures: processor
            .map(ProcessorInfo::supported_architectures)
            .unwrap_or_default()
            .iter()
            .map(|architecture| architecture.as_str().to_owned())
            .collect(),
        gpus: gpus.iter().map(gpu).collect(),
        neuron_devices: neuron.iter().filter_map(NeuronDeviceInfo::count).fold(0, i32::saturating_add),
        neuron_cores: neuron.iter().filter_map(neuron_cores).fold(0, i32::saturating_add),
    })
}

fn gpu(device: &GpuDeviceInfo) -> Gpu {
    // A type with a part of a GPU counts it in logical ones.
    let whole = device.count().filter(|count| *count > 0);
    Gpu {
        manufacturer: device.manufacturer().unwrap_or_default().to_owned(),
        count: whole.or_else(|| device.logical_gpu_count()).unwrap_or_default(),
    }
}

fn neuron_cores(device: &NeuronDeviceInfo) -> Option<i32> {
    Some(device.count()?.saturating_mul(device.core_info()?.count()?))
}
