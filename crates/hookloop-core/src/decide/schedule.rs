//! Schedules: set, pause, resume, remove, and fire.

use super::{Decided, KnownFacts, check_spec, on_task};
use crate::event::{EventBody, NoData};
use crate::id::{Subject, TaskId};
use crate::refusal::Refusal;
use crate::schedule::{
    BadTimetable, OccurrenceResult, Overlap, Schedule, ScheduleCommand, ScheduleFired,
    ScheduleName, ScheduleResumed, ScheduleSet, ScheduleStanding,
};
use crate::time::Timestamp;

pub(super) fn decide(
    name: &ScheduleName,
    ask: &ScheduleCommand,
    facts: &KnownFacts,
) -> Result<Vec<Decided>, Refusal> {
    let existing = || facts.schedule.as_ref().ok_or_else(|| Refusal::NoSuchSchedule(name.clone()));
    match ask {
        ScheduleCommand::Set(schedule) => set(name, schedule, facts),
        ScheduleCommand::Pause => Ok(match existing()?.is_paused {
            true => vec![],
            false => vec![on(name, EventBody::SchedulePaused(NoData {}))],
        }),
        ScheduleCommand::Resume => resume(existing()?, facts),
        ScheduleCommand::Remove => {
            existing()?;
            Ok(vec![on(name, EventBody::ScheduleRemoved(NoData {}))])
        }
        ScheduleCommand::Fire { slot, task } => fire(existing()?, *slot, task, facts),
        ScheduleCommand::Run { task } => Ok(run(existing()?, task, facts)),
    }
}

fn on(name: &ScheduleName, body: EventBody) -> Decided {
    (Subject::Schedule(name.clone()), body)
}

fn set(
    name: &ScheduleName,
    schedule: &Schedule,
    facts: &KnownFacts,
) -> Result<Vec<Decided>, Refusal> {
    if facts.schedule.is_some() {
        return Err(Refusal::ScheduleExists(name.clone()));
    }
    check_spec(&schedule.task)?;
    let next = schedule.timetable.next_after(facts.now)?;
    let next = next.ok_or_else(|| BadTimetable::Never(schedule.timetable.cron.clone()))?;
    let set = ScheduleSet { schedule: schedule.clone(), next };
    Ok(vec![on(name, EventBody::ScheduleSet(Box::new(set)))])
}

/// Resumes a schedule. Occurrences during the pause are skipped.
fn resume(standing: &ScheduleStanding, facts: &KnownFacts) -> Result<Vec<Decided>, Refusal> {
    if !standing.is_paused {
        return Ok(vec![]);
    }
    let next = standing.schedule.timetable.next_after(facts.now)?;
    Ok(vec![on(&standing.name, EventBody::ScheduleResumed(ScheduleResumed { next }))])
}

/// Decides the task of an occurrence. A second caller finds that the schedule is due later.
fn fire(
    standing: &ScheduleStanding,
    slot: Timestamp,
    task: &TaskId,
    facts: &KnownFacts,
) -> Result<Vec<Decided>, Refusal> {
    let Some(due) = standing.next.filter(|due| *due <= slot) else { return Ok(vec![]) };
    let next = standing.schedule.timetable.next_after(slot.max(facts.now))?;
    let missed_from = (due < slot).then_some(due);
    let came = match (&facts.last_open, standing.schedule.overlap) {
        (Some(open), Overlap::Skip) => OccurrenceResult::SkippedFor(open.clone()),
        _ => OccurrenceResult::TaskId(task.clone()),
    };
    Ok(made(
        standing,
        ScheduleFired { occurrence: slot, by_hand: false, came, missed_from, next },
        facts,
    ))
}

fn run(standing: &ScheduleStanding, task: &TaskId, facts: &KnownFacts) -> Vec<Decided> {
    let (slot, came) = (facts.now, OccurrenceResult::TaskId(task.clone()));
    let fired = ScheduleFired {
        occurrence: slot,
        by_hand: true,
        came,
        missed_from: None,
        next: standing.next,
    };
    made(standing, fired, facts)
}

/// Returns the events for the task of an occurrence, or none if the task exists or was deleted.
fn made(standing: &ScheduleStanding, fired: ScheduleFired, facts: &KnownFacts) -> Vec<Decided> {
    let mut events = Vec::new();
    if let OccurrenceResult::TaskId(task) = &fired.came
        && facts.task.is_none()
        && !facts.deleted
    {
        let spec = standing.schedule.task.clone();
        events.push(on_task(task, EventBody::TaskCreated(spec)));
    }
    events.push(on(&standing.name, EventBody::ScheduleFired(fired)));
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Timetable;
    use crate::task::TaskSpec;

    fn at(text: &str) -> Timestamp {
        format!("2026-11-16T{text}:00Z").parse().unwrap()
    }

    fn name() -> ScheduleName {
        "s".parse().unwrap()
    }

    fn task(name: &str) -> TaskId {
        name.parse().unwrap()
    }

    fn schedule(overlap: Overlap) -> Schedule {
        let timetable = Timetable { cron: "0 * * * *".into(), tz: None };
        Schedule { timetable, overlap, task: TaskSpec { goal: "g".into(), ..TaskSpec::default() } }
    }

    fn facts(overlap: Overlap, next: Option<&str>, now: &str) -> KnownFacts {
        let standing = ScheduleStanding {
            name: name(),
            schedule: schedule(overlap),
            is_paused: next.is_none(),
            next: next.map(at),
            last: None,
        };
        KnownFacts { schedule: Some(standing), now: at(now), ..KnownFacts::default() }
    }

    fn fired(facts: &KnownFacts, slot: &str) -> (Vec<String>, Option<ScheduleFired>) {
        let ask = ScheduleCommand::Fire { slot: at(slot), task: task("t") };
        let events = decide(&name(), &ask, facts).unwrap();
        let kinds = events.iter().map(|(_, body)| body.kind().to_owned()).collect();
        let fired = events.into_iter().find_map(|(_, body)| match body {
            EventBody::ScheduleFired(fired) => Some(fired),
            _ => None,
        });
        (kinds, fired)
    }

    #[test]
    fn a_schedule_occurrence_creates_one_task() {
        let facts = facts(Overlap::Skip, Some("03:00"), "03:10");
        let (kinds, made) = fired(&facts, "03:00");
        assert_eq!(kinds, ["task_created", "schedule_fired"]);
        let made = made.unwrap();
        assert_eq!((made.next, made.missed_from), (Some(at("04:00")), None));
        // Another machine was first: the next one is due later.
        let later = self::facts(Overlap::Skip, Some("04:00"), "03:10");
        assert_eq!(fired(&later, "03:00").0, [] as [&str; 0]);
        let paused = self::facts(Overlap::Skip, None, "03:10");
        assert_eq!(fired(&paused, "03:00").0, [] as [&str; 0]);
        let deleted = KnownFacts { deleted: true, ..facts };
        assert_eq!(fired(&deleted, "03:00").0, ["schedule_fired"]);
    }

    #[test]
    fn only_the_last_missed_occurrence_creates_a_task() {
        let (kinds, made) = fired(&facts(Overlap::Skip, Some("03:00"), "08:30"), "08:00");
        assert_eq!(kinds, ["task_created", "schedule_fired"]);
        let made = made.unwrap();
        assert_eq!((made.missed_from, made.next), (Some(at("03:00")), Some(at("09:00"))));
    }

    #[test]
    fn overlap_skip_creates_no_task_while_the_last_one_is_open() {
        let open = |overlap| KnownFacts {
            last_open: Some(task("before")),
            ..facts(overlap, Some("03:00"), "03:00")
        };
        let (kinds, made) = fired(&open(Overlap::Skip), "03:00");
        assert_eq!(kinds, ["schedule_fired"]);
        assert_eq!(made.unwrap().came, OccurrenceResult::SkippedFor(task("before")));
        assert_eq!(fired(&open(Overlap::Allow), "03:00").0.len(), 2);
    }

    #[test]
    fn a_schedule_command_without_effect_records_no_event() {
        let check = |facts: &KnownFacts, ask: ScheduleCommand, expected: Result<&[&str], &str>| {
            let decided = decide(&name(), &ask, facts);
            let real = decided.map(|events| {
                events.iter().map(|(_, body)| body.kind().to_owned()).collect::<Vec<_>>()
            });
            match (real, expected) {
                (Ok(kinds), Ok(expected)) => assert_eq!(kinds, expected, "{ask:?}"),
                (Err(why), Err(part)) => assert!(why.to_string().contains(part), "{why}"),
                (real, _) => panic!("{ask:?}: {real:?}"),
            }
        };
        let (none, due) = (KnownFacts::default(), facts(Overlap::Skip, Some("03:00"), "02:00"));
        let paused = facts(Overlap::Skip, None, "02:00");
        let set = || ScheduleCommand::Set(Box::new(schedule(Overlap::Skip)));
        check(&none, set(), Ok(&["schedule_set"]));
        check(&due, set(), Err("exists already"));
        check(&due, ScheduleCommand::Pause, Ok(&["schedule_paused"]));
        check(&paused, ScheduleCommand::Pause, Ok(&[]));
        check(&paused, ScheduleCommand::Resume, Ok(&["schedule_resumed"]));
        check(&due, ScheduleCommand::Resume, Ok(&[]));
        check(&due, ScheduleCommand::Remove, Ok(&["schedule_removed"]));
        check(
            &paused,
            ScheduleCommand::Run { task: task("t") },
            Ok(&["task_created", "schedule_fired"]),
        );
        for ask in [
            ScheduleCommand::Pause,
            ScheduleCommand::Resume,
            ScheduleCommand::Remove,
            ScheduleCommand::Run { task: task("t") },
        ] {
            check(&none, ask, Err("there is no schedule `s`"));
        }
        let mut never = schedule(Overlap::Skip);
        never.timetable.cron = "0 0 30 2 *".into();
        check(&none, ScheduleCommand::Set(Box::new(never)), Err("is never due"));
        let mut aimless = schedule(Overlap::Skip);
        aimless.task.goal.clear();
        check(&none, ScheduleCommand::Set(Box::new(aimless)), Err("needs a goal"));
    }
}
