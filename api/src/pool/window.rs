//! One window of `spec.disruption`: when it opens and closes, by cron and time zone. Pure; the time is an argument.

use std::str::FromStr;

use chrono::{DateTime, Datelike, Days, LocalResult, NaiveDate, NaiveDateTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};

use super::disruption::DisruptionWindow;

/// The time zone unless set.
const UTC: &str = "Etc/UTC";
/// A schedule that does not open within this number of days never opens: 29 February occurs within 8 years.
const DAYS: u64 = 8 * 366 + 1;
/// The longest time that clocks skip, in minutes.
const LONGEST_GAP: i64 = 25 * 60;

/// Why a window is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// The schedule is not a cron schedule with five fields.
    #[error("schedule: {0:?} is not a cron schedule with five fields, such as \"0 22 * * 1-5\"")]
    Schedule(String),
    /// The schedule matches no day.
    #[error("schedule: {0:?} matches no day")]
    Never(String),
    /// The time zone does not exist.
    #[error(
        "timeZone: the time zone {0:?} does not exist; use a name of the IANA time zone database, such as Europe/Dublin"
    )]
    TimeZone(String),
}

/// A valid window.
#[derive(Clone, Debug)]
pub struct Window {
    cron: Cron,
    zone: Tz,
    duration: TimeDelta,
}

impl Window {
    /// Parses a window.
    ///
    /// # Errors
    ///
    /// The schedule is not a cron schedule with five fields or never opens, or the time zone does not exist.
    pub fn new(window: &DisruptionWindow) -> Result<Self, WindowError> {
        let schedule = || window.schedule.clone();
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        if window.schedule.split(' ').count() != 5 {
            return Err(WindowError::Schedule(schedule()));
        }
        let cron = parser.parse(&window.schedule).map_err(|_| WindowError::Schedule(schedule()))?;
        let name = window.time_zone.as_deref().unwrap_or(UTC);
        let zone = Tz::from_str(name).map_err(|_| WindowError::TimeZone(name.to_owned()))?;
        let duration = TimeDelta::seconds(i64::from(window.duration_seconds));
        let read = Self { cron, zone, duration };
        read.next_opening(DateTime::UNIX_EPOCH).ok_or_else(|| WindowError::Never(schedule()))?;
        Ok(read)
    }

    /// The name of the time zone.
    #[must_use]
    pub fn zone_name(&self) -> &'static str {
        self.zone.name()
    }

    /// Whether the window is open.
    #[must_use]
    pub fn is_open(&self, now: DateTime<Utc>) -> bool {
        self.closes(now).is_some()
    }

    /// When the window closes, if it is open. A window that opens again before it closes stays open for longer.
    #[must_use]
    pub fn closes(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let opened = self.next_opening(now - self.duration).filter(|opened| *opened <= now)?;
        Some(opened + self.duration)
    }

    /// When the window opens next, after the given time.
    #[must_use]
    pub fn next_opening(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        // Starts with the day before: a time that clocks skip at midnight opens on the next day.
        let first = after.with_timezone(&self.zone).date_naive().checked_sub_days(Days::new(1))?;
        let days = (0..DAYS).map_while(|day| first.checked_add_days(Days::new(day)));
        days.filter(|day| self.has_day(*day))
            .flat_map(|day| self.times_of(day))
            .filter_map(|local| self.instant(local))
            .find(|opening| *opening > after)
    }

    fn has_day(&self, day: NaiveDate) -> bool {
        let pattern = &self.cron.pattern;
        pattern.month_match(day.month()).unwrap_or(false)
            && pattern.day_match(day.year(), day.month(), day.day()).unwrap_or(false)
    }

    fn times_of(&self, day: NaiveDate) -> impl Iterator<Item = NaiveDateTime> {
        let pattern = &self.cron.pattern;
        (0..24_u32)
            .filter(|hour| pattern.hour_match(*hour).unwrap_or(false))
            .flat_map(move |hour| {
                let minutes = (0..60_u32).filter(|minute| pattern.minute_match(*minute).unwrap_or(false));
                minutes.map(move |minute| (hour, minute))
            })
            .filter_map(move |(hour, minute)| day.and_hms_opt(hour, minute, 0))
    }

    /// The time at which a clock shows this: the first of two, and the first after a time that clocks skip.
    fn instant(&self, local: NaiveDateTime) -> Option<DateTime<Utc>> {
        (0..=LONGEST_GAP).find_map(|minutes| {
            match self.zone.from_local_datetime(&(local + TimeDelta::minutes(minutes))) {
                LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => Some(at.to_utc()),
                LocalResult::None => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window(schedule: &str, hours: i32, zone: &str) -> Result<Window, WindowError> {
        Window::new(&DisruptionWindow {
            schedule: schedule.to_owned(),
            duration_seconds: hours * 3600,
            time_zone: Some(zone.to_owned()),
            max_disrupted: None,
        })
    }

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn a_window_is_open_from_its_schedule_for_its_duration() {
        let nights = window("0 22 * * 1-5", 6, "Europe/Dublin").unwrap();
        for (now, open) in [
            ("2026-01-05T21:59:59Z", false),
            ("2026-01-05T22:00:00Z", true),
            ("2026-01-06T03:59:59Z", true),
            ("2026-01-06T04:00:00Z", false),
            // Saturday morning belongs to Friday's window; Saturday has none.
            ("2026-01-10T01:00:00Z", true),
            ("2026-01-10T22:30:00Z", false),
        ] {
            assert_eq!(nights.is_open(at(now)), open, "{now}");
        }
        assert_eq!(nights.closes(at("2026-01-05T23:00:00Z")), Some(at("2026-01-06T04:00:00Z")));
        assert_eq!(nights.next_opening(at("2026-01-10T12:00:00Z")), Some(at("2026-01-12T22:00:00Z")));
        assert_eq!(nights.next_opening(at("2026-01-12T22:00:00Z")), Some(at("2026-01-13T22:00:00Z")));
    }

    #[test]
    fn the_schedule_follows_the_clocks_of_its_zone() {
        let nights = window("0 22 * * *", 1, "Europe/Dublin").unwrap();
        // Summer time begins on 29 March 2026 and ends on 25 October.
        assert_eq!(nights.next_opening(at("2026-03-28T12:00:00Z")), Some(at("2026-03-28T22:00:00Z")));
        assert_eq!(nights.next_opening(at("2026-03-29T12:00:00Z")), Some(at("2026-03-29T21:00:00Z")));
        assert_eq!(nights.next_opening(at("2026-10-25T12:00:00Z")), Some(at("2026-10-25T22:00:00Z")));
    }

    #[test]
    fn a_time_that_the_clocks_skip_is_the_first_after_it() {
        let gap = window("30 1 * * *", 1, "Europe/Dublin").unwrap();
        // 01:30 does not come on 29 March 2026: 00:59:59Z is followed by 02:00 local, 01:00Z.
        assert_eq!(gap.next_opening(at("2026-03-28T12:00:00Z")), Some(at("2026-03-29T01:00:00Z")));
        assert_eq!(gap.next_opening(at("2026-03-29T12:00:00Z")), Some(at("2026-03-30T00:30:00Z")));
        // Midnight is skipped in Beirut on 29 March 2026.
        let midnight = window("0 0 29 3 *", 1, "Asia/Beirut").unwrap();
        assert_eq!(midnight.next_opening(at("2026-03-01T00:00:00Z")), Some(at("2026-03-28T22:00:00Z")));
    }

    #[test]
    fn a_time_that_comes_twice_opens_once() {
        let twice = window("30 1 * * *", 1, "Europe/Dublin").unwrap();
        assert_eq!(twice.next_opening(at("2026-10-24T12:00:00Z")), Some(at("2026-10-25T00:30:00Z")));
        assert_eq!(twice.next_opening(at("2026-10-25T00:30:00Z")), Some(at("2026-10-26T01:30:00Z")));
    }

    #[test]
    fn a_window_that_opens_again_before_it_closes_stays_open() {
        let hourly = window("0 * * * *", 2, "Etc/UTC").unwrap();
        for minutes in 0..600 {
            assert!(hourly.is_open(at("2026-03-01T00:00:00Z") + TimeDelta::minutes(minutes)));
        }
    }

    #[test]
    fn what_is_no_schedule_or_zone_is_refused_in_words() {
        let schedule = |text: &str| Err(WindowError::Schedule(text.to_owned()));
        for text in ["0 22 * *", "0 22 * * * *", "0 24 * * *", "@daily", "0 22 * * 8", "x x x x x"] {
            assert_eq!(window(text, 1, "Etc/UTC").map(|_| ()), schedule(text), "{text}");
        }
        assert_eq!(
            window("0 0 30 2 *", 1, "Etc/UTC").map(|_| ()),
            Err(WindowError::Never("0 0 30 2 *".to_owned()))
        );
        assert_eq!(
            window("0 0 * * *", 1, "Europe/Atlantis").map(|_| ()),
            Err(WindowError::TimeZone("Europe/Atlantis".to_owned()))
        );
        assert!(window("0 0 29 2 *", 1, "Etc/UTC").is_ok());
        assert!(window("0 4 * * MON#1", 1, "America/New_York").is_ok());
    }

    proptest! {
        /// Whatever the schedule, the next opening is one: closed just before unless an earlier one lasts, open then.
        #[test]
        fn the_next_opening_opens(
            minute in 0..60_u32, hour in 0..24_u32, day in 0..8_u32, hours in 1..30_i32,
            zone in prop::sample::select(vec!["Etc/UTC", "Europe/Dublin", "America/New_York", "Asia/Beirut", "Australia/Lord_Howe"]),
            now in 1_700_000_000_i64..1_900_000_000,
        ) {
            let day = if day == 7 { "*".to_owned() } else { day.to_string() };
            let window = window(&format!("{minute} {hour} * * {day}"), hours, zone).unwrap();
            let now = DateTime::from_timestamp(now, 0).unwrap();
            let next = window.next_opening(now).unwrap();
            prop_assert!(next > now);
            prop_assert!(window.is_open(next));
            if !window.is_open(now) {
                prop_assert!(!window.is_open(next - TimeDelta::seconds(1)));
            }
            if let Some(closes) = window.closes(now) {
                prop_assert!(closes > now && window.is_open(closes - TimeDelta::seconds(1)));
            }
        }
    }
}
