//! A turn of an agent in words.

use hookloop_core::inbox::one_line;
use hookloop_core::session::plan::{CompactCount, Dollars, counted_items, is_external_agent};
use hookloop_core::session::{TurnEnded, TurnKind, TurnResult};
use hookloop_core::time::Timestamp;

use super::names::{short_hash, some};
use super::step_text::{StepSeverity, StepText};
use super::time::duration;

/// Characters of an agent's last line that are shown.
const SAID_SHOWN: usize = 100;

/// Describes a turn that has ended.
pub(super) fn ended(ended: &TurnEnded, title: &'static str) -> StepText {
    let took = duration(ended.duration_ms);
    let why = || ended.failure_line().unwrap_or_default();
    let (severity, result, line) = match &ended.result {
        TurnResult::Finished => {
            let facts = join(", ", facts(ended));
            let facts = if facts.is_empty() { facts } else { format!(", {facts}") };
            let said = last_line(&ended.message);
            let said = said.map_or_else(String::new, |said| format!("; message: {said}"));
            (StepSeverity::Plain, String::new(), format!("agent took {took}{facts}{said}"))
        }
        TurnResult::Failed { .. } => {
            let line = format!("agent failed after {took}: {}", why());
            (StepSeverity::Bad, format!("failed: {}", why()), line)
        }
        TurnResult::RateLimited { until_ms, .. } => {
            let text = format!("rate limit, {}: {}", waits_until(*until_ms), why());
            (StepSeverity::Bad, text.clone(), text)
        }
        TurnResult::Cancelled => {
            (StepSeverity::Bad, "stopped".to_owned(), format!("agent stopped after {took}"))
        }
    };
    let tree = ended.tree.as_deref().map(tree_name);
    let detail = join("; ", std::iter::once(result).chain(facts(ended)).chain(tree));
    StepText { severity, title, name: ended.agent.clone(), detail, line }
}

/// Describes a turn that has not ended, or whose program died.
pub(super) fn unfinished(kind: TurnKind, has_died: bool) -> StepText {
    let (severity, line) = match (has_died, kind) {
        (true, _) => (StepSeverity::Bad, "agent: its program died during the turn"),
        (false, TurnKind::Work) => (StepSeverity::Heading, "agent at work"),
        (false, TurnKind::Recovery) => {
            (StepSeverity::Heading, "agent at work: recovery after the error")
        }
        (false, TurnKind::Delivery) => {
            (StepSeverity::Heading, "agent at work: final turn with pending output")
        }
    };
    let detail = if has_died { "its program died during the turn" } else { "" };
    StepText {
        severity,
        title: title(kind),
        name: String::new(),
        detail: detail.to_owned(),
        line: line.to_owned(),
    }
}

/// Names the tree of all files after a turn; none if it is unknown.
pub(crate) fn files_after(turn: u32, tree: Option<&str>) -> Option<String> {
    tree.map(|tree| format!("files after turn {turn}: {}", tree_name(tree)))
}

fn tree_name(tree: &str) -> String {
    format!("tree {}", short_hash(tree))
}

/// Returns the name of a kind of turn.
pub(super) fn title(kind: TurnKind) -> &'static str {
    match kind {
        TurnKind::Work => "turn",
        TurnKind::Recovery => "recovery turn",
        TurnKind::Delivery => "final turn",
    }
}

/// Lists the changed files, the usage and the refused tools of a turn; unknown ones are empty.
fn facts(ended: &TurnEnded) -> [String; 3] {
    let changed = changed_files(ended).unwrap_or_default();
    let usage = if ended.usage.is_none() {
        String::new()
    } else {
        format!("{} tokens, {}", CompactCount(ended.usage.tokens()), turn_cost(ended))
    };
    let refused = match ended.refused.as_slice() {
        [] => String::new(),
        refused => format!("denied tools: {}", some(refused)),
    };
    [changed, usage, refused]
}

fn join(separator: &str, parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(separator)
}

/// Names the files that a turn changed; none if they are unknown.
fn changed_files(ended: &TurnEnded) -> Option<String> {
    match ended.changed.len() {
        // The turn of an external session may begin before hookloop reads the files.
        0 if is_external_agent(&ended.agent) => None,
        0 => Some("changed no file".to_owned()),
        count => {
            let files = counted_items(count, "file", "files");
            Some(format!("changed {files}: {}", some(&ended.changed)))
        }
    }
}

/// Returns the cost of a turn.
fn turn_cost(ended: &TurnEnded) -> String {
    match ended.cost().known_micros() {
        Some(micros) => Dollars(micros).to_string(),
        None => "cost unknown".to_owned(),
    }
}

/// Says when the next turn begins after a rate limit.
fn waits_until(until_ms: Option<u64>) -> String {
    let until = until_ms.and_then(|ms| i64::try_from(ms).ok());
    match until {
        Some(ms) => format!("the next turn begins after {}", Timestamp(ms)),
        None => "the provider gives no end; the next turn begins in a minute or more".to_owned(),
    }
}

/// Returns the last line of a message that is not a promise.
fn last_line(message: &str) -> Option<String> {
    let is_text = |line: &&str| !line.trim().is_empty() && !line.contains("<promise>");
    let line = message.lines().rev().find(is_text)?;
    Some(one_line(line, SAID_SHOWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_turn_is_shown_without_its_promise() {
        let check = |message: &str, expected: Option<&str>| {
            assert_eq!(last_line(message).as_deref(), expected, "{message}");
        };
        check("I looked.\nAll pass.\n\n<promise>COMPLETE</promise>\n", Some("All pass."));
        check("<promise>COMPLETE</promise>", None);
        check("\u{1b}[31mred", Some("[31mred"));
    }
}
