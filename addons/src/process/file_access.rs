//! Limits a child, before its program is executed, to its own folder and to files that programs in Go read.
//!
//! The child has the user of the manager: without this limit, it could read the token of the pod's service account, private
//! folders of other operations, and `/proc` of the manager. The limit is enforced by Landlock, which requires no privileges,
//! and remains in effect for every program that the child executes. On a kernel without Landlock (before Linux 5.13, or where
//! it is disabled), the child runs without the limit.

use std::{env, path::Path};

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, path_beneath_rules,
};

/// The newest version of Landlock that is used. Of an older one, the kernel enforces what it has.
const NEWEST: ABI = ABI::V5;

/// Libraries of programs that are not static. The programs of the image are.
const LIBRARIES: [&str; 5] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"];

/// What the network and TLS code of Go, and of the C library, reads. Not all of `/etc/ssl` and `/etc/pki`, which may have
/// private keys.
const READ: [&str; 17] = [
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/nsswitch.conf",
    "/etc/services",
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/sys/kernel/mm/transparent_hugepage",
];

/// Devices without content of the machine.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"];

/// Whether the kernel enforces the limit.
pub(super) fn is_enforced() -> bool {
    let required = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    required.handle_access(AccessFs::from_all(ABI::V1)).is_ok()
}

/// Limits this thread, and the program that it executes next. The program may read and write its working folder, unless that
/// is `/`. It may read and execute itself, libraries, and what is below the paths of `tools`.
///
/// # Errors
/// If the kernel has Landlock and rejects the limit.
pub(super) fn limit(program: &Path, tools: &[&Path]) -> Result<(), RulesetError> {
    let everything = AccessFs::from_all(NEWEST);
    let reads = AccessFs::ReadFile | AccessFs::ReadDir;
    let executes = reads | AccessFs::Execute;
    // A folder that cannot be determined is not allowed either.
    let own = env::current_dir().ok().filter(|folder| folder.parent().is_some());
    Ruleset::default()
        .handle_access(everything)?
        .create()?
        .add_rules(path_beneath_rules(own, everything))?
        .add_rules(path_beneath_rules([program], executes))?
        .add_rules(path_beneath_rules(LIBRARIES, executes))?
        .add_rules(path_beneath_rules(tools, executes))?
        .add_rules(path_beneath_rules(READ, reads))?
        .add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile | AccessFs::WriteFile))?
        .restrict_self()
        .map(drop)
}
