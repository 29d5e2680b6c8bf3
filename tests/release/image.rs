//! The root of the image, without a container engine: the programs run with nothing else, as the user of the image.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use axum::Router;
use capasg_environment::{add_on_programs, serve_https};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{VERSION, root, said, succeeds};

const BUNDLE: &str = "etc/ssl/certs/ca-certificates.crt";
const PROGRAMS: [&str; 3] = ["capasg", "capasg-values", "helm"];

/// Runs the program that the Dockerfile and `scripts/image` call.
fn image(args: &[&str]) -> String {
    succeeds(
        Command::new("go").arg("-C").arg(root().join("scripts/tools/image")).args(["run", "."]).args(args),
    )
}

/// A root of the image: that of `CAPASG_IMAGE_ROOT`, which `make image` made, or one with the programs of this build, which
/// are not static: it has their libraries as well.
struct Root {
    folder: PathBuf,
    _temporary: TempDir,
}

impl Root {
    fn new() -> Self {
        let temporary = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::set_permissions(temporary.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let folder = temporary.path().join("root");
        if let Some(built) = std::env::var_os("CAPASG_IMAGE_ROOT") {
            succeeds(Command::new("cp").arg("--recursive").arg(built).arg(&folder));
        } else {
            image(&["root", folder.to_str().unwrap()]);
            let programs = add_on_programs(&|line| eprintln!("{line}")).unwrap();
            place(Path::new(env!("CARGO_BIN_EXE_capasg")), &folder.join("capasg"));
            for program in ["helm", "capasg-values"] {
                place(&programs.join(program), &folder.join(program));
            }
            for program in PROGRAMS {
                for library in libraries(&folder.join(program)) {
                    place(&library, &folder.join(library.strip_prefix("/").unwrap()));
                }
            }
        }
        Self { folder, _temporary: temporary }
    }

    /// Runs a program of the root as the user of the image.
    fn run(&self, program: &[&str]) -> Output {
        let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
        let mut command = Command::new(if is_root { "chroot" } else { "unshare" });
        if is_root {
            command.arg("--userspec=65532:65532").arg(&self.folder);
        } else {
            // The user of a namespace of its own: the identifier cannot be chosen.
            command.args(["--user", "--map-root-user"]).arg("--root").arg(&self.folder);
        }
        let path = "/usr/sbin:/usr/bin:/sbin:/bin";
        command.args(program).env_clear().env("PATH", path).env("HOME", "/run").output().unwrap()
    }
}

/// A hard link where possible: programs of this build are large. Names of libraries are symbolic links.
fn place(from: &Path, to: &Path) {
    let from = from.canonicalize().unwrap();
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    if !to.exists() && fs::hard_link(&from, to).is_err() {
        fs::copy(from, to).unwrap();
    }
}

/// What the dynamic linker loads for a program; nothing for a static one.
fn libraries(program: &Path) -> BTreeSet<PathBuf> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

#[test]
fn the_programs_run_as_the_user_of_the_image() {
    let root = Root::new();
    let output = root.run(&["/capasg", "--version"]);
    assert!(
        output.status.success() && said(&output).contains(env!("CARGO_PKG_VERSION")),
        "{}",
        said(&output)
    );
    let output = root.run(&["/capasg", "manager", "--help"]);
    assert!(output.status.success() && said(&output).contains("--leader-elect"), "{}", said(&output));
    let output = root.run(&["/helm", "version", "--short"]);
    let pinned = crate::read("addons/go/go.mod");
    let helm = pinned.lines().find_map(|line| line.trim().strip_prefix("helm.sh/helm/v3 ")).unwrap();
    assert!(output.status.success(), "{}", said(&output));
    // Without the patch, since no version is stamped into it.
    assert!(helm.starts_with(&format!("{}.", said(&output).trim())), "{helm}: {}", said(&output));
    // It reads requests until its input ends.
    let output = root.run(&["/capasg-values"]);
    assert!(output.status.success(), "{}", said(&output));

    let passwd = fs::read_to_string(root.folder.join("etc/passwd")).unwrap();
    assert!(passwd.lines().any(|line| line.split(':').nth(2) == Some("65532")), "{passwd}");
    let names: BTreeSet<String> = fs::read_dir(&root.folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("lib") && name != "usr")
        .collect();
    assert_eq!(names, ["capasg", "capasg-values", "etc", "helm"].map(str::to_owned).into());
}

/// A server whose authority the bundle does not have is not trusted; with the authority in the bundle it is. So both programs
/// read it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_programs_read_the_certificates_of_the_image() {
    capasg_environment::install_crypto_provider();
    let root = Root::new();
    let bundle = fs::read_to_string(root.folder.join(BUNDLE)).unwrap();
    // Endpoints of AWS have certificates of Amazon Root CA 1.
    assert!(bundle.contains("MIIDQTCCAimgAwIBAgITBmyfz5m/jAo54vB4ikPmljZbyjANBgkqhkiG9w0BAQsF"));
    assert!(bundle.matches("-----BEGIN CERTIFICATE-----").count() > 100);

    // The volume of the Deployment: nothing else can be written.
    fs::create_dir(root.folder.join("run")).unwrap();
    fs::set_permissions(root.folder.join("run"), fs::Permissions::from_mode(0o777)).unwrap();

    let server = serve_https(Router::new()).await.unwrap();
    let chart = format!("{}/chart.tgz", server.url);
    let mut config: Value = serde_json::from_str(&server.kubeconfig()).unwrap();
    config["clusters"][0]["cluster"] = json!({"server": server.url});
    fs::write(root.folder.join("kubeconfig"), config.to_string()).unwrap();
    let attempts = || {
        let capasg = root.run(&["/capasg", "why", "prod", "--namespace", "a", "--kubeconfig", "/kubeconfig"]);
        let helm = root.run(&["/helm", "show", "chart", &chart]);
        [said(&capasg), said(&helm)]
    };
    for said in attempts() {
        assert!(said.to_lowercase().contains("certificate") && !said.contains("404"), "{said}");
    }
    fs::write(root.folder.join(BUNDLE), bundle + "\n" + &server.authority).unwrap();
    for said in attempts() {
        assert!(said.contains("404") && !said.to_lowercase().contains("certificate"), "{said}");
    }
}

#[test]
fn the_archive_is_an_image_for_both_architectures_and_reproducible() {
    let temporary = tempfile::tempdir().unwrap();
    let path = |name: &str| temporary.path().join(name).to_str().unwrap().to_owned();
    for (architecture, content) in [("amd64", "one"), ("arm64", "two")] {
        image(&["root", &path(architecture)]);
        fs::write(path(&format!("{architecture}/capasg")), content).unwrap();
        fs::set_permissions(path(&format!("{architecture}/capasg")), fs::Permissions::from_mode(0o755))
            .unwrap();
    }
    let roots = ["amd64", "arm64"].map(|architecture| format!("{architecture}={}", path(architecture)));
    let write =
        |file: &str| image(&["archive", &path(file), VERSION, &roots[0], &roots[1]]).trim().to_owned();
    let digest = write("first.tar");
    assert_eq!(write("second.tar"), digest);
    assert!(fs::read(path("first.tar")).unwrap() == fs::read(path("second.tar")).unwrap());

    let layout = path("layout");
    fs::create_dir(&layout).unwrap();
    succeeds(Command::new("tar").args(["--extract", "--directory", &layout, "--file", &path("first.tar")]));
    let blob = |digest: &Value| -> Value {
        let name = digest.as_str().unwrap().replace(':', "/");
        serde_json::from_slice(&fs::read(Path::new(&layout).join("blobs").join(name)).unwrap()).unwrap()
    };
    let index: Value =
        serde_json::from_slice(&fs::read(Path::new(&layout).join("index.json")).unwrap()).unwrap();
    assert_eq!(index["manifests"][0]["digest"], digest.as_str());
    let images = blob(&index["manifests"][0]["digest"])["manifests"].as_array().unwrap().clone();
    let mut architectures = Vec::new();
    for image in images {
        let config = blob(&blob(&image["digest"])["config"]["digest"]);
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(config["config"]["Entrypoint"], json!(["/capasg"]));
        assert_eq!(config["config"]["Cmd"], json!(["manager"]));
        assert_eq!(image["platform"]["architecture"], config["architecture"]);
        architectures.push(config["architecture"].as_str().unwrap().to_owned());
    }
    assert_eq!(architectures, ["amd64", "arm64"]);
    // As the Dockerfile configures it.
    let dockerfile = crate::read("Dockerfile");
    for line in ["USER 65532:65532", "ENTRYPOINT [\"/capasg\"]", "CMD [\"manager\"]"] {
        assert!(dockerfile.contains(line), "{line}");
    }
}
