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
    #[error("`{cron}` is not a cron pattern of five fields (minute hour day month weekday): {why}")]
    Cron { cron: String, why: String },
    #[error("there is no time zone `{0}`: write a name such as Europe/Berlin, or UTC")]
    Zone(String),
    #[error("`{0}` is never due")]
    Never(String),
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
        let cron = parser.build().parse(&self.cron).map_err(|error| bad(error.to_string()))?;
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
    fn slots_follow_the_pattern() {
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
    fn what_a_clock_leaves_out_is_due_when_it_goes_on() {
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
    fn what_comes_twice_is_due_once_unless_it_is_due_every_so_often() {
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
    fn what_is_no_timetable_is_named() {
        let check = |cron: &str, tz: &str, part: &str| {
            let error = table(cron, tz).next_after(Timestamp(0)).unwrap_err().to_string();
            assert!(error.contains(part), "{cron} {tz}: {error}");
        };
        for cron in ["", "* * * *", "0 * * * * *", "61 * * * *", "0 3 * * monday", "x"] {
            check(cron, "", "is not a cron pattern");
        }
        check(&"1,".repeat(200), "", "longer than");
        check("0 3 * * *", "Europe/Bielefeld", "no time zone `Europe/Bielefeld`");
        check("0 3 * * *", "../../etc/passwd", "no time zone");
        assert_eq!(table("0 0 30 2 *", "").next_after(at("2026-01-01T00:00:00Z")), Ok(None));
    }

    #[test]
    fn a_slot_names_its_task() {
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
