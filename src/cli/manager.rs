//! The flags of `capasg manager`, named as those of the other Cluster API providers (N1, K6).

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, ensure};
use clap::{ArgAction, Args, ValueEnum};

use super::{Address, EndpointArgs, EventQueues, duration, gates::FeatureGates};

/// Arguments of `capasg manager`. Durations are written as in Go: `300ms`, `15s`, `1h30m`.
#[derive(Debug, Args)]
pub struct ManagerArgs {
    #[command(flatten)]
    pub leader_election: LeaderElection,

    /// Watch only this namespace; if empty, watch all namespaces.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub namespace: String,

    /// Reconcile only objects whose label `cluster.x-k8s.io/watch-filter` has this value; if empty, reconcile all objects.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub watch_filter: String,

    #[command(flatten)]
    pub endpoints: EndpointArgs,

    /// How often every object is reconciled even if nothing changed.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration::parse)]
    pub sync_period: Duration,

    /// How many objects of one kind are reconciled at the same time.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrency: u16,

    /// Event queue in SQS: NAME for every region, URL, REGION=NAME or REGION=URL; repeated or separated by commas.
    /// `capasg events --print` prints the AWS resources that it requires. `none` disables the event queue: groups are
    /// polled.
    #[arg(long, value_name = "QUEUE", env = "CAPASG_EVENT_QUEUE", default_value = "none")]
    pub event_queue: Vec<EventQueues>,

    /// Namespace of Cluster API Provider AWS, with the Secrets of its static identities.
    #[arg(long, value_name = "NAMESPACE", default_value = "capa-system")]
    pub aws_provider_namespace: String,

    /// How long running reconciles may take to finish after SIGTERM.
    #[arg(long, value_name = "DURATION", default_value = "8s", value_parser = duration::parse)]
    pub shutdown_timeout: Duration,

    /// Feature gates, as `Name=true,...`; this version has none.
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    pub feature_gates: FeatureGates,

    /// Port of the webhooks; `0` disables them.
    #[arg(long, value_name = "PORT", default_value_t = 9443)]
    pub webhook_port: u16,

    /// Directory with `tls.crt` and `tls.key` of the webhooks, reloaded when they change; if unset, no webhooks are served.
    #[arg(long, value_name = "DIR")]
    pub webhook_cert_dir: Option<PathBuf>,

    /// Kubeconfig of the management cluster. Defaults to `KUBECONFIG` or `~/.kube/config`, then to the service account of
    /// the pod.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Log verbosity: 0 logs the lifecycle of the manager, changes in AWS, warnings and errors; 2 adds minor failures and
    /// additional reads; 5 adds skipped reads.
    #[arg(short, long = "v", value_name = "N", default_value_t = 0)]
    pub verbosity: u8,

    /// Format of the log lines on standard error.
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    pub logging_format: LoggingFormat,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LoggingFormat {
    /// One JSON object per line.
    Json,
    /// For reading in a terminal.
    Text,
}

/// Flags of leader election.
#[derive(Debug, Args)]
pub struct LeaderElection {
    /// Enable leader election: only the replica that holds the Lease writes. Required to run several replicas.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", action = ArgAction::Set)]
    pub leader_elect: bool,

    /// Namespace of the Lease; by default the pod's own.
    #[arg(long = "leader-election-namespace", value_name = "NAMESPACE", env = "POD_NAMESPACE")]
    pub election_namespace: Option<String>,

    /// How long a standby waits after the last renewal that it observed before it takes over.
    #[arg(long = "leader-elect-lease-duration", value_name = "DURATION", default_value = "15s",
          value_parser = duration::parse)]
    pub lease_duration: Duration,

    /// How long the leader tries to renew before it gives up and exits.
    #[arg(long = "leader-elect-renew-deadline", value_name = "DURATION", default_value = "10s",
          value_parser = duration::parse)]
    pub renew_deadline: Duration,

    /// How long to wait between two attempts to acquire or renew.
    #[arg(long = "leader-elect-retry-period", value_name = "DURATION", default_value = "2s",
          value_parser = duration::parse)]
    pub retry_period: Duration,
}

impl ManagerArgs {
    /// Where webhooks are served: nowhere without a certificate.
    #[must_use]
    pub fn webhook_address(&self) -> Address {
        match (&self.webhook_cert_dir, self.webhook_port) {
            (None, _) | (_, 0) => Address::Off,
            (Some(_), port) => Address::On { host: String::new(), port },
        }
    }

    /// The event queues.
    ///
    /// # Errors
    /// If two of them are for the same region.
    pub fn event_queues(&self) -> Result<EventQueues> {
        Ok(EventQueues::joined(&self.event_queue)?)
    }

    /// Checks flags that depend on each other.
    ///
    /// # Errors
    /// With a message that names the flags and what to change.
    pub fn validate(&self) -> Result<()> {
        ensure!(!self.sync_period.is_zero(), "--sync-period must be longer than 0");
        self.event_queues().context("--event-queue")?;
        self.leader_election.validate()
    }
}

impl LeaderElection {
    /// Checks durations that depend on each other.
    ///
    /// # Errors
    /// With a message that names the flags and what to change.
    pub fn validate(&self) -> Result<()> {
        ensure!(
            self.lease_duration.subsec_nanos() == 0 && self.lease_duration.as_secs() <= 3600,
            "--leader-elect-lease-duration must be a whole number of seconds, and at most 1h",
        );
        ensure!(
            self.renew_deadline < self.lease_duration,
            "--leader-elect-renew-deadline must be shorter than --leader-elect-lease-duration",
        );
        ensure!(
            !self.retry_period.is_zero() && self.retry_period < self.renew_deadline,
            "--leader-elect-retry-period must be longer than 0 and shorter than --leader-elect-renew-deadline",
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::{
        cli::{Cli, Command},
        tls::MinVersion,
    };

    fn parse(flags: &[&str]) -> Result<ManagerArgs, clap::Error> {
        match Cli::try_parse_from(["capasg", "manager"].iter().chain(flags))?.command {
            Command::Manager(args) => Ok(*args),
            _ => unreachable!("the arguments are of the manager"),
        }
    }

    // Rules: N1
    #[test]
    fn takes_the_flags_of_other_providers() {
        let args = parse(&[
            "--leader-elect",
            "--leader-election-namespace=here",
            "--leader-elect-lease-duration=1m",
            "--leader-elect-renew-deadline=40s",
            "--leader-elect-retry-period=5s",
            "--namespace=tenants",
            "--watch-filter=blue",
            "--health-addr=:9441",
            "--diagnostics-address=:8444",
            "--insecure-diagnostics=true",
            "--tls-min-version=VersionTLS13",
            "--tls-cipher-suites=TLS_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            "--webhook-port=9444",
            "--webhook-cert-dir=certificates",
            "--sync-period=5m",
            "--feature-gates=",
            "--concurrency=3",
            "--event-queue=capasg",
            "--event-queue=eu-west-1=other",
            "-v",
            "4",
            "--kubeconfig=config",
            "--logging-format=text",
        ])
        .unwrap();
        args.validate().unwrap();
        assert!(args.leader_election.leader_elect);
        assert_eq!(args.leader_election.election_namespace.as_deref(), Some("here"));
        assert_eq!(args.leader_election.lease_duration, Duration::from_mins(1));
        assert_eq!((args.namespace.as_str(), args.watch_filter.as_str()), ("tenants", "blue"));
        assert_eq!(args.endpoints.health_addr.to_string(), ":9441");
        assert_eq!(args.endpoints.tls.tls_min_version, MinVersion::Tls13);
        assert_eq!(args.endpoints.tls.tls_cipher_suites.len(), 2);
        assert_eq!((args.verbosity, args.concurrency), (4, 3));
        assert_eq!(args.logging_format, LoggingFormat::Text);
        let queues = args.event_queues().unwrap();
        assert_eq!(queues.of("eu-west-1"), Some(&capasg_cloud::QueueName::Name("other".to_owned())));
        assert_eq!(queues.of("us-east-1"), Some(&capasg_cloud::QueueName::Name("capasg".to_owned())));
    }

    // Rules: N1
    #[test]
    fn booleans_and_verbosity_take_the_forms_of_go() {
        assert!(!parse(&[]).unwrap().leader_election.leader_elect);
        assert!(!parse(&["--leader-elect=false"]).unwrap().leader_election.leader_elect);
        assert!(parse(&["--leader-elect=true"]).unwrap().leader_election.leader_elect);
        for form in [["-v=2"].as_slice(), &["-v2"], &["--v=2"], &["--v", "2"]] {
            assert_eq!(parse(form).unwrap().verbosity, 2, "{form:?}");
        }
    }

    // Rules: N1
    #[test]
    fn unknown_flags_and_gates_are_refused_by_name() {
        let unknown = parse(&["--no-such-flag"]).unwrap_err().to_string();
        assert!(unknown.contains("--no-such-flag"), "{unknown}");
        let gate = parse(&["--feature-gates=MachinePool=true"]).unwrap_err().to_string();
        assert!(gate.contains("unknown feature gate `MachinePool`"), "{gate}");
    }

    // Rules: N1
    #[test]
    fn webhooks_are_served_where_there_is_a_certificate() {
        let address = |flags: &[&str]| parse(flags).unwrap().webhook_address().to_string();
        assert_eq!(address(&[]), "0");
        assert_eq!(address(&["--webhook-cert-dir=certificates"]), ":9443");
        assert_eq!(address(&["--webhook-cert-dir=certificates", "--webhook-port=9444"]), ":9444");
        assert_eq!(address(&["--webhook-cert-dir=certificates", "--webhook-port=0"]), "0");
    }

    // Rules: N4
    #[test]
    fn metrics_are_guarded_unless_told_otherwise() {
        let args = parse(&[]).unwrap();
        assert_eq!(
            (args.endpoints.diagnostics_address.to_string().as_str(), args.endpoints.insecure_diagnostics),
            (":8443", false)
        );
        assert!(parse(&["--insecure-diagnostics"]).unwrap().endpoints.insecure_diagnostics);
    }

    #[test]
    fn election_times_must_leave_room_for_each_other() {
        for flags in [
            ["--leader-elect-renew-deadline=15s"].as_slice(),
            &["--leader-elect-retry-period=10s"],
            &["--leader-elect-retry-period=0"],
            &["--leader-elect-lease-duration=15500ms"],
        ] {
            assert!(parse(flags).unwrap().validate().is_err(), "{flags:?}");
        }
    }
}
