//! Memory, processor time and open files of this process, under the names that every Prometheus dashboard knows.

use std::{fmt, fs};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

/// `/proc` counts processor time in these: Linux shows user space 100 a second on every architecture that we build.
const TICKS_PER_SECOND: f64 = 100.0;

/// Read from `/proc/self` at each scrape; a value that cannot be read is left out.
#[derive(Debug)]
pub struct Process;

/// What `/proc/self` says.
#[derive(Debug, Default, PartialEq)]
struct Usage {
    cpu_seconds: Option<f64>,
    resident_bytes: Option<u64>,
    open_files: Option<usize>,
}

impl Usage {
    fn read() -> Self {
        Self {
            cpu_seconds: fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(cpu_seconds),
            resident_bytes: fs::read_to_string("/proc/self/status").ok().as_deref().and_then(resident_bytes),
            open_files: fs::read_dir("/proc/self/fd").ok().map(Iterator::count),
        }
    }
}

/// User and system time: the 14th and 15th field, counted after the name, which may hold blanks and parentheses.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some(f64::from(user.checked_add(system)?) / TICKS_PER_SECOND)
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let usage = Usage::read();
        if let Some(seconds) = usage.cpu_seconds {
            let metric = encoder.encode_descriptor(
                "process_cpu_seconds",
                "User and system processor time",
                None,
                MetricType::Counter,
            )?;
            ConstCounter::new(seconds).encode(metric)?;
        }
        let gauges = [
            ("process_resident_memory_bytes", "Resident memory", usage.resident_bytes),
            ("process_open_fds", "Open file descriptors", usage.open_files.map(|files| files as u64)),
        ];
        for (name, help, value) in gauges {
            if let Some(value) = value.and_then(|value| i64::try_from(value).ok()) {
                let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
                ConstGauge::new(value).encode(metric)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_fields_of_proc() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 2 0 0 0 150 50 0 0 20 0 9 0 100 1 1";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(cpu_seconds("7 (a) S 1"), None);
        assert_eq!(resident_bytes("VmPeak:\t  9 kB\nVmRSS:\t  2048 kB\n"), Some(2_097_152));
        assert_eq!(resident_bytes("VmPeak:\t  9 kB\n"), None);
    }

    #[test]
    fn this_process_uses_something() {
        let usage = Usage::read();
        assert!(usage.cpu_seconds.unwrap() >= 0.0);
        assert!(usage.resident_bytes.unwrap() > 1_000_000);
        assert!(usage.open_files.unwrap() > 2);
    }
}
