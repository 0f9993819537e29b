//! Schedules of recurring tasks.
//!
//! Times are local times of a time zone. An occurrence in an hour that the clock skips is due when
//! the clock continues. In an hour that occurs twice, it is due the first time. Patterns with
//! several occurrences a day simply follow the clock. The time zone database is built in, so that
//! all machines agree.

use std::fmt;
use std::str::FromStr;

use croner::parser::{CronParser, Seconds, Year};
use jiff::Zoned;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::excerpt::first_chars;
use crate::id::TaskId;
use crate::task::TaskSpec;
use crate::time::Timestamp;

pub use crate::id::{BadScheduleName, ScheduleName};

/// The longest pattern or time zone.
const TEXT_MAX_BYTES: usize = 256;
/// The fields of a cron expression, with their values.
const CRON_FIELDS: [&str; 5] = [
    "minute (0-59)",
    "hour (0-23)",
    "day of the month (1-31)",
    "month (1-12 or JAN-DEC)",
    "day of the week (0-7 or SUN-SAT)",
];

/// The occurrences of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timetable {
    /// Five fields: minute, hour, day of the month, month, day of the week.
    pub cron: String,
    /// The time zone; UTC if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTimetable {
    #[error("`{cron}` is not a cron expression: {why}")]
    Cron { cron: String, why: String },
    #[error("there is no time zone `{0}`")]
    Zone(String),
    #[error("`{0}` is never due")]
    Never(String),
}

impl BadTimetable {
    /// Returns a sentence with an example of a right value.
    pub fn advice(&self) -> &'static str {
        match self {
            BadTimetable::Cron { .. } | BadTimetable::Never(_) => {
                "write minute, hour, day, month and weekday, such as `0 3 * * 1-5`: at 03:00 on \
                 weekdays"
            }
            BadTimetable::Zone(_) => "write a name such as `Europe/Berlin`, or `UTC`",
        }
    }
}

impl Timetable {
    /// Returns the first occurrence after `moment`, if there is one.
    pub fn next_after(&self, moment: Timestamp) -> Result<Option<Timestamp>, BadTimetable> {
        let (cron, moment) = self.read(moment)?;
        Ok(cron.find_next_occurrence(&moment, false).ok().map(|slot| stamp(&slot)))
    }

    /// Returns the last occurrence up to `moment`.
    pub fn last_until(&self, moment: Timestamp) -> Result<Option<Timestamp>, BadTimetable> {
        let (cron, moment) = self.read(moment)?;
        Ok(cron.find_previous_occurrence(&moment, true).ok().map(|slot| stamp(&slot)))
    }

    fn read(&self, moment: Timestamp) -> Result<(croner::Cron, Zoned), BadTimetable> {
        let bad = |why: String| BadTimetable::Cron { cron: shown(&self.cron), why };
        if self.cron.len() > TEXT_MAX_BYTES {
            return Err(bad(format!("longer than {TEXT_MAX_BYTES} bytes")));
        }
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed);
        let parser = parser.build();
        let cron = parser.parse(&self.cron).map_err(|_| bad(cron_mistake(&parser, &self.cron)))?;
        let moment = jiff::Timestamp::from_millisecond(moment.0)
            .map_err(|_| BadTimetable::Never(shown(&self.cron)))?;
        Ok((cron, moment.to_zoned(self.zone()?)))
    }

    fn zone(&self) -> Result<TimeZone, BadTimetable> {
        match &self.tz {
            None => Ok(TimeZone::UTC),
            Some(name) => {
                TimeZoneDatabase::bundled().get(name).map_err(|_| BadTimetable::Zone(shown(name)))
            }
        }
    }
}

/// Describes the first mistake of an expression that the parser refuses.
fn cron_mistake(parser: &CronParser, cron: &str) -> String {
    let fields: Vec<&str> = cron.split_whitespace().collect();
    if fields.len() != CRON_FIELDS.len() {
        return format!("it has {} instead of {} fields", fields.len(), CRON_FIELDS.len());
    }
    let is_wrong = |place: usize, field: &str| {
        let mut alone = ["*"; CRON_FIELDS.len()];
        alone[place] = field;
        parser.parse(&alone.join(" ")).is_err()
    };
    let mut read = fields.iter().zip(CRON_FIELDS).enumerate();
    match read.find(|(place, (field, _))| is_wrong(*place, field)) {
        Some((_, (field, name))) => format!("`{field}` is not a valid {name}"),
        None => "its fields can't be combined".to_owned(),
    }
}

fn stamp(slot: &Zoned) -> Timestamp {
    Timestamp(slot.timestamp().as_millisecond())
}

fn shown(text: &str) -> String {
    first_chars(text, TEXT_MAX_BYTES)
}

impl fmt::Display for Timetable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.cron, self.tz.as_deref().unwrap_or("UTC"))
    }
}

/// Whether a new task is made while the last one is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    #[default]
    Skip,
    Allow,
}

impl Overlap {
    pub fn name(self) -> &'static str {
        match self {
            Overlap::Skip => "skip",
            Overlap::Allow => "allow",
        }
    }
}

impl FromStr for Overlap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = [Overlap::Skip, Overlap::Allow].into_iter().find(|known| known.name() == text);
        known.ok_or_else(|| format!("`{text}` is not one of skip, allow"))
    }
}

/// A recurring task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Schedule {
    #[serde(flatten)]
    pub timetable: Timetable,
    #[serde(default)]
    pub overlap: Overlap,
    pub task: TaskSpec,
}

/// A schedule and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleStanding {
    pub name: ScheduleName,
    pub schedule: Schedule,
    pub is_paused: bool,
    /// The next occurrence; none while the schedule is paused, or if there are no more.
    pub next: Option<Timestamp>,
    pub last: Option<ScheduleFired>,
}

/// A schedule was added or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleSet {
    #[serde(flatten)]
    pub schedule: Schedule,
    /// The next occurrence.
    pub next: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleResumed {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
}

/// An occurrence of a schedule, or a person's request for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleFired {
    /// The time of the occurrence.
    #[serde(alias = "slot")]
    pub occurrence: Timestamp,
    #[serde(alias = "byHand", default, skip_serializing_if = "std::ops::Not::not")]
    pub by_hand: bool,
    #[serde(flatten)]
    pub came: OccurrenceResult,
    /// The first missed occurrence, if there are others than this one.
    #[serde(alias = "missedFrom", default, skip_serializing_if = "Option::is_none")]
    pub missed_from: Option<Timestamp>,
    /// The occurrence after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
}

/// The result of an occurrence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OccurrenceResult {
    /// The task of the occurrence.
    #[serde(alias = "taskId")]
    TaskId(TaskId),
    /// No task, because this one is still open.
    #[serde(alias = "skippedFor")]
    SkippedFor(TaskId),
}

/// A command about a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleCommand {
    Set(Box<Schedule>),
    Pause,
    Resume,
    Remove,
    /// Makes the task of an occurrence that is due.
    Fire {
        slot: Timestamp,
        task: TaskId,
    },
    /// Makes a task now.
    Run {
        task: TaskId,
    },
}

impl ScheduleCommand {
    /// Returns the task that the command would create.
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            ScheduleCommand::Fire { task, .. } | ScheduleCommand::Run { task } => Some(task),
            ScheduleCommand::Set(_)
            | ScheduleCommand::Pause
            | ScheduleCommand::Resume
            | ScheduleCommand::Remove => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SCHEDULE_NAME_MAX;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn table(cron: &str, tz: &str) -> Timetable {
        let tz = (!tz.is_empty()).then(|| tz.to_owned());
        Timetable { cron: cron.to_owned(), tz }
    }

    /// Checks the occurrences after a moment, and that each leads back to itself.
    fn check(cron: &str, tz: &str, after: &str, expected: &[&str]) {
        let table = table(cron, tz);
        let mut moment = at(after);
        for slot in expected {
            let next = table.next_after(moment).unwrap().unwrap();
            assert_eq!(next, at(slot), "{table} after {moment}");
            assert_eq!(table.last_until(next).unwrap(), Some(next), "{table} until {next}");
            let later = Timestamp(next.0 + 59_999);
            assert_eq!(table.last_until(later).unwrap(), Some(next), "{table} until {later}");
            moment = next;
        }
    }

    #[test]
    fn occurrences_follow_the_cron_pattern() {
        check("0 3 * * 1-5", "", "2026-11-13T03:00:00Z", &["2026-11-16T03:00:00Z"]);
        check("0 3 * * 1-5", "", "2026-11-16T02:59:59.999Z", &["2026-11-16T03:00:00Z"]);
        check(
            "*/20 * * * *",
            "",
            "2026-11-16T23:30:00Z",
            &["2026-11-16T23:40:00Z", "2026-11-17T00:00:00Z", "2026-11-17T00:20:00Z"],
        );
        check("0 0 29 2 *", "", "2026-11-16T00:00:00Z", &["2028-02-29T00:00:00Z"]);
        check("30 8 1 * *", "Asia/Kolkata", "2026-11-16T00:00:00Z", &["2026-12-01T03:00:00Z"]);
        check("0 12 * * *", "Europe/Berlin", "2026-07-01T00:00:00Z", &["2026-07-01T10:00:00Z"]);
    }

    /// In Berlin, the clock skips 02:00 to 03:00 on 2027-03-28.
    #[test]
    fn an_occurrence_skipped_by_daylight_saving_is_due_after_the_gap() {
        let berlin = "Europe/Berlin";
        check("0 2,14 * * *", berlin, "2027-03-27T14:00:00Z", &["2027-03-28T12:00:00Z"]);
        check(
            "30 2 * * *",
            berlin,
            "2027-03-27T12:00:00Z",
            &["2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"],
        );
        check(
            "*/30 * * * *",
            berlin,
            "2027-03-28T00:29:00Z",
            &["2027-03-28T00:30:00Z", "2027-03-28T01:00:00Z", "2027-03-28T01:30:00Z"],
        );
    }

    /// In Berlin, 02:00 to 03:00 occurs twice on 2026-10-25.
    #[test]
    fn a_repeated_hour_has_one_daily_occurrence_and_all_interval_occurrences() {
        let berlin = "Europe/Berlin";
        check(
            "30 2 * * *",
            berlin,
            "2026-10-24T12:00:00Z",
            &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
        );
        check(
            "*/30 * * * *",
            berlin,
            "2026-10-25T00:00:00Z",
            &[
                "2026-10-25T00:30:00Z",
                "2026-10-25T01:00:00Z",
                "2026-10-25T01:30:00Z",
                "2026-10-25T02:00:00Z",
            ],
        );
    }

    #[test]
    fn invalid_cron_patterns_and_time_zones_are_reported() {
        let check = |cron: &str, tz: &str, part: &str| {
            let error = table(cron, tz).next_after(Timestamp(0)).unwrap_err().to_string();
            assert!(error.contains(part), "{cron} {tz}: {error}");
        };
        for (cron, count) in [("", 0), ("* * * *", 4), ("0 * * * * *", 6), ("x", 1)] {
            let part = format!("is not a cron expression: it has {count} instead of 5 fields");
            check(cron, "", &part);
        }
        check("61 * * * *", "", "`61` is not a valid minute (0-59)");
        check("*/0 * * * *", "", "`*/0` is not a valid minute (0-59)");
        check("0 25 * foo *", "", "`25` is not a valid hour (0-23)");
        check("0 3 1 foo *", "", "`foo` is not a valid month (1-12 or JAN-DEC)");
        check("0 3 * * monday", "", "`monday` is not a valid day of the week (0-7 or SUN-SAT)");
        check(&"1,".repeat(200), "", "longer than");
        check("0 3 * * *", "Europe/Bielefeld", "no time zone `Europe/Bielefeld`");
        check("0 3 * * *", "../../etc/passwd", "no time zone");
        assert_eq!(table("0 0 30 2 *", "").next_after(at("2026-01-01T00:00:00Z")), Ok(None));
    }

    #[test]
    fn an_occurrence_names_its_task() {
        let name: ScheduleName = "nightly".parse().unwrap();
        let id = name.task_at(at("2026-11-16T03:00:00Z")).unwrap();
        assert_eq!(id.as_str(), "nightly-20261116T0300");
        let longest: ScheduleName = "x".repeat(SCHEDULE_NAME_MAX).parse().unwrap();
        assert!(longest.task_at(at("2026-11-16T03:00:00Z")).is_some());
        for bad in ["", "-a", "a b", "_x", &"x".repeat(SCHEDULE_NAME_MAX + 1)] {
            assert!(bad.parse::<ScheduleName>().is_err(), "{bad}");
        }
    }
}
