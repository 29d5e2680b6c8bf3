//! The role `exec-child` for tests of this crate, and `exec-child-with-tools` for scripts that run programs of the system. With
//! a folder as its only argument, it is a manager with one child, which writes its process ID to the file `pid` there.

use std::{path::Path, process::ExitCode, time::Duration};

use capasg_addons::process::{Command, EXEC_FAILED, Launcher, exec, exec_with_tools};

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(first) = arguments.next() else { return ExitCode::FAILURE };
    if first == "exec-child" || first == "exec-child-with-tools" {
        let tools = [Path::new("/bin"), Path::new("/usr/bin")];
        let error = if first == "exec-child" { exec(arguments) } else { exec_with_tools(arguments, &tools) };
        eprintln!("{error}");
        return ExitCode::from(u8::try_from(EXEC_FAILED).unwrap_or(u8::MAX));
    }
    let Ok(program) = std::env::current_exe() else { return ExitCode::FAILURE };
    let Ok(launcher) = Launcher::new(program, &["exec-child-with-tools"]) else { return ExitCode::FAILURE };
    let child = Command {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), "echo $$ > part; mv part pid; exec sleep 600".into()],
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        folder: first.into(),
        input: None,
        limit: Duration::from_mins(10),
        grace: Duration::from_secs(1),
    };
    match child.run(&launcher).await {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
