//! Which files a child can use: its own folder, and nothing of the manager, which has the same user. The kernel must have
//! Landlock.

mod support;

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use capasg_addons::process::{Command, Launcher, Output, RunError};
use support::{Outcome, launcher, launcher_of_scripts, programs};

const TOKEN: &str = "service-account-t0ken";

async fn run(
    launcher: &Launcher,
    program: &Path,
    arguments: &[&str],
    folder: &Path,
) -> Result<Output, RunError> {
    let command = Command {
        program: program.to_owned(),
        arguments: arguments.iter().map(Into::into).collect(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into()), ("HOME".into(), folder.into())],
        folder: folder.to_owned(),
        input: None,
        limit: Duration::from_mins(1),
        grace: Duration::from_secs(1),
    };
    command.run(launcher).await
}

async fn shell(script: &str, folder: &Path) -> Outcome<Output> {
    Ok(run(&launcher_of_scripts()?, Path::new("/bin/sh"), &["-c", script], folder).await?)
}

/// What this process can do, and a child of it cannot.
async fn assert_denied(script: &str, folder: &Path) -> Outcome {
    let here = std::process::Command::new("/bin/sh").args(["-c", script]).current_dir(folder).output()?;
    assert!(here.status.success(), "{script}: {}", String::from_utf8_lossy(&here.stderr));
    let output = shell(script, folder).await?;
    assert!(!output.is_success, "{script}");
    assert!(output.output.is_empty(), "{script}: {}", String::from_utf8_lossy(&output.output));
    assert!(output.errors.to_lowercase().contains("permission denied"), "{script}: {}", output.errors);
    Ok(())
}

#[tokio::test]
async fn a_child_uses_its_own_folder() -> Outcome {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("values"), "own")?;
    let script = "cat values; mkdir a b; echo new > a/file; mv a/file b/moved; cat b/moved; rm -r a b; ls";
    let output = shell(script, folder.path()).await?;
    assert_eq!(String::from_utf8(output.output)?, "ownnew\nvalues\n", "{}", output.errors);
    assert!(output.is_success);
    Ok(())
}

#[tokio::test]
async fn a_child_uses_no_files_of_the_manager() -> Outcome {
    let (folder, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let token = other.path().join("token");
    fs::write(&token, TOKEN)?;
    std::os::unix::fs::symlink(&token, folder.path().join("link"))?;
    let (other, token) = (other.path().display(), token.display());
    for script in [
        format!("cat {token}"),
        "cat link".to_owned(),
        format!("cat ../../{token}"),
        format!("ls {other}"),
        format!("echo more >> {token}"),
        format!("echo new > {other}/new"),
        format!("rm -f {other}/new && touch {other}/new"),
        "cat /etc/passwd".to_owned(),
        format!("cat /proc/{}/environ", std::process::id()),
        format!("cat /proc/{}/cmdline", std::process::id()),
        format!("ls /proc/{}/fd", std::process::id()),
        format!("cat /proc/{}/root/{token}", std::process::id()),
    ] {
        assert_denied(&script, folder.path()).await?;
    }
    assert!(!fs::read_to_string(token.to_string())?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_child_in_the_root_folder_has_no_folder() -> Outcome {
    let other = tempfile::tempdir()?;
    fs::write(other.path().join("token"), TOKEN)?;
    let other = other.path().display();
    for script in [format!("cat {other}/token"), "ls /".to_owned(), format!("echo new > {other}/new")] {
        assert_denied(&script, Path::new("/")).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_child_of_the_manager_runs_no_other_program() -> Outcome {
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("helm");
    fs::write(&script, "#!/bin/sh\n")?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700))?;
    run(&launcher_of_scripts()?, &script, &[], folder.path()).await?;
    let error = run(&launcher()?, &script, &[], folder.path()).await.err().ok_or("the shell ran")?;
    assert!(error.to_string().contains("Permission denied"), "{error}");
    Ok(())
}

/// The schema of a chart can refer to files: Helm reads those that the kernel lets it read.
#[tokio::test]
async fn the_schema_of_a_chart_reaches_no_file_of_the_manager() -> Outcome {
    let (folder, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let chart = folder.path().join("chart");
    fs::create_dir(&chart)?;
    fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: demo\nversion: 1.0.0\n")?;
    let helm = programs().await?.join("helm");
    for (place, is_read) in [(folder.path(), true), (other.path(), false)] {
        let schema = place.join("schema.json");
        fs::write(&schema, r#"{"type": "object"}"#)?;
        let reference = format!(r#"{{"$ref": "file://{}"}}"#, schema.display());
        fs::write(chart.join("values.schema.json"), reference)?;
        let output = run(&launcher()?, &helm, &["template", "demo", "chart"], folder.path()).await?;
        assert_eq!(output.is_success, is_read, "{}: {}", schema.display(), output.errors);
        assert!(is_read || output.errors.contains("permission denied"), "{}", output.errors);
    }
    Ok(())
}
