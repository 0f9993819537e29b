//! Stop conditions: their votes, and the decision whether an iteration is the last one.

use crate::gates::GateResult;
use crate::payload::plan::StopWhen;
use crate::payload::verdict::StopDecision;
use crate::promise::Promise;

/// The beginning of the reason if a hook could not be evaluated.
pub const EVALUATION_FAILED: &str = "Hook evaluation failed: ";

/// A stop condition with its name. A registered one is named by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopCondition {
    pub name: String,
    pub when: StopWhen,
}

impl From<&StopWhen> for StopCondition {
    fn from(when: &StopWhen) -> StopCondition {
        StopCondition { name: when.to_string(), when: when.clone() }
    }
}

/// The vote of a stop condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopVote {
    pub decision: StopDecision,
    pub reason: String,
    /// An instruction for the agent, if the session continues.
    pub next_prompt: Option<String>,
    /// Output of a hook for the agent, as data.
    pub output: Option<String>,
}

impl StopVote {
    pub fn new(decision: StopDecision, reason: impl Into<String>) -> StopVote {
        StopVote { decision, reason: reason.into(), next_prompt: None, output: None }
    }
}

/// A validation rule and its result on the present files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationResult {
    pub rule: String,
    pub result: GateResult,
}

impl ValidationResult {
    pub fn has_passed(&self) -> bool {
        self.result == GateResult::Passed
    }
}

/// The reasons of a session that stops for a promise that needs a person. The agent's words follow.
const ASKED: &str = "the agent asked for a human";
const BLOCKED: &str = "the agent says that it is blocked";

/// The start of the reason of a session that ended because no file changed.
pub const NO_CHANGES: &str = "no changes: ";

/// Returns the agent's words in the reason of a promise that needs a person.
pub fn question_in(reason: &str) -> &str {
    let words = [ASKED, BLOCKED].iter().find_map(|start| reason.strip_prefix(start));
    words.and_then(|words| words.strip_prefix(": ")).unwrap_or(reason)
}

/// Returns the last paragraph of a message, without its promises.
///
/// It is the question of an agent that requests a person.
pub fn last_words(message: &str) -> Option<String> {
    let is_word = |line: &&str| !line.contains("<promise>");
    let lines: Vec<&str> = message.lines().map(str::trim).filter(is_word).collect();
    let paragraph = lines.rsplit(|line| line.is_empty()).find(|lines| !lines.is_empty())?;
    Some(paragraph.join(" "))
}

/// The judge of a claim that work is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimJudge {
    Gates,
    Nobody,
}

/// Decides by the promises of a turn. Returns `None` without a promise.
///
/// Of several promises, the first in the order of [`Promise::BY_WEIGHT`] counts. COMPLETE beside
/// another promise is no claim if no gate judges it.
pub fn by_promise(promises: &[Promise], judge: ClaimJudge) -> Option<StopVote> {
    let heaviest = Promise::BY_WEIGHT.into_iter().find(|promise| promises.contains(promise))?;
    Some(match (heaviest, contradiction(promises), judge) {
        (Promise::Complete, Some(both), ClaimJudge::Nobody) => {
            let reason = format!("{both}, and there is no gate to judge the work");
            StopVote::new(StopDecision::Escalate, reason)
        }
        (Promise::Complete, ..) => {
            StopVote::new(StopDecision::Complete, "the agent promised <promise>COMPLETE</promise>")
        }
        (Promise::Escalate, ..) => StopVote::new(StopDecision::Escalate, ASKED),
        (Promise::Blocked, ..) => StopVote::new(StopDecision::Escalate, BLOCKED),
    })
}

/// Describes the promises of a turn that has several different ones.
pub fn contradiction(promises: &[Promise]) -> Option<String> {
    let given = Promise::BY_WEIGHT.into_iter().filter(|promise| promises.contains(promise));
    match given.map(Promise::word).collect::<Vec<_>>().as_slice() {
        [] | [_] => None,
        [first @ .., last] => {
            Some(format!("the agent reported {} and {last} in one turn", first.join(", ")))
        }
    }
}

/// Returns the vote of validation rules.
pub fn by_validation(results: &[ValidationResult]) -> StopVote {
    if results.is_empty() {
        return StopVote::new(StopDecision::Continue, "there are no validation rules");
    }
    let names = failing(results);
    if !names.is_empty() {
        let reason = format!("validation rules fail: {}", names.join(", "));
        return StopVote::new(StopDecision::Continue, reason);
    }
    let passed = results.iter().filter(|result| result.has_passed()).count();
    if passed == results.len() {
        StopVote::new(StopDecision::Complete, "all validation rules pass")
    } else if passed > 0 {
        let reason = format!("{passed} of {} validation rules pass, none blocks", results.len());
        StopVote::new(StopDecision::Complete, reason)
    } else {
        StopVote::new(
            StopDecision::Continue,
            "no validation rule passed: all were skipped or failed",
        )
    }
}

/// Returns the rules that block.
pub fn failing(results: &[ValidationResult]) -> Vec<String> {
    let blocked = results.iter().filter(|result| result.result == GateResult::Blocked);
    blocked.map(|result| result.rule.clone()).collect()
}

/// Evaluates the conditions in order: the first that does not continue decides, else the last. An error needs a
/// person.
pub fn decide(
    ways: &[StopCondition],
    mut ask: impl FnMut(&StopWhen) -> Result<StopVote, String>,
) -> (String, StopVote) {
    let nobody = StopVote::new(StopDecision::Continue, "there is no stop condition");
    let mut last = ("default".to_owned(), nobody);
    for way in ways {
        let StopCondition { name, when } = way;
        let said = ask(when).unwrap_or_else(|error| {
            StopVote::new(StopDecision::Escalate, format!("{EVALUATION_FAILED}`{name}`: {error}"))
        });
        last = (name.clone(), said);
        if last.1.decision != StopDecision::Continue {
            break;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(decision: StopDecision) -> Result<StopVote, String> {
        Ok(StopVote::new(decision, format!("{decision:?}")))
    }

    #[test]
    fn the_first_stop_condition_other_than_continue_decides() {
        use StopDecision::{Complete, Continue, Escalate};
        let check = |answers: &[Result<StopVote, String>], decision, asked: usize| {
            let ways: Vec<StopCondition> = (0..answers.len())
                .map(|n| StopCondition::from(&StopWhen::Hook(n.to_string())))
                .collect();
            let mut count = 0;
            let (by, decided) = decide(&ways, |_| {
                count += 1;
                answers[count - 1].clone()
            });
            assert_eq!((decided.decision, count), (decision, asked), "{answers:?}");
            assert!(asked == 0 || by == (asked - 1).to_string());
            decided.reason
        };
        check(&[], Continue, 0);
        check(&[said(Continue), said(Complete), said(Escalate)], Complete, 2);
        check(&[said(Continue), said(Escalate), said(Complete)], Escalate, 2);
        check(&[said(Continue), said(Continue)], Continue, 2);
        let reason = check(&[Err("no such file".to_owned()), said(Complete)], Escalate, 1);
        assert!(reason.contains("no such file"), "{reason}");
    }

    #[test]
    fn the_last_paragraph_of_a_message_is_the_agents_question() {
        let message = "I looked.\n\nWhich encoding\nis it?\n\n<promise>ESCALATE</promise>\n";
        assert_eq!(last_words(message).as_deref(), Some("Which encoding is it?"));
        assert_eq!(last_words("<promise>BLOCKED</promise>"), None);
        assert_eq!(question_in("the agent asked for a human: Which?"), "Which?");
        assert_eq!(
            question_in("5 iterations in a row got nowhere"),
            "5 iterations in a row got nowhere"
        );
    }

    #[test]
    fn promises_are_decided_by_precedence_and_by_the_presence_of_gates() {
        use Promise::{Blocked, Complete, Escalate};
        let check =
            |promises: &[Promise], with: Option<StopDecision>, without: Option<StopDecision>| {
                let decision = |judge| by_promise(promises, judge).map(|said| said.decision);
                assert_eq!(decision(ClaimJudge::Gates), with, "{promises:?}");
                assert_eq!(decision(ClaimJudge::Nobody), without, "{promises:?}");
            };
        let (complete, escalate) = (Some(StopDecision::Complete), Some(StopDecision::Escalate));
        check(&[], None, None);
        check(&[Complete], complete, complete);
        check(&[Complete, Complete], complete, complete);
        check(&[Blocked], escalate, escalate);
        check(&[Blocked, Complete], complete, escalate);
        check(&[Complete, Escalate], complete, escalate);
        check(&[Escalate, Blocked], escalate, escalate);
        check(&[Blocked, Escalate, Complete], complete, escalate);
        let reason = |promises: &[Promise], judge| by_promise(promises, judge).unwrap().reason;
        assert_eq!(reason(&[Blocked, Escalate], ClaimJudge::Gates), ASKED);
        assert_eq!(
            reason(&[Blocked, Complete], ClaimJudge::Nobody),
            "the agent reported COMPLETE and BLOCKED in one turn, and there is no gate to judge the work"
        );
    }

    #[test]
    fn different_promises_of_a_turn_contradict_each_other() {
        use Promise::{Blocked, Complete, Escalate};
        let check = |promises: &[Promise], words: Option<&str>| {
            let expected = words.map(|words| format!("the agent reported {words} in one turn"));
            assert_eq!(contradiction(promises), expected, "{promises:?}");
        };
        check(&[], None);
        check(&[Blocked, Blocked], None);
        check(&[Blocked, Complete], Some("COMPLETE and BLOCKED"));
        check(&[Blocked, Escalate], Some("ESCALATE and BLOCKED"));
        check(&[Blocked, Escalate, Complete], Some("COMPLETE, ESCALATE and BLOCKED"));
    }

    #[test]
    fn validation_rules_claim_completion_only_if_one_of_them_passed() {
        use GateResult::{Blocked, Failed, Passed, Skipped};
        let check = |results: &[GateResult], decision: StopDecision| {
            let rule =
                |result: &GateResult| ValidationResult { rule: "a".to_owned(), result: *result };
            let rules: Vec<ValidationResult> = results.iter().map(rule).collect();
            assert_eq!(by_validation(&rules).decision, decision, "{results:?}");
        };
        check(&[], StopDecision::Continue);
        check(&[Passed], StopDecision::Complete);
        check(&[Passed, Skipped, Failed], StopDecision::Complete);
        check(&[Passed, Blocked], StopDecision::Continue);
        check(&[Skipped], StopDecision::Continue);
        check(&[Skipped, Failed], StopDecision::Continue);
    }
}
