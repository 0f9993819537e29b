//! Stop conditions: their votes, and the decision whether an iteration is the last one.

use crate::gates::GateResult;
use crate::payload::plan::StopWhen;
use crate::payload::verdict::Decision;
use crate::promise::Promise;

/// The beginning of the reason if a hook could not be evaluated.
pub const EVALUATION_FAILED: &str = "Hook evaluation failed: ";

/// A stop condition with its name. A registered one is named by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    pub name: String,
    pub when: StopWhen,
}

impl From<&StopWhen> for Way {
    fn from(when: &StopWhen) -> Way {
        Way { name: when.to_string(), when: when.clone() }
    }
}

/// The vote of a stop condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub decision: Decision,
    pub reason: String,
    /// An instruction for the agent, if the session continues.
    pub next_prompt: Option<String>,
    /// Output of a hook for the agent, as data.
    pub output: Option<String>,
}

impl Said {
    pub fn new(decision: Decision, reason: impl Into<String>) -> Said {
        Said { decision, reason: reason.into(), next_prompt: None, output: None }
    }
}

/// A validation rule and its result on the files as they are now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validated {
    pub rule: String,
    pub result: GateResult,
}

impl Validated {
    pub fn has_passed(&self) -> bool {
        self.result == GateResult::Passed
    }
}

/// The reasons of a session that stops for a promise that needs a person. The agent's words follow.
const ASKED: &str = "the agent asked for a human";
const BLOCKED: &str = "the agent says that it is blocked";

/// Returns the agent's words in such a reason.
pub fn question_in(reason: &str) -> &str {
    let words = [ASKED, BLOCKED].iter().find_map(|start| reason.strip_prefix(start));
    words.and_then(|words| words.strip_prefix(": ")).unwrap_or(reason)
}

/// The last paragraph of a message, without its promises: the question of an agent that asks for a person.
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

/// Decides by the promises of a turn; none if there is no promise. Of several, the first in the order of
/// [`Promise::BY_WEIGHT`] counts. COMPLETE beside another promise is no claim if nobody judges it.
pub fn by_promise(promises: &[Promise], judge: ClaimJudge) -> Option<Said> {
    let heaviest = Promise::BY_WEIGHT.into_iter().find(|promise| promises.contains(promise))?;
    Some(match (heaviest, contradiction(promises), judge) {
        (Promise::Complete, Some(both), ClaimJudge::Nobody) => {
            let reason = format!("{both}, and there is no gate to judge the work");
            Said::new(Decision::Escalate, reason)
        }
        (Promise::Complete, ..) => {
            Said::new(Decision::Complete, "the agent promised <promise>COMPLETE</promise>")
        }
        (Promise::Escalate, ..) => Said::new(Decision::Escalate, ASKED),
        (Promise::Blocked, ..) => Said::new(Decision::Escalate, BLOCKED),
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
pub fn by_validation(results: &[Validated]) -> Said {
    if results.is_empty() {
        return Said::new(Decision::Continue, "there are no validation rules");
    }
    let names = failing(results);
    if !names.is_empty() {
        let reason = format!("validation rules fail: {}", names.join(", "));
        return Said::new(Decision::Continue, reason);
    }
    let passed = results.iter().filter(|result| result.has_passed()).count();
    if passed == results.len() {
        Said::new(Decision::Complete, "all validation rules pass")
    } else if passed > 0 {
        let reason = format!("{passed} of {} validation rules pass, none blocks", results.len());
        Said::new(Decision::Complete, reason)
    } else {
        Said::new(Decision::Continue, "no validation rule passed: all were skipped or failed")
    }
}

/// The rules that block.
pub fn failing(results: &[Validated]) -> Vec<String> {
    let blocked = results.iter().filter(|result| result.result == GateResult::Blocked);
    blocked.map(|result| result.rule.clone()).collect()
}

/// Evaluates the conditions in order: the first that does not continue decides, else the last. An error needs a
/// person.
pub fn decide(
    ways: &[Way],
    mut ask: impl FnMut(&StopWhen) -> Result<Said, String>,
) -> (String, Said) {
    let nobody = Said::new(Decision::Continue, "no way to stop is registered");
    let mut last = ("default".to_owned(), nobody);
    for way in ways {
        let Way { name, when } = way;
        let said = ask(when).unwrap_or_else(|error| {
            Said::new(Decision::Escalate, format!("{EVALUATION_FAILED}`{name}`: {error}"))
        });
        last = (name.clone(), said);
        if last.1.decision != Decision::Continue {
            break;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(decision: Decision) -> Result<Said, String> {
        Ok(Said::new(decision, format!("{decision:?}")))
    }

    #[test]
    fn the_first_that_does_not_continue_decides_else_the_last() {
        use Decision::{Complete, Continue, Escalate};
        let check = |answers: &[Result<Said, String>], decision, asked: usize| {
            let ways: Vec<Way> =
                (0..answers.len()).map(|n| Way::from(&StopWhen::Hook(n.to_string()))).collect();
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
    fn the_last_paragraph_is_the_question_of_an_agent() {
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
    fn promises_count_in_the_order_of_their_weight() {
        use Promise::{Blocked, Complete, Escalate};
        let check = |promises: &[Promise], with: Option<Decision>, without: Option<Decision>| {
            let decision = |judge| by_promise(promises, judge).map(|said| said.decision);
            assert_eq!(decision(ClaimJudge::Gates), with, "{promises:?}");
            assert_eq!(decision(ClaimJudge::Nobody), without, "{promises:?}");
        };
        let (complete, escalate) = (Some(Decision::Complete), Some(Decision::Escalate));
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
        let check = |results: &[GateResult], decision: Decision| {
            let rule = |result: &GateResult| Validated { rule: "a".to_owned(), result: *result };
            let rules: Vec<Validated> = results.iter().map(rule).collect();
            assert_eq!(by_validation(&rules).decision, decision, "{results:?}");
        };
        check(&[], Decision::Continue);
        check(&[Passed], Decision::Complete);
        check(&[Passed, Skipped, Failed], Decision::Complete);
        check(&[Passed, Blocked], Decision::Continue);
        check(&[Skipped], Decision::Continue);
        check(&[Skipped, Failed], Decision::Continue);
    }
}
