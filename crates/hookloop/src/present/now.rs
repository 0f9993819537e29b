//! The step that a session is at, in words.

use hookloop_core::id::SessionId;
use hookloop_core::time::Timestamp;
use hookloop_engine::project::Project;
use hookloop_engine::session::now;
use hookloop_engine::session::now::{NowRecord, NowStep, RunningHook};
use hookloop_hooks::hook_context::WATCHER_HINT;

use crate::present::clock;
use crate::sanitize::{last_overwrite, screen_line};

/// Returns the current step of a session that a process of this machine runs.
pub(crate) fn of(project: &Project, id: &SessionId) -> Option<NowRecord> {
    now::read(project.runner()?, id)
}

/// Describes the step in one line, with its elapsed time.
pub(crate) fn line(record: &NowRecord, at: Timestamp) -> String {
    match record.hooks.as_slice() {
        [] => format!("{}, {}", step(record), elapsed(record.since, at)),
        [hook] => hook_line(record, hook, at),
        [hook, rest @ ..] => format!("{} (+{} more)", hook_line(record, hook, at), rest.len()),
    }
}

/// Describes the step in detail: a line for each running hook, and its last output below.
pub(crate) fn lines(record: &NowRecord, at: Timestamp) -> Vec<String> {
    if record.hooks.is_empty() {
        let last = record.lines.iter().rev().map(|line| shown(line));
        let last = last.into_iter().find(|line| !line.is_empty());
        let last = last.map(|line| format!("last output: {line}"));
        return std::iter::once(line(record, at)).chain(last).collect();
    }
    let mut lines = Vec::new();
    for hook in &record.hooks {
        lines.push(format!("{}: {}", hook_line(record, hook, at), shown(&hook.command)));
        lines.push(last_output(hook, at));
    }
    lines
}

/// Returns the last line that a hook printed, or says that it prints nothing.
pub(crate) fn last_output(hook: &RunningHook, at: Timestamp) -> String {
    let quiet = hook
        .quiet_for(at)
        .map(|quiet| format!("no output for {} min: {WATCHER_HINT}", quiet.as_secs() / 60));
    let last = hook.last_line().map(|line| format!("last output: {}", shown(line)));
    match (last, quiet) {
        (Some(last), Some(quiet)) => format!("{quiet} {last}"),
        (None, None) => "no output yet".to_owned(),
        (last, quiet) => last.or(quiet).unwrap_or_default(),
    }
}

fn hook_line(record: &NowRecord, hook: &RunningHook, at: Timestamp) -> String {
    let (point, place) = match &record.step {
        NowStep::Hooks { point, count, ended } if *count > 1 => {
            (point.as_str(), format!(" ({} of {count})", (ended + 1).min(*count)))
        }
        NowStep::Hooks { point, .. } => (point.as_str(), String::new()),
        _ => ("hook", String::new()),
    };
    let timeout = clock(hook.until.millis_since(hook.since));
    let attempt = match hook.attempt {
        0 | 1 => String::new(),
        attempt => format!(", attempt {attempt}"),
    };
    let name = shown(&hook.name);
    let took = elapsed(hook.since, at);
    format!("{point} {name}{place} runs, {took} of {timeout}{attempt}")
}

/// Describes the step without its time.
fn step(record: &NowRecord) -> String {
    let until = record.until.map_or(String::new(), |until| format!(" until {}", until_text(until)));
    match &record.step {
        NowStep::Between => "between two steps".to_owned(),
        NowStep::Hooks { point, .. } => format!("{point} hooks"),
        NowStep::Turn { .. } => format!("iteration {}: the agent works", record.iteration),
        NowStep::RateLimit => format!("waits for the end of a rate limit{until}"),
        NowStep::Backoff => format!("waits after a failed turn{until}"),
        NowStep::DeliveryRetry => format!("waits before it tries to deliver again{until}"),
        NowStep::Person { question } => format!("waits for a person: {}", shown(question)),
        NowStep::Budget => "waits for the budget: other sessions have reserved the rest".to_owned(),
        NowStep::Rest => "waits: its worker starts nothing new".to_owned(),
    }
}

/// Returns a moment in whole seconds.
pub(crate) fn until_text(at: Timestamp) -> String {
    Timestamp(at.0 / 1_000 * 1_000).brief()
}

pub(crate) fn elapsed(since: Timestamp, at: Timestamp) -> String {
    clock(at.millis_since(since))
}

/// Returns text from outside on one line, without control characters.
pub(crate) fn shown(text: &str) -> String {
    screen_line(last_overwrite(text.trim_end_matches('\n'))).trim_end().replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(step: NowStep) -> NowRecord {
        let until = Some(Timestamp(60_000));
        let task = None;
        let lines = Vec::new();
        let hooks = Vec::new();
        NowRecord { pid: 1, iteration: 2, task, step, since: Timestamp(0), until, lines, hooks }
    }

    fn hook(lines: &[&str]) -> RunningHook {
        RunningHook {
            name: "tests".to_owned(),
            command: "npm test".to_owned(),
            attempt: 1,
            since: Timestamp(0),
            until: Timestamp(600_000),
            printed_at: None,
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        }
    }

    #[test]
    fn a_running_gate_has_its_name_time_command_and_last_line() {
        let point = "stop".to_owned();
        let mut record = record(NowStep::Hooks { point, count: 3, ended: 1 });
        record.hooks.push(hook(&["one", "\u{1b}[32mtwo\u{1b}[0m", ""]));
        let at = Timestamp(23_400);
        assert_eq!(line(&record, at), "stop tests (2 of 3) runs, 23 s of 10:00");
        assert_eq!(
            lines(&record, at),
            ["stop tests (2 of 3) runs, 23 s of 10:00: npm test", "last output: two"]
        );
        let quiet = &lines(&record, Timestamp(250_000))[1];
        assert!(quiet.starts_with("no output for 4 min: does its command watch"), "{quiet}");
        assert!(quiet.ends_with("last output: two"), "{quiet}");
        record.hooks.push(hook(&[]));
        assert_eq!(line(&record, at), "stop tests (2 of 3) runs, 23 s of 10:00 (+1 more)");
    }

    #[test]
    fn a_quiet_hook_gets_a_hint_after_four_minutes() {
        let check = |hook: &RunningHook, at: i64, expected: &str| {
            assert_eq!(last_output(hook, Timestamp(at)), expected, "{at}");
        };
        let mut silent = hook(&[]);
        check(&silent, 239_999, "no output yet");
        let hint = "does its command watch files or wait for input?";
        check(&silent, 240_000, &format!("no output for 4 min: {hint}"));
        check(&silent, 725_000, &format!("no output for 12 min: {hint}"));
        // Each line that it prints starts the time again.
        silent.printed_at = Some(Timestamp(200_000));
        silent.lines.push("Watching for file changes".to_owned());
        check(&silent, 300_000, "last output: Watching for file changes");
        let expected =
            format!("no output for 4 min: {hint} last output: Watching for file changes");
        check(&silent, 440_000, &expected);
    }

    #[test]
    fn a_waiting_session_is_shown_with_reason_and_time() {
        let check = |step: NowStep, expected: &str| {
            assert_eq!(line(&record(step), Timestamp(5_000)), expected);
        };
        check(NowStep::RateLimit, "waits for the end of a rate limit until 1970-01-01T00:01Z, 5 s");
        let question = "the retry limit is reached".to_owned();
        check(NowStep::Person { question }, "waits for a person: the retry limit is reached, 5 s");
        check(NowStep::Between, "between two steps, 5 s");
    }
}
