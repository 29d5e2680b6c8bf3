//! What the tests with real programs share.

#![allow(dead_code, reason = "no test uses all of it")]

pub mod api_server;
pub mod lab;
pub mod protobuf;
pub mod registry;
pub mod repository;

use std::{error::Error, path::PathBuf, sync::Arc};

use capasg_addons::{
    controller::{Context, Parts, Policy},
    helm::Helm,
    process::Launcher,
    values::Values,
};
use capasg_cloud::AlwaysLeading;

/// The result of a test or of a part of it.
pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// A launcher that uses the program for tests.
pub fn launcher() -> Outcome<Launcher> {
    Ok(Launcher::new(env!("CARGO_BIN_EXE_capasg-addons-exec-child").into(), &["exec-child"])?)
}

/// The same, for scripts, which run programs of the system.
pub fn launcher_of_scripts() -> Outcome<Launcher> {
    Ok(Launcher::new(env!("CARGO_BIN_EXE_capasg-addons-exec-child").into(), &["exec-child-with-tools"])?)
}

/// The folder with `helm` and `capasg-values`, which are built the first time.
pub async fn programs() -> Outcome<PathBuf> {
    let build = || capasg_environment::add_on_programs(&|line| eprintln!("{line}"));
    Ok(tokio::task::spawn_blocking(build).await??)
}

/// What reconciles share, for a management cluster and with the defaults of the operator.
pub fn context(management: kube::Config, helm: Helm, values: Values) -> Outcome<Context> {
    Ok(Context::new(parts(management, helm, values)?))
}

/// The same, to be changed.
pub fn parts(management: kube::Config, helm: Helm, values: Values) -> Outcome<Parts> {
    Ok(Parts {
        client: kube::Client::try_from(management)?,
        helm,
        values,
        policy: Policy::default(),
        guard: Arc::new(AlwaysLeading),
        observer: Arc::new(()),
        identity: "test".to_owned(),
    })
}
