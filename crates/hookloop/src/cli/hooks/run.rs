//! `hookloop hooks run`

use hookloop_core::hook::Hook;
use hookloop_core::hook_protocol::{HookStatus, HookVerdict, looks_like_answer};
use hookloop_core::point::{NoSuchPoint, Point};
use hookloop_engine::project::Project;
use hookloop_hooks::hook_run::HookRun;
use serde_json::json;

use super::find_task;
use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::output::{BOLD, DIM};
use crate::sanitize::{plain, plain_output};

/// The exit code if the hook ran and did not pass.
const NOT_PASSED: u8 = 1;

/// Run one hook as if its event had happened
///
/// The command prints the hook's result. It records nothing and takes no action. Exit code: 0 if the hook passed or was
/// skipped; 1 if it blocks, fails or escalates to a person; 3 if it is not trusted and did not run.
#[derive(clap::Args)]
pub(crate) struct HookRunArgs {
    /// Name of the hook
    #[arg(value_name = "HOOK")]
    name: String,

    /// Hook point, if the hook has several [default: its first]
    #[arg(long, value_name = "POINT")]
    event: Option<String>,

    /// Task of the event
    #[arg(long, value_name = "TASK")]
    task: Option<String>,

    /// Show the hook, and run nothing
    #[arg(long)]
    dry_run: bool,
}

impl HookRunArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        let registry = project.hooks()?;
        let task = self.task.as_deref().map(|id| find_task(&project, id)).transpose()?;
        let task_type = task.as_ref().and_then(|task| task.spec.kind.as_deref());
        let hook = registry.get_for(task_type, &self.name).or_else(|| registry.get(&self.name));
        let Some(hook) = hook else {
            let message = format!("there is no hook `{}`", self.name);
            return Err(CliError::refused(message).hint("hookloop hooks list"));
        };
        let point = self.point(hook)?;
        if self.dry_run {
            return dry_run(context, &project, hook, &point);
        }
        let run = project.try_hook(hook, &point, None, task.as_ref());
        print(context, &point, &run)?;
        match run.trust_command() {
            Some(command) => {
                let reason = run.outcome.reason.as_deref().unwrap_or_default();
                let message = format!("hook `{}` did not run: {reason}", hook.name);
                Err(CliError::untrusted(message).hint(command))
            }
            None => {
                if !has_passed(&run) {
                    context.exit = NOT_PASSED;
                }
                Ok(())
            }
        }
    }

    fn point(&self, hook: &Hook) -> CliResult<Point> {
        let Some(name) = &self.event else {
            let first = hook.points.first().cloned();
            return first.ok_or_else(|| CliError::refused("the hook has no hook point"));
        };
        let point: Point = name.parse().map_err(|error: NoSuchPoint| CliError::usage(error))?;
        if hook.points.contains(&point) {
            Ok(point)
        } else {
            let message = format!("`{}` does not run at `{point}`", hook.name);
            Err(CliError::usage(message).hint(format!("hookloop hooks show {}", hook.name)))
        }
    }
}

/// Whether the hook passed or had nothing to do, and asks for no human.
fn has_passed(run: &HookRun) -> bool {
    let is_good = matches!(run.outcome.status, HookStatus::Passed | HookStatus::Skipped);
    is_good && run.outcome.verdict == HookVerdict::Pass
}

fn dry_run(
    context: &mut CommandContext,
    project: &Project,
    hook: &Hook,
    point: &Point,
) -> CliResult {
    let standing = project.runner().map(|runner| runner.standing(hook).name());
    let what = super::explain::what(hook);
    let out = &mut context.out;
    if out.json {
        return out.json(&json!({ "name": hook.name, "point": point.name(), "what": what,
            "trust": standing, "status": "dry_run" }));
    }
    out.line(format_args!("{BOLD}{}{BOLD:#} at {point}  {}", hook.name, plain(&what)))?;
    out.line(format_args!("  {DIM}{}{DIM:#}", standing.unwrap_or("own")))
}

fn print(context: &mut CommandContext, point: &Point, run: &HookRun) -> CliResult {
    let out = &mut context.out;
    let status = run.outcome.status.name();
    let (verdict, feedback) = match &run.outcome.verdict {
        HookVerdict::Pass => ("pass", None),
        HookVerdict::Block { feedback } => ("block", Some(feedback)),
        HookVerdict::Escalate { reason } => ("escalate", Some(reason)),
    };
    let ran = run.ran.as_ref();
    if out.json {
        return out.json(&json!({
            "name": run.hook,
            "point": point.name(),
            "status": status,
            "exit_code": ran.and_then(|ran| ran.exit_code),
            "duration_ms": ran.map(|ran| ran.duration_ms),
            "attempts": ran.map(|ran| ran.attempts),
            "verdict": verdict,
            "feedback": feedback,
            "reason": run.outcome.reason,
            "message": run.outcome.message,
            "actions": run.outcome.actions,
            "stdout": run.stdout,
            "stderr": run.stderr,
            "artifact": ran.and_then(|ran| ran.artifact.clone()),
        }));
    }
    let took = ran.map_or_else(String::new, |ran| format!("  {} ms", ran.duration_ms));
    out.line(format_args!("{BOLD}{}{BOLD:#} {status}{DIM}{took}{DIM:#}", run.hook))?;
    if let Some(reason) = &run.outcome.reason {
        out.line(format_args!("  {}", plain(reason)))?;
    }
    for line in run.outcome.message.iter().flat_map(|message| message.lines()) {
        out.line(format_args!("  {DIM}note:{DIM:#} {}", plain(line)))?;
    }
    let answer = Some(&run.stdout).filter(|stdout| looks_like_answer(stdout));
    for line in answer.into_iter().chain([&run.printed]).flat_map(|text| text.lines()) {
        out.line(format_args!("  {DIM}|{DIM:#} {}", plain_output(line)))?;
    }
    Ok(())
}
