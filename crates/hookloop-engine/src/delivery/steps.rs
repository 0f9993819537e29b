//! The built-in hooks of delivery.
//!
//! Each step checks whether its work is done, does it, and checks again. So a step can be repeated
//! after a crash without duplicate effects.

use std::time::{Duration, Instant};

use hookloop_core::builtin::Builtin;
use hookloop_core::claim::Fence;
use hookloop_core::command::Command;
use hookloop_core::decide::check_fence;
use hookloop_core::event::HookRan;
use hookloop_core::excerpt::first_names;
use hookloop_core::hook::{CommandText, Hook, HookHandler, HookSource};
use hookloop_core::hook_protocol::{HookOutcome, HookStatus, HookVerdict};
use hookloop_core::id::Subject;
use hookloop_core::options::{AllowedAnswers, HookOptions, OnFailure};
use hookloop_core::session::Receipt;
use hookloop_core::session::facts::ExpectationVerdict;
use hookloop_core::task::Task;
use hookloop_git::excerpt::plain_line;
use hookloop_git::forge::{MergeRequest, MergeRequestDraft, RequestState};
use hookloop_git::repo::{CommitId, ConflictedFile, RebaseResult, Worktree};
use hookloop_git::step_error::StepError;
use hookloop_hooks::hook_context::HookContext;
use hookloop_hooks::hook_run::HookRun;
use hookloop_hooks::runner::HookRunner;
use hookloop_hooks::{hook_sequence, test_detection};
use hookloop_store::crash;
use serde_json::json;

use super::request_body::request_body;
use super::step_outcome::{DeliveryHooks, StepOutcome};
use super::{expectation_review, review, train};
use crate::delivery_context::{
    DeliveryContext, DeliverySteps, DeliveryTools, ExpectationQuestion, RequestSupport, title,
};
use crate::error::EngineError;

/// Maximum attempts of a step that reports a retryable error.
const TRIES_MAX: u32 = 4;
/// Files that the one-line reason of a conflict names.
const CONFLICTS_NAMED: usize = 4;
const TRY_PAUSE: Duration = Duration::from_secs(1);
/// Maximum lag of the local copy behind the log.
const LAG_MAX: Duration = Duration::from_secs(5);

impl DeliverySteps for DeliveryHooks {
    fn review_expectations(
        &self,
        question: &ExpectationQuestion<'_>,
    ) -> Result<ExpectationVerdict, String> {
        expectation_review::ask(question)
    }

    fn run(
        &self,
        delivery_context: Option<DeliveryContext<'_>>,
        runner: &HookRunner,
        hook: &Hook,
        hook_context: &HookContext<'_>,
    ) -> HookRun {
        let began = Instant::now();
        let task = hook_context.task;
        let done = match (&hook.handler, delivery_context, task) {
            (HookHandler::Builtin(Builtin::RunTests), ..) => {
                return run_tests(runner, hook, hook_context);
            }
            (_, None, _) | (_, _, None) => Err(StepError::NeedsHuman {
                why: "it is for tasks that are delivered, and there is none here".to_owned(),
            }),
            (
                HookHandler::Gatekeepers { agents, quorum, .. },
                Some(delivery_context),
                Some(task),
            ) => review::ask_all(
                runner,
                delivery_context,
                task,
                agents,
                *quorum,
                hook_context.cancel,
            ),
            (HookHandler::Builtin(builtin), Some(delivery_context), Some(task)) => {
                again(hook_context, || match (builtin, delivery_context.worktree) {
                    (Builtin::RebaseOnMain, Some(worktree)) => {
                        rebase_on_main(delivery_context.delivery_tools, worktree)
                    }
                    (Builtin::CreatePr, Some(worktree)) => {
                        let session = hook_context.session.map(|session| session.call.session);
                        let receipts = session.map_or(&[][..], |session| &session.receipts);
                        create_pr(delivery_context, worktree, task, receipts)
                    }
                    (Builtin::Merge, _) => {
                        train::run_train(runner, delivery_context, &task.id, hook_context.cancel)
                    }
                    _ => Err(StepError::NeedsHuman {
                        why: "there is nothing to do it on".to_owned(),
                    }),
                })
            }
            _ => Err(StepError::NeedsHuman { why: "it is no hook of delivery".to_owned() }),
        };
        told(hook, hook_context, done, began.elapsed())
    }
}

/// Repeats a step with pauses while it reports a retryable error, up to `TRIES_MAX` times.
fn again(
    hook_context: &HookContext<'_>,
    mut step: impl FnMut() -> Result<StepOutcome, StepError>,
) -> Result<StepOutcome, StepError> {
    let mut number = 1;
    loop {
        match step() {
            Err(StepError::Retry { .. }) if number < TRIES_MAX => {
                hook_sequence::nap(TRY_PAUSE * (1 << (number - 1)), hook_context);
                number += 1;
            }
            done => return done,
        }
    }
}

/// Rebases the branch onto its base. On a conflict, lays out the files for the agent.
fn rebase_on_main(
    delivery_tools: &DeliveryTools<'_>,
    worktree: &Worktree,
) -> Result<StepOutcome, StepError> {
    let base = delivery_tools.repo.newest_base()?;
    let short = &base.as_str()[..12];
    let rebased = delivery_tools.repo.rebase(worktree, &base)?;
    crash::point("rebased");
    let said = match rebased {
        RebaseResult::UpToDate => {
            format!("the branch has {} ({short}) already", delivery_tools.base())
        }
        RebaseResult::Done { .. } => {
            format!("the branch is on top of {} ({short}) now", delivery_tools.base())
        }
        RebaseResult::Conflict { .. } => {
            let conflict = delivery_tools.repo.lay_out_conflict(worktree, &base)?;
            crash::point("laid out");
            let prompt = conflict_prompt(delivery_tools.base(), &conflict.files);
            return Err(StepError::Block {
                why: conflict_reason(delivery_tools.base(), &conflict.files),
                prompt,
                details: conflict_details(delivery_tools.base(), &conflict.files),
            });
        }
    };
    Ok(StepOutcome { said, values: json!({ "base_commit": base }), ..StepOutcome::default() })
}

/// Returns the instruction to resolve a conflict.
pub(crate) fn conflict_prompt(base: &str, files: &[ConflictedFile]) -> String {
    let names: Vec<String> = files.iter().map(|file| plain_line(&file.path)).collect();
    format!(
        "Resolve the conflict between your branch and `{base}`. Both changed the same places. The files in this \
         directory are now merged. Where the two sides conflict, both stand between conflict markers: your branch \
         follows `<<<<<<<`, and `{base}` follows `=======`.\n\
         - Edit these files so that the intent of both sides holds: {}\n\
         - Leave no conflict marker.\n\
         - Keep what `{base}` changed elsewhere.\n\
         - Do not commit and do not rebase. hookloop takes the files as you leave them.",
        names.join(", ")
    )
}

/// Returns a conflict in one line, for people.
fn conflict_reason(base: &str, files: &[ConflictedFile]) -> String {
    let names: Vec<String> = files.iter().map(|file| plain_line(&file.path)).collect();
    format!("conflict with `{base}` in {}", first_names(&names, CONFLICTS_NAMED))
}

/// Returns the excerpts of a conflict, with both sides named.
pub(crate) fn conflict_details(base: &str, files: &[ConflictedFile]) -> String {
    let mut text = String::new();
    for file in files.iter().filter(|file| !file.excerpt.is_empty()) {
        text.push_str(&format!("{}:\n", plain_line(&file.path)));
        for line in file.excerpt.lines() {
            let line = match (line.get(..8), line.starts_with("<<<<<<< ")) {
                (_, true) => "<<<<<<< your branch".to_owned(),
                (Some(">>>>>>> "), _) => format!(">>>>>>> {base}"),
                _ => line.to_owned(),
            };
            text.push_str(&format!("{line}\n"));
        }
    }
    text
}

/// Pushes the branch and opens or updates its request.
///
/// Without a forge the step reports that it made no request. An existing branch or request may be
/// outdated, so both are compared with the commit.
fn create_pr(
    delivery_context: DeliveryContext<'_>,
    worktree: &Worktree,
    task: &Task,
    receipts: &[Receipt],
) -> Result<StepOutcome, StepError> {
    let DeliveryTools { repo, forge, requests, rules } = delivery_context.delivery_tools;
    requests.check("no request can be made")?;
    let skipped = match requests {
        RequestSupport::Local => Some("no request was made: the remote is no forge"),
        RequestSupport::Declined => {
            Some("no request was made: the configuration says `forge: none`")
        }
        RequestSupport::Forge | RequestSupport::Unknown { .. } => None,
    };
    let head = repo.head(worktree)?;
    if repo.target().remote.is_none() {
        let said = format!("branch {} is at {}", worktree.branch, &head.as_str()[..12]);
        let values = json!({ "branch": worktree.branch, "head": head });
        return Ok(StepOutcome { said, values, skipped, refused: None });
    }
    announce(delivery_context, worktree, task, &head)?;
    crash::point("push");
    check_held(delivery_context, task)?;
    repo.push(&worktree.branch, &head)?;
    crash::point("pushed");
    let draft = MergeRequestDraft {
        branch: worktree.branch.clone(),
        base: delivery_context.delivery_tools.base().to_owned(),
        head: head.to_string(),
        title: title(task),
        body: request_body(task, receipts),
        is_draft: rules.draft,
        labels: rules.labels.clone(),
        reviewers: rules.reviewers.clone(),
    };
    let found = forge.find(&draft.branch, &draft.base)?;
    check_held(delivery_context, task)?;
    let request = match found {
        Some(MergeRequest { number: Some(number), state: RequestState::Open, .. }) => {
            forge.update(number, &draft)?
        }
        Some(MergeRequest { state: RequestState::Closed, url, .. }) => {
            let url = url.unwrap_or_default();
            let why = format!(
                "its request was closed by somebody: {url}; reopen it, or delete the branch"
            );
            return Err(StepError::NeedsHuman { why });
        }
        _ => forge.open(&draft)?,
    };
    crash::point("requested");
    let request = match request.number {
        Some(number) => forge.get(number)?,
        None => request,
    };
    if request.head != draft.head {
        let why = format!("the request has {} and not {} yet", request.head, draft.head);
        return Err(StepError::Retry { why });
    }
    let url = request.url;
    let said = match &url {
        Some(url) => format!("asked for at {url}"),
        None => format!("pushed {}", worktree.branch),
    };
    let values =
        json!({ "pr_url": url, "number": request.number, "branch": worktree.branch, "head": head });
    Ok(StepOutcome { said, values, skipped, refused: None })
}

/// Returns an error unless this session still holds the task's claim, according to the log.
///
/// A forge knows nothing of claims. A session that was suspended may have lost its task to another
/// one, and must not open a second request for finished work.
fn check_held(delivery_context: DeliveryContext<'_>, task: &Task) -> Result<(), StepError> {
    let Some(claim) = &task.claim else { return Ok(()) };
    let again = |error: EngineError| StepError::Retry { why: error.to_string() };
    let subject = Subject::Task(task.id.clone());
    let last =
        delivery_context.project.log().history(&subject, 1).map_err(|error| again(error.into()))?;
    let last = last.last().map_or(0, |last| last.seq);
    let seen = delivery_context.project.store().wait_for_news(last.saturating_sub(1), LAG_MAX);
    seen.map_err(|error| again(error.into()))?;
    let row = delivery_context.project.read(|view| view.task(&task.id)).map_err(again)?;
    let Some(row) = row.filter(|row| row.version >= last) else {
        return Err(StepError::Retry {
            why: "whether the task is still held is not known".to_owned(),
        });
    };
    // A retry cannot restore a lost claim.
    let held = check_fence(&row.task, Fence::Epoch(claim.epoch), "deliver");
    held.map_err(|refusal| StepError::NeedsHuman { why: refusal.to_string() })
}

/// Records the commit that is about to be pushed, and recognises earlier pushes from the log.
///
/// An earlier claimant of the task may have crashed between its push and its submission.
fn announce(
    delivery_context: DeliveryContext<'_>,
    worktree: &Worktree,
    task: &Task,
    head: &CommitId,
) -> Result<(), StepError> {
    let again = |error: EngineError| StepError::Retry { why: error.to_string() };
    let known =
        delivery_context.project.read(|view| view.delivery(&task.id)).map_err(again)?.pushes;
    let pushes: Vec<CommitId> = known.iter().filter_map(|push| push.parse().ok()).collect();
    delivery_context.delivery_tools.repo.recognise(&worktree.branch, &pushes)?;
    if pushes.last() == Some(head) {
        return Ok(());
    }
    let (fence, project) = match &task.claim {
        Some(claim) => {
            (Fence::Epoch(claim.epoch), delivery_context.project.acting_as(&claim.agent))
        }
        None => (Fence::None, delivery_context.project.clone()),
    };
    let command = Command::PlanPush { id: task.id.clone(), fence, head: head.to_string() };
    project.carry_out(&command).map_err(again)?;
    Ok(())
}

/// Runs the project's tests, of all kinds that it has, and stops at the first failure.
fn run_tests(runner: &HookRunner, hook: &Hook, hook_context: &HookContext<'_>) -> HookRun {
    let unable =
        |why: String| HookRun::unable(hook, hook_context.point, HookStatus::NotStarted, why);
    if let Err(refusal) = runner.may_run(hook) {
        return HookRun::refused(hook, hook_context.point, refusal);
    }
    let commands = match test_detection::runnable(runner.files_of(hook), runner.ground().path) {
        Ok(commands) => commands,
        Err(error) => return unable(error.to_string()),
    };
    let mut last = None;
    for command in commands {
        let of_runner = Hook {
            handler: HookHandler::Command(CommandText::Exec(command.argv)),
            // The user trusted the tests of any kind. Their output decides nothing else.
            source: HookSource::Builtin,
            options: HookOptions { answers: AllowedAnswers::Stricter, ..hook.options.clone() },
            ..hook.clone()
        };
        let of_runner = std::slice::from_ref(&of_runner);
        let run =
            hook_sequence::run_all(runner, of_runner, hook_context, &mut |_| {}).into_iter().next();
        let has_passed = run.as_ref().is_some_and(|run| run.outcome.status == HookStatus::Passed);
        last = run;
        if !has_passed {
            break;
        }
    }
    last.unwrap_or_else(|| unable("no tests were run".to_owned()))
}

/// Converts the result of a step into a hook run.
fn told(
    hook: &Hook,
    hook_context: &HookContext<'_>,
    done: Result<StepOutcome, StepError>,
    took: Duration,
) -> HookRun {
    let is_open = hook.options.on_failure == OnFailure::Open;
    let (outcome, said) = match done {
        Ok(StepOutcome { said, refused: Some(why), .. }) => {
            (HookOutcome { reason: Some(why), ..HookOutcome::of(HookStatus::Failed) }, said)
        }
        Ok(StepOutcome { said, values, skipped: None, .. }) => {
            let is_merge = matches!(hook.handler, HookHandler::Builtin(Builtin::Merge));
            let message = Some(said.clone()).filter(|said| is_merge && !said.is_empty());
            (HookOutcome { values, message, ..HookOutcome::of(HookStatus::Passed) }, said)
        }
        Ok(StepOutcome { said, values, skipped: Some(why), .. }) => {
            let reason = Some(format!("{why}; {said}"));
            (HookOutcome { values, reason, ..HookOutcome::of(HookStatus::Skipped) }, said)
        }
        Err(StepError::Block { why, prompt, details }) => {
            let outcome = HookOutcome {
                verdict: HookVerdict::Block { feedback: why.clone() },
                reason: Some(why),
                next_prompt: Some(prompt),
                ..HookOutcome::of(HookStatus::Blocked)
            };
            (outcome, details)
        }
        Err(StepError::Retry { why }) => {
            let verdict = match is_open {
                true => HookVerdict::Pass,
                false => HookVerdict::Block { feedback: why.clone() },
            };
            (
                HookOutcome { verdict, reason: Some(why), ..HookOutcome::of(HookStatus::Failed) },
                String::new(),
            )
        }
        Err(StepError::NeedsHuman { why }) => {
            let verdict = HookVerdict::Escalate { reason: format!("{}: {why}", hook.name) };
            (
                HookOutcome { verdict, reason: Some(why), ..HookOutcome::of(HookStatus::Failed) },
                String::new(),
            )
        }
    };
    let ran = HookRan {
        hook_name: hook.name.clone(),
        point: hook_context.point.name().to_owned(),
        status: outcome.status.into(),
        exit_code: None,
        duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        ended_at: Some(hookloop_config::clock::now()),
        attempts: 1,
        reason: outcome.reason.clone(),
        message: outcome.message.clone(),
        stdout_bytes: said.len() as u64,
        stderr_bytes: 0,
        artifact: None,
        base_tests: false,
        output_tail: hookloop_hooks::hook_outcome::output_tail(&outcome, &said),
    };
    HookRun {
        hook: hook.name.clone(),
        outcome,
        ran: Some(ran),
        printed: said.clone(),
        stdout: said,
        stderr: String::new(),
        left_out: Vec::new(),
        gap: None,
        checks: None,
        in_room: false,
    }
}
