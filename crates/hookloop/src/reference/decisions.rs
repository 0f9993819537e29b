//! The decisions that only some actors may take, from the table that every front end uses.

use hookloop_core::authority::{ActorKind, ControlledAction};

const HEAD: &str = "# Decisions

hookloop knows six kinds of actors: a person; the agent of a session; an external session, which is an agent that \
you started yourself; a hook; a worker; a dispatcher. Adding tasks, claiming them, reporting, asking and reading are \
open to all of them. Each decision below is open to a person, and to the others that its row names.

A process below a hook or an agent is never a person. Its environment does not matter. The command line, the MCP server, \
the dashboard, the TUI and native hooks ask this table before they look at anything else. A refusal begins with \
\"only a person can\" and has exit code 1. [The threat model](../threat-model.md) describes how hookloop identifies actors, \
and which attempts to pass for a person succeed.";

pub(super) fn page() -> String {
    let row = |action: ControlledAction| {
        let others: Vec<&str> = ActorKind::ALL
            .into_iter()
            .filter(|kind| *kind != ActorKind::Person && action.is_allowed_to(*kind))
            .map(ActorKind::name)
            .collect();
        let others =
            if others.is_empty() { "no other actor".to_owned() } else { others.join(", ") };
        format!("| {} | {others} |", action.words())
    };
    let rows: Vec<String> = ControlledAction::ALL.into_iter().map(row).collect();
    format!("{HEAD}\n\n| decision | open to, beside a person |\n|---|---|\n{}", rows.join("\n"))
}
