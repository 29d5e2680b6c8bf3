//! Children of the manager as real processes: what they get, what is read of them, and how they end.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use capasg_addons::process::{Command, Launcher, RunError};

const EXEC_CHILD: &str = env!("CARGO_BIN_EXE_capasg-addons-exec-child");
const SOON: Duration = Duration::from_secs(20);

fn launcher() -> io::Result<Launcher> {
    Launcher::new(EXEC_CHILD.into(), &["exec-child-with-tools"])
}

fn shell(script: &str, folder: &Path) -> Command {
    Command {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        folder: folder.to_owned(),
        input: None,
        limit: SOON,
        grace: SOON,
    }
}

/// Waits until a condition holds.
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a process runs: one that has ended, but was not waited for, does not.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// The process ID that a child wrote.
async fn pid_in(folder: &Path) -> io::Result<String> {
    let file: PathBuf = folder.join("pid");
    eventually("the child starts", || file.exists()).await;
    Ok(fs::read_to_string(file)?.trim().to_owned())
}

const PID: &str = "echo $$ > part; mv part pid; exec sleep 600";

#[tokio::test]
async fn a_child_has_its_input_its_folder_and_no_environment_of_the_manager() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = shell("cat; pwd; env; echo problem >&2; exit 3", folder.path());
    command.input = Some(b"input\n".to_vec());
    let output = command.run(&launcher().unwrap()).await.unwrap();
    let text = String::from_utf8(output.output).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("input"));
    assert_eq!(lines.next().unwrap(), folder.path().canonicalize().unwrap().to_str().unwrap());
    let names: Vec<_> = lines.filter_map(|line| line.split('=').next()).collect();
    assert!(names.iter().all(|name| ["PATH", "PWD", "SHLVL", "_", "OLDPWD"].contains(name)), "{names:?}");
    assert_eq!((output.is_success, output.errors.as_str()), (false, "problem\n"));
}

/// What a workload cluster or a chart makes Helm read ends Helm, not the container.
#[tokio::test]
async fn a_child_that_requires_too_much_memory_fails() {
    let folder = tempfile::tempdir().unwrap();
    for (bytes, is_success) in [(200_000_000, true), (1_000_000_000, false)] {
        // A line is kept in memory as a whole.
        let script = format!("head -c {bytes} /dev/zero | tail -n 1 > out");
        // Slow on a busy machine.
        let command = Command { limit: Duration::from_mins(2), ..shell(&script, folder.path()) };
        let output = command.run(&launcher().unwrap()).await.unwrap();
        assert_eq!(output.is_success, is_success, "{bytes}: {}", output.errors);
    }
}

#[tokio::test]
async fn of_long_errors_the_end_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let output = shell("yes line | head -c 300000 >&2; echo Error: the end >&2", folder.path());
    let output = output.run(&launcher().unwrap()).await.unwrap();
    assert_eq!(output.errors.len(), 64 << 10);
    assert!(output.errors.ends_with("Error: the end\n"));
}

#[tokio::test]
async fn too_much_output_is_an_error_and_blocks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let error =
        shell("head -c 40000000 /dev/zero", folder.path()).run(&launcher().unwrap()).await.unwrap_err();
    assert!(matches!(error, RunError::TooMuch { .. }), "{error}");
}

#[tokio::test]
async fn a_program_that_does_not_exist_cannot_be_started() {
    let folder = tempfile::tempdir().unwrap();
    let command = Command { program: "/no/such/helm".into(), ..shell("", folder.path()) };
    let error = command.run(&launcher().unwrap()).await.unwrap_err();
    assert!(matches!(error, RunError::Start { .. }), "{error}");
    assert!(error.to_string().contains("cannot execute /no/such/helm: No such file"), "{error}");
}

#[tokio::test]
async fn a_child_has_time_to_end_by_itself_after_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap 'touch ended; exit 1' TERM; touch started; while :; do sleep 0.01; done";
    let command = Command { limit: Duration::from_millis(500), ..shell(script, folder.path()) };
    let error = command.run(&launcher().unwrap()).await.unwrap_err();
    assert!(matches!(error, RunError::TimedOut { .. }), "{error}");
    assert!(folder.path().join("ended").exists());
}

#[tokio::test]
async fn a_child_that_ignores_the_signal_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; echo $$ > part; mv part pid; while :; do sleep 0.01; done";
    let (limit, grace) = (Duration::from_millis(500), Duration::from_millis(10));
    let command = Command { limit, grace, ..shell(script, folder.path()) };
    let error = command.run(&launcher().unwrap()).await.unwrap_err();
    assert!(matches!(error, RunError::TimedOut { .. }), "{error}");
    assert!(!runs(&pid_in(folder.path()).await.unwrap()));
}

#[tokio::test]
async fn a_signal_of_another_process_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let error = shell("kill -9 $$", folder.path()).run(&launcher().unwrap()).await.unwrap_err();
    assert!(matches!(error, RunError::Signal { signal: 9, .. }), "{error}");
}

#[tokio::test]
async fn a_child_ends_when_its_future_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let (command, launcher) = (shell(PID, folder.path()), launcher().unwrap());
    let task = tokio::spawn(async move { command.run(&launcher).await });
    let pid = pid_in(folder.path()).await.unwrap();
    assert!(runs(&pid));
    task.abort();
    eventually("the child ends", || !runs(&pid)).await;
}

#[tokio::test]
async fn a_child_ends_when_the_launcher_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let command = shell(PID, folder.path());
    let launcher = launcher().unwrap();
    let running = launcher.clone();
    let task = tokio::spawn(async move { command.run(&running).await.map(drop) });
    let pid = pid_in(folder.path()).await.unwrap();
    drop(launcher);
    assert!(runs(&pid), "the run has a clone");
    task.abort();
    eventually("the child ends", || !runs(&pid)).await;
}

#[tokio::test]
async fn a_child_dies_with_a_manager_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut manager = tokio::process::Command::new(EXEC_CHILD)
        .arg(folder.path())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let pid = pid_in(folder.path()).await.unwrap();
    assert!(runs(&pid));
    manager.kill().await.unwrap();
    eventually("the child dies", || !runs(&pid)).await;
}

#[tokio::test]
async fn a_child_of_another_parent_does_not_start() {
    let output =
        tokio::process::Command::new(EXEC_CHILD).args(["exec-child", "1", "/bin/true"]).output().await;
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "the parent has ended\n");
}
