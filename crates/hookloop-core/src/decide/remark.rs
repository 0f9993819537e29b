//! Remarks about tasks. Only the holder of a claimed task may add one.

use super::{Decided, KnownFacts, bounded, check_fence, on_task};
use crate::claim::Fence;
use crate::event::{EventBody, NoData};
use crate::excerpt::{ExcerptRules, head_and_tail};
use crate::refusal::Refusal;
use crate::remark::{
    ALLOWED_FINDINGS_MAX, CHECKPOINT_MAX_BYTES, METADATA_MAX_BYTES, NOTE_MAX_BYTES,
    QUESTION_MAX_BYTES, STOP_HOOKS_MAX, TaskNoted, TaskRemark,
};
use crate::task::Task;

pub(super) fn decide(
    task: &Task,
    remark: &TaskRemark,
    fence: Fence,
    facts: &KnownFacts,
) -> Result<Vec<Decided>, Refusal> {
    check_fence(task, fence, "note")?;
    let body = match remark {
        TaskRemark::RegisterStop(hook) => {
            let metadata = serde_json::to_string(&hook.metadata).unwrap_or_default();
            bounded("metadata", Some(&metadata), METADATA_MAX_BYTES)?;
            if facts.stop_hooks >= STOP_HOOKS_MAX {
                let len = facts.stop_hooks + 1;
                return Err(Refusal::TooMany { what: "stop hooks", len, max: STOP_HOOKS_MAX });
            }
            EventBody::StopHookRegistered(hook.clone())
        }
        TaskRemark::ClearStops if facts.stop_hooks == 0 => return Ok(Vec::new()),
        TaskRemark::ClearStops => EventBody::StopHooksCleared(NoData {}),
        TaskRemark::Note(text) => {
            bounded("note", Some(text), NOTE_MAX_BYTES)?;
            EventBody::TaskNoted(TaskNoted { text: text.clone(), question: None })
        }
        TaskRemark::Answer { question, text } => {
            bounded("note", Some(text), NOTE_MAX_BYTES)?;
            let rules = ExcerptRules { max: QUESTION_MAX_BYTES, head_parts: 2, earlier: &[] };
            let question = Some(head_and_tail(question, rules));
            EventBody::TaskNoted(TaskNoted { text: text.clone(), question })
        }
        TaskRemark::Checkpoint(made) => {
            let json = serde_json::to_string(made).unwrap_or_default();
            bounded("checkpoint", Some(&json), CHECKPOINT_MAX_BYTES)?;
            EventBody::TaskCheckpointed(made.clone())
        }
        TaskRemark::AllowTests(allowed) => {
            let len = allowed.digests.len();
            if len > ALLOWED_FINDINGS_MAX {
                let what = "allowed changes of tests";
                return Err(Refusal::TooMany { what, len, max: ALLOWED_FINDINGS_MAX });
            }
            EventBody::TestChangesAllowed(allowed.clone())
        }
    };
    Ok(vec![on_task(&task.id, body)])
}
