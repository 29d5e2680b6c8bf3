//! Charts that were downloaded a moment ago. Many releases of one chart are usually installed or upgraded at the same time, and
//! a download is three calls of Helm.

use std::{
    collections::VecDeque,
    fmt, fs,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{release::ChartMetadata, source::Source};
use crate::decide::release::is_exact;

/// How long a chart is used again.
const FRESH: Duration = Duration::from_mins(1);
/// How many bytes of archives are kept. The oldest ones are dropped first.
const MOST: u64 = 8 << 20;

/// A chart that was downloaded.
pub(super) struct Downloaded {
    pub archive: Vec<u8>,
    pub metadata: ChartMetadata,
}

/// Where a chart is from, and when it was downloaded.
struct Download {
    source: Source,
    at: Instant,
    chart: Arc<Downloaded>,
}

/// The charts, the oldest one first.
#[derive(Default)]
pub(super) struct Downloads(Mutex<VecDeque<Download>>);

/// Prints no source: it has credentials.
impl fmt::Debug for Downloads {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Downloads(..)")
    }
}

impl Downloads {
    /// The chart of a source, with the same credentials.
    pub(super) fn find(&self, source: &Source, now: Instant) -> Option<Arc<Downloaded>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while all.front().is_some_and(|download| now >= download.at + FRESH) {
            all.pop_front();
        }
        all.iter().find(|download| download.source == *source).map(|download| Arc::clone(&download.chart))
    }

    /// Keeps a chart, if its source has an exact version: a constraint is another version once there is a newer one.
    pub(super) fn keep(&self, source: &Source, file: &Path, metadata: &ChartMetadata, now: Instant) {
        let is_kept = source.version.as_ref().is_some_and(|version| is_exact(version.as_str()))
            && fs::metadata(file).is_ok_and(|file| file.len() <= MOST);
        // What cannot be read is downloaded again.
        let Some(Ok(archive)) = is_kept.then(|| fs::read(file)) else { return };
        let chart = Arc::new(Downloaded { archive, metadata: metadata.clone() });
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|download| download.source != *source);
        all.push_back(Download { source: source.clone(), at: now, chart });
        let size = |download: &Download| u64::try_from(download.chart.archive.len()).unwrap_or(MOST);
        while all.iter().map(size).sum::<u64>() > MOST {
            all.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::helm::{Access, ChartName, PlainHttp, Repository, RepositoryCredentials, Version};

    fn source(version: Option<&str>) -> Source {
        Source {
            repository: Repository::parse("https://charts.example", PlainHttp::Rejected).unwrap(),
            chart: ChartName::parse("demo").unwrap(),
            version: version.map(|version| Version::parse(version).unwrap()),
            access: Access::default(),
        }
    }

    struct Lab {
        downloads: Downloads,
        folder: tempfile::TempDir,
        now: Instant,
    }

    impl Lab {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            Self { downloads: Downloads::default(), folder, now: Instant::now() }
        }

        fn keep(&self, source: &Source, size: u64) {
            let file = self.folder.path().join("chart.tgz");
            fs::File::create(&file).unwrap().set_len(size).unwrap();
            self.downloads.keep(source, &file, &ChartMetadata::default(), self.now);
        }

        fn has(&self, source: &Source, after: u64) -> bool {
            self.downloads.find(source, self.now + Duration::from_secs(after)).is_some()
        }
    }

    #[test]
    fn an_exact_version_is_used_again_for_a_minute() {
        let (lab, exact) = (Lab::new(), source(Some("1.0.0")));
        assert!(!lab.has(&exact, 0));
        lab.keep(&exact, 1);
        assert!(lab.has(&exact, 59));
        assert!(!lab.has(&source(Some("1.0.1")), 59));
        assert!(!lab.has(&exact, 60) && !lab.has(&exact, 0), "it is dropped");
        for other in [source(None), source(Some("~1.0"))] {
            lab.keep(&other, 1);
            assert!(!lab.has(&other, 0), "{:?}", other.version);
        }
    }

    #[test]
    fn other_credentials_are_another_source() {
        let (lab, known) = (Lab::new(), source(Some("1.0.0")));
        lab.keep(&known, 1);
        let (username, password) = ("robot".to_owned(), "s3cret".to_owned());
        let credentials = Some(RepositoryCredentials::Password { username, password });
        let access = Access { credentials, ..Access::default() };
        let other = Source { access, ..known };
        assert!(!lab.has(&other, 0));
        lab.keep(&other, 1);
        assert!(lab.has(&other, 0) && !format!("{:?}", lab.downloads).contains("s3cret"));
    }

    #[test]
    fn the_oldest_ones_make_room() {
        let lab = Lab::new();
        let sources = ["1.0.0", "1.1.0", "1.2.0"].map(|version| source(Some(version)));
        for source in &sources {
            lab.keep(source, MOST / 2);
        }
        assert_eq!(sources.each_ref().map(|source| lab.has(source, 0)), [false, true, true]);
        lab.keep(&sources[0], MOST + 1);
        assert_eq!(
            sources.each_ref().map(|source| lab.has(source, 0)),
            [false, true, true],
            "it is too large"
        );
    }
}
