//! Remarks about tasks. Only the holder of a claimed task may add one.

use super::{Decided, Facts, bounded, check_fence, on_task};
use crate::claim::Fence;
use crate::event::{Empty, EventBody};
use crate::excerpt::{ExcerptRules, head_and_tail};
use crate::refusal::Refusal;
use crate::remark::{
    CHECKPOINT_MAX_BYTES, METADATA_MAX_BYTES, NOTE_MAX_BYTES, Noted, QUESTION_MAX_BYTES, Remark,
    STOP_HOOKS_MAX,
};
use crate::task::Task;

pub(super) fn decide(
    task: &Task,
    remark: &Remark,
    fence: Fence,
    facts: &Facts,
) -> Result<Vec<Decided>, Refusal> {
    check_fence(task, fence, "note")?;
    let body = match remark {
        Remark::RegisterStop(hook) => {
            let metadata = serde_json::to_string(&hook.metadata).unwrap_or_default();
            bounded("metadata", Some(&metadata), METADATA_MAX_BYTES)?;
            if facts.stop_hooks >= STOP_HOOKS_MAX {
                let len = facts.stop_hooks + 1;
                return Err(Refusal::TooMany { what: "stop hooks", len, max: STOP_HOOKS_MAX });
            }
            EventBody::StopHookRegistered(hook.clone())
        }
        Remark::ClearStops if facts.stop_hooks == 0 => return Ok(Vec::new()),
        Remark::ClearStops => EventBody::StopHooksCleared(Empty {}),
        Remark::Note(text) => {
            bounded("note", Some(text), NOTE_MAX_BYTES)?;
            EventBody::TaskNoted(Noted { text: text.clone(), question: None })
        }
        Remark::Answer { question, text } => {
            bounded("note", Some(text), NOTE_MAX_BYTES)?;
            let rules = ExcerptRules { max: QUESTION_MAX_BYTES, head_parts: 2, earlier: &[] };
            let question = Some(head_and_tail(question, rules));
            EventBody::TaskNoted(Noted { text: text.clone(), question })
        }
        Remark::Checkpoint(made) => {
            let json = serde_json::to_string(made).unwrap_or_default();
            bounded("checkpoint", Some(&json), CHECKPOINT_MAX_BYTES)?;
            EventBody::TaskCheckpointed(made.clone())
        }
    };
    Ok(vec![on_task(&task.id, body)])
}
