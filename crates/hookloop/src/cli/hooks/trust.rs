//! `hookloop hooks trust`

use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal, Write};
use std::time::Duration;

use hookloop_core::hook::AGENT_LIST;
use hookloop_engine::gate_agreement::HookConsent;
use hookloop_engine::log_location::AfterLoss;
use hookloop_hooks::trust::{HookDefinition, HookStanding, SeenHook};
use hookloop_process::SandboxSupport;
use serde_json::json;
use similar::{ChangeTag, TextDiff};

use super::visible::visible;
use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::output::{BOLD, CommandOutput, DIM};

/// Lines of a script, and characters of each, that are shown.
const SCRIPT_LINES_MAX: usize = 200;
const SCRIPT_LINE_MAX: usize = 400;
/// Lines around a change that are shown.
const DIFF_CONTEXT: usize = 3;
/// After that, a difference is a rougher one.
const DIFF_TIME: Duration = Duration::from_secs(1);

/// Review and trust the hooks and gates of this repository
///
/// You trust content: the hooks as they are written, and the scripts of the repository that they name. After a change,
/// trust them again. hookloop does not inspect programs that a hook starts by other means (`make`, `npm test`).
///
/// If gates are missing or weaker than the gates that you trusted before, the command shows the difference, and no
/// session starts until you trust it.
#[derive(clap::Args)]
pub(crate) struct HookTrustArgs {
    /// Trust without asking
    #[arg(long, conflicts_with = "show")]
    yes: bool,

    /// Show the hooks and gates to trust, and change nothing
    #[arg(long)]
    show: bool,
}

impl HookTrustArgs {
    /// Whether the command may change the trusted content.
    pub(in crate::cli) fn trusts(&self) -> bool {
        !self.show
    }

    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let place = context.place()?;
        place.prepare()?;
        let user = context.user()?;
        let settings = hookloop_config::project_file::settings(&place.config(), &user)?;
        let mut consent = HookConsent::look(&place.root, &place.state, &settings.rules)?;
        let digest = consent.offer.digest();
        let out = &mut context.out;
        let changed = consent.is_news();
        if !out.json {
            screen(out, &consent, &digest)?;
            if let Some(at) = user.policy.trusts(&digest) {
                out.line(format_args!("{DIM}trusted by the policy at {at}{DIM:#}"))?;
            }
            if let Some(at) = user.policy.no_repository_hooks() {
                out.line(format_args!(
                    "{DIM}hooks of repositories are ignored by the policy at {at}{DIM:#}"
                ))?;
            }
        }
        let agreed = match (self.show, self.yes) {
            (true, _) => false,
            (_, true) => true,
            _ if !changed => false,
            _ => ask(out, &digest, "Trust these hooks and gates?", |error| {
                error.advice(format!(
                    "read the hooks and gates, then run `hookloop hooks trust --yes`, or \
                     add `--trust {digest}` to one command"
                ))
            })?,
        };
        let words: Vec<String> = consent.changes.iter().map(ToString::to_string).collect();
        if agreed {
            let log = context.log_alone(AfterLoss::Refuse)?;
            consent.agree(&log)?;
        }
        let out = &mut context.out;
        if out.json {
            let hooks: Vec<_> = consent
                .offer
                .seen
                .iter()
                .map(|seen| {
                    let standing = consent.trust.standing(seen).name();
                    json!({ "name": seen.definition.name, "digest": seen.digest, "trust": standing,
                        "missing_script": seen.missing_script(),
                        "definition": seen.definition })
                })
                .collect();
            let policy = user.policy.trusts(&digest).map(ToString::to_string);
            return out.json(&json!({ "digest": digest, "trusted": agreed || !changed,
                "policy": policy, "hooks": hooks, "changes": words }));
        }
        match (agreed, changed) {
            (true, _) => out.line(format_args!("Trusted {digest}")),
            (false, true) if !self.show => Err(CliError::refused("nothing was trusted")),
            _ => Ok(()),
        }
    }
}

/// Asks whether the user trusts `what`; `with_hint` adds the next step if there is no terminal.
pub(crate) fn ask(
    out: &mut CommandOutput,
    what: &str,
    question: &str,
    with_hint: impl FnOnce(CliError) -> CliError,
) -> CliResult<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(with_hint(CliError::untrusted(format!("no terminal to ask about {what}"))));
    }
    out.flush()?;
    let mut error = anstream::stderr();
    write!(error, "{question} [y/N] ")?;
    error.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn screen(out: &mut CommandOutput, consent: &HookConsent, digest: &str) -> CliResult {
    let seen = &consent.offer.seen;
    if seen.is_empty() {
        out.line("This repository contains no hooks that run commands.")?;
    } else {
        let found: Vec<&HookDefinition> = seen.iter().map(|seen| &seen.definition).collect();
        let mut scripts = ScriptView { consent, shown: BTreeSet::new() };
        compare(out, consent.trust.agreed(), &found, &mut |one, before| {
            scripts.lines(one, before)
        })?;
    }
    for one in seen {
        let Some(script) = one.missing_script() else { continue };
        let name = visible(&one.definition.name);
        let script = visible(script);
        let from = one.definition.cwd.as_deref().map_or(String::new(), |cwd| format!(" in {cwd}"));
        out.line(format_args!(
            "{BOLD}warning:{BOLD:#} `{name}` runs `{script}`, which does not exist{}: create it, or \
             change the command in hookloop.yaml",
            visible(&from)
        ))?;
    }
    if seen.iter().any(|one| one.definition.sandbox.is_some()) {
        out.line(format_args!("{DIM}sandbox: {}{DIM:#}", SandboxSupport::of_this_system()))?;
    }
    let (weaker, stronger): (Vec<_>, Vec<_>) =
        consent.changes.iter().partition(|change| change.needs_consent());
    if !weaker.is_empty() {
        let heading = match weaker.iter().any(|change| change.is_weaker()) {
            true => "Fewer or weaker gates than you trusted",
            false => "Gates changed since you trusted them",
        };
        out.line(format_args!("{BOLD}{heading}:{BOLD:#}"))?;
    }
    for change in weaker {
        out.line(format_args!("  - {}", visible(&change.to_string())))?;
    }
    for change in stronger {
        out.line(format_args!("  + {}", visible(&change.to_string())))?;
    }
    if !seen.is_empty() || !consent.offer.gates.gates.is_empty() || !consent.changes.is_empty() {
        out.line(format_args!("{DIM}{digest}{DIM:#}"))?;
    }
    Ok(())
}

/// Returns the scripts of hooks, with the content to trust.
struct ScriptView<'c> {
    consent: &'c HookConsent,
    /// Digests of scripts that were shown: several hooks may name one.
    shown: BTreeSet<String>,
}

impl ScriptView<'_> {
    /// The content of the scripts that are new, and the changes of those that are not.
    fn lines(&mut self, one: &HookDefinition, before: Option<&HookDefinition>) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, digest) in &one.scripts {
            let old = before.and_then(|before| before.scripts.get(name));
            if old == Some(digest) || !self.shown.insert(digest.clone()) {
                continue;
            }
            let is_own = |seen: &&SeenHook| seen.definition.is_of_hook(one);
            let seen = self.consent.offer.seen.iter().find(is_own);
            let Some(bytes) = seen.and_then(|seen| seen.script(name)) else { continue };
            let kept = old.map(|old| self.consent.trust.kept_script(old, name));
            match kept {
                Some(Some(kept)) => {
                    lines.push(format!("changes of {name}:"));
                    lines.extend(bounded(changes(&kept, bytes), name));
                }
                Some(None) => {
                    lines.push(format!("{name}, whole (no copy of the trusted version is here):"));
                    lines.extend(bounded(content(bytes), name));
                }
                None => {
                    lines.push(format!("{name}:"));
                    lines.extend(bounded(content(bytes), name));
                }
            }
        }
        lines
    }
}

/// A text file as lines; one line for another file.
fn content(bytes: &[u8]) -> Vec<String> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => {
            text.lines().map(|line| format!("  | {line}")).collect()
        }
        _ => vec![format!("  not text: {} bytes", bytes.len())],
    }
}

/// The lines that differ between two versions of a script, with some around them.
fn changes(old: &[u8], new: &[u8]) -> Vec<String> {
    let (Ok(old), Ok(new)) = (std::str::from_utf8(old), std::str::from_utf8(new)) else {
        return vec![format!("  not text: {} bytes, before {}", new.len(), old.len())];
    };
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(old, new);
    let mut lines = Vec::new();
    for group in diff.grouped_ops(DIFF_CONTEXT) {
        if !lines.is_empty() {
            lines.push("  | …".to_owned());
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            let sign = match change.tag() {
                ChangeTag::Delete => "-",
                ChangeTag::Insert => "+",
                ChangeTag::Equal => " ",
            };
            let line = change.value();
            lines.push(format!("  {sign} {}", line.strip_suffix('\n').unwrap_or(line)));
        }
    }
    lines
}

/// The first lines, and how to read the rest.
fn bounded(mut lines: Vec<String>, name: &str) -> Vec<String> {
    for line in &mut lines {
        if let Some((end, _)) = line.char_indices().nth(SCRIPT_LINE_MAX) {
            let more = line[end..].chars().count();
            line.truncate(end);
            line.push_str(&format!(" [{more} more characters; read the file]"));
        }
    }
    let more = lines.len().saturating_sub(SCRIPT_LINES_MAX);
    if more > 0 {
        lines.truncate(SCRIPT_LINES_MAX);
        lines.push(format!("  [{more} more lines; read the file: less {name}]"));
    }
    lines
}

/// Prints the definitions to trust, beside the trusted ones; `details` are further lines of a definition that is not
/// trusted.
pub(crate) fn compare(
    out: &mut CommandOutput,
    agreed: &[HookDefinition],
    found: &[&HookDefinition],
    details: &mut dyn FnMut(&HookDefinition, Option<&HookDefinition>) -> Vec<String>,
) -> CliResult {
    for one in found {
        let standing = one.standing(agreed);
        let before = agreed.iter().find(|known| known.is_of_hook(one));
        let name = visible(&one.name);
        let mark = standing.name();
        out.line(format_args!("{BOLD}{name}{BOLD:#}  {DIM}{mark}{DIM:#}"))?;
        let old = before.map(lines).unwrap_or_default();
        let new = lines(one);
        for line in &new {
            let sign = match standing {
                HookStanding::Modified if !old.contains(line) => "+",
                _ => " ",
            };
            out.line(format_args!("  {sign} {}", visible(line)))?;
        }
        if standing == HookStanding::Modified {
            for line in old.iter().filter(|line| !new.contains(line)) {
                out.line(format_args!("  - {}", visible(line)))?;
            }
        }
        if !standing.may_run() {
            for line in details(one, before) {
                out.line(format_args!("    {}", visible(&line)))?;
            }
        }
    }
    let is_gone = |known: &&HookDefinition| !found.iter().any(|one| one.is_of_hook(known));
    for gone in agreed.iter().filter(is_gone) {
        out.line(format_args!("{BOLD}{}{BOLD:#}  {DIM}removed{DIM:#}", visible(&gone.name)))?;
    }
    Ok(())
}

/// Returns all trusted properties of a hook or an agent, one line each.
fn lines(definition: &HookDefinition) -> Vec<String> {
    let mut lines = Vec::new();
    let is_hook = !definition.points.is_empty();
    if is_hook {
        lines.push(format!("at      {}", definition.points.join(", ")));
    }
    if let Some(list) = &definition.task_type {
        lines.push(match list.strip_prefix(AGENT_LIST) {
            Some(agent) => format!("agent   {agent}"),
            None => format!("type    {list}"),
        });
    }
    if let Some(line) = definition.what.get("shell").and_then(|line| line.as_str()) {
        lines.extend(line.split('\n').map(|line| format!("shell   {line}")));
    } else if let Some(args) = definition.what.get("exec") {
        lines.push(format!("exec    {args}"));
    } else if let Some(url) = definition.what.get("http").and_then(|url| url.as_str()) {
        lines.push(format!("http    {url}"));
    } else if let Some(actions) = definition.what.get("actions").and_then(|what| what.as_array()) {
        lines.extend(actions.iter().map(|action| format!("action  {action}")));
    } else if let Some(builtin) = definition.what.get("use").and_then(|name| name.as_str()) {
        lines.push(format!("use     {builtin}"));
    } else if let Some(agents) = definition.what.get("gatekeeper") {
        let quorum = definition.what.get("quorum").and_then(|quorum| quorum.as_str());
        lines.push(format!("review  by {agents}, {} of them", quorum.unwrap_or("all")));
        let terms = definition.what.get("terms").and_then(|terms| terms.as_array());
        for terms in terms.into_iter().flatten().filter_map(|terms| terms.as_str()) {
            lines.extend(terms.split('\n').map(|line| format!("terms   {line}")));
        }
    }
    if let Some(when) = &definition.when {
        lines.push(format!("when    {when}"));
    }
    if is_hook {
        let cwd = definition.cwd.as_deref().unwrap_or("the project's directory");
        lines.push(format!("in      {cwd}"));
    }
    for (name, value) in &definition.env {
        lines.push(match value {
            Some(value) => format!("env     {name}={value}"),
            None => format!("env     {name}, from your environment"),
        });
    }
    for (name, value) in &definition.options {
        lines.push(format!("option  {name}: {value}"));
    }
    if let Some(sandbox) = &definition.sandbox {
        lines.push(format!("sandbox {sandbox}"));
    }
    if let Some(limits) = &definition.limits {
        lines.push(format!("limits  {limits}"));
    }
    for (link, file) in &definition.links {
        lines.push(format!("link    {link} -> {file}"));
    }
    for (script, digest) in &definition.scripts {
        let kind = if is_hook || !definition.what.is_null() { "script" } else { "file" };
        lines.push(format!("{kind:<7} {script} sha256:{digest}"));
    }
    lines
}
