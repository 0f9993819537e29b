//! `hookloop hooks explain`

use hookloop_config::policy::PolicySet;
use hookloop_core::hook::{CommandText, Hook, HookHandler};
use hookloop_core::limits::Limits;
use hookloop_core::options::Length;
use hookloop_core::point::{NoSuchPoint, Point, PointKind};
use hookloop_hooks::explain::{ExplainedHook, HookList, RunForecast, explain};
use hookloop_hooks::sandbox::in_words;
use hookloop_hooks::trust::HookStanding;
use hookloop_process::SandboxSupport;
use serde_json::{Value, json};

use super::find_task;
use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::json_output::{handler_name, source_name};
use crate::output::{BOLD, CommandOutput, DIM};
use crate::sanitize::plain;

/// Show the hooks of a hook point in order, with reasons
#[derive(clap::Args)]
pub(crate) struct HookExplainArgs {
    /// Hook point, such as `stop` or `task_completed`
    point: String,

    /// Task whose type and fields select the hooks
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
}

impl HookExplainArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let point: Point =
            self.point.parse().map_err(|error: NoSuchPoint| CliError::usage(error))?;
        let project = context.project_to_read()?;
        let task = self.task.as_deref().map(|id| find_task(&project, id)).transpose()?;
        let explained = explain(&project.hooks()?, &point, task.as_ref());
        let with_standing = |one: ExplainedHook| {
            let standing = project.runner().map(|runner| runner.standing(&one.hook));
            (one, standing.unwrap_or(HookStanding::Own))
        };
        let explained: Vec<(ExplainedHook, HookStanding)> =
            explained.into_iter().map(with_standing).collect();
        let out = &mut context.out;
        if out.json {
            return out.json(&explained.iter().map(to_json).collect::<Vec<_>>());
        }
        let kind = match point.kind() {
            PointKind::Gate => "gate: each hook may block",
            PointKind::Reaction => "reaction: a failure blocks nothing",
        };
        out.line(format_args!("{BOLD}{point}{BOLD:#}  {DIM}{kind}{DIM:#}"))?;
        if explained.is_empty() {
            return out.line("  no hooks");
        }
        let mut number = 0;
        for (one, standing) in &explained {
            number += usize::from(one.runs == RunForecast::Yes && standing.may_run());
            print(out, one, *standing, (&point, number, &project.rules().policy))?;
        }
        Ok(())
    }
}

fn print(
    out: &mut CommandOutput,
    one: &ExplainedHook,
    standing: HookStanding,
    (point, number, policy): (&Point, usize, &PolicySet),
) -> CliResult {
    let ExplainedHook { hook, list, runs } = one;
    let mark = match runs {
        RunForecast::Yes if standing.may_run() => format!("{number}."),
        _ => "–".to_owned(),
    };
    out.line(format_args!("{mark:>3} {BOLD}{}{BOLD:#}  {}", hook.name, plain(&what(hook))))?;
    let mut why = |text: String| out.line(format_args!("    {DIM}{}{DIM:#}", plain(&text)));
    why(match list {
        HookList::Operator => format!("required by the policy at {}", place(policy, hook)),
        HookList::User => format!("your own, priority {}", hook.priority),
        HookList::Type(name) => format!("in the list of type `{name}`, priority {}", hook.priority),
        HookList::Project => match source_name(hook.source) {
            "built-in" => format!("built in, priority {}", hook.priority),
            source => format!("in the {source}'s list, priority {}", hook.priority),
        },
        HookList::Default => {
            "default of this point: the configuration lists no hooks for it".to_owned()
        }
    })?;
    match standing {
        HookStanding::Own => {}
        HookStanding::Trusted => why("trusted".to_owned())?,
        HookStanding::Untrusted => {
            why("does not run: not trusted (hookloop hooks trust)".to_owned())?
        }
        HookStanding::Modified => {
            why("does not run: changed since it was trusted (hookloop hooks trust)".to_owned())?;
        }
    }
    match (runs, &hook.options.when) {
        (RunForecast::Off, _) => why("off: hookloop hooks enable".to_owned() + " " + &hook.name)?,
        (RunForecast::Yes, Some(when)) => why(format!("when {when}: true"))?,
        (RunForecast::NotNow, Some(when)) => why(format!("when {when}: false"))?,
        (RunForecast::Depends, Some(when)) => {
            why(format!("when {when}: depends on the task (--task)"))?
        }
        (RunForecast::Unclear(error), Some(when)) => why(format!("when {when}: {error}"))?,
        _ => {}
    }
    if is_process(&hook.handler) {
        let timeout = Length { ms: hook.options.timeout_at(point.kind()) };
        why(format!("timeout {timeout}"))?;
    }
    if let Some(sandbox) = &hook.options.sandbox {
        why(format!("sandbox: {}; {}", in_words(sandbox), SandboxSupport::of_this_system()))?;
    }
    if hook.options.limits != Limits::default() {
        why(format!("at most {}", hook.options.limits))?;
    }
    if !hook.options.needs.is_empty() {
        why(format!("runs only after these passed: {}", hook.options.needs.join(", ")))?;
    }
    Ok(())
}

/// Where a policy has a gate.
fn place(policy: &PolicySet, hook: &Hook) -> String {
    let gate = policy.gates().find(|gate| gate.value.name == hook.name);
    gate.map_or_else(String::new, |gate| gate.at.to_string())
}

fn is_process(handler: &HookHandler) -> bool {
    matches!(handler, HookHandler::Command(_) | HookHandler::Http { .. })
}

/// Describes a hook's handler in a line.
pub(super) fn what(hook: &Hook) -> String {
    match &hook.handler {
        HookHandler::Command(CommandText::Shell(line)) => line.clone(),
        HookHandler::Command(CommandText::Exec(args)) => json!(args).to_string(),
        HookHandler::Http { url } => url.clone(),
        HookHandler::Rule(rule) => rule.to_string(),
        HookHandler::Gatekeepers { agents, .. } => format!("review by {}", agents.join(", ")),
        HookHandler::Declared(actions) => {
            actions.iter().map(|action| action.kind).collect::<Vec<_>>().join(", ")
        }
        HookHandler::Builtin(_) => hook.metadata.description.clone().unwrap_or_default(),
    }
}

fn to_json((one, standing): &(ExplainedHook, HookStanding)) -> Value {
    let ExplainedHook { hook, list, runs } = one;
    let (list, task_type) = match list {
        HookList::Operator => ("operator", None),
        HookList::User => ("user", None),
        HookList::Type(name) => ("type", Some(name)),
        HookList::Project => ("project", None),
        HookList::Default => ("default", None),
    };
    let (state, error) = match runs {
        RunForecast::Yes if !standing.may_run() => (standing.name(), None),
        RunForecast::Yes => ("yes", None),
        RunForecast::Off => ("off", None),
        RunForecast::NotNow => ("condition does not hold", None),
        RunForecast::Depends => ("depends on the task", None),
        RunForecast::Unclear(error) => ("condition fails", Some(error.to_string())),
    };
    json!({
        "name": hook.name,
        "handler": handler_name(&hook.handler),
        "what": what(hook),
        "source": source_name(hook.source),
        "list": list,
        "task_type": task_type,
        "priority": hook.priority,
        "when": hook.options.when,
        "runs": state,
        "trust": standing.name(),
        "sandbox": hook.options.sandbox.as_ref().map(in_words),
        "error": error,
    })
}
