//! Answers an agent's requests for permission.
//!
//! This is no sandbox: the agent itself decides which actions it asks for, and names their kind. Paths are taken as
//! written, and links are not followed.

use std::path::{Component, Path, PathBuf};

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, SelectedPermissionOutcome,
    ToolKind,
};
use hookloop_config::agents::AgentPermissions;

use crate::tools::is_ours;

/// A request for permission.
#[derive(Clone, Copy, Debug)]
pub(super) struct PermissionRequest<'a> {
    pub(super) kind: ToolKind,
    pub(super) title: &'a str,
    /// The files that the request names.
    pub(super) paths: &'a [PathBuf],
}

/// The rules that decide a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct PermissionRules<'a> {
    pub(super) permissions: AgentPermissions,
    /// Kinds that are allowed beside the permissions, by the protocol's names.
    pub(super) allowed_tools: &'a [String],
    pub(super) root: &'a Path,
}

impl PermissionRules<'_> {
    pub(super) fn allows(&self, request: &PermissionRequest<'_>) -> bool {
        if self.permissions == AgentPermissions::Full
            || self.allowed_tools.iter().any(|it| it == name(request.kind))
        {
            return true;
        }
        match request.kind {
            ToolKind::Read | ToolKind::Search | ToolKind::Think => true,
            ToolKind::Other => is_ours(request.title),
            // Codex uses this kind for everything that it runs, including tools of servers.
            ToolKind::Execute => request.title.starts_with("mcp.") && is_ours(request.title),
            ToolKind::Edit | ToolKind::Move => self.may_edit() && self.are_inside(request.paths),
            // A deletion is final, so its paths must be known to be in the project.
            ToolKind::Delete => {
                self.may_edit() && !request.paths.is_empty() && self.are_inside(request.paths)
            }
            _ => false,
        }
    }

    /// Returns the answer, among the offered ones, and whether it allows the request.
    pub(super) fn answer(
        &self,
        request: &PermissionRequest<'_>,
        options: &[PermissionOption],
    ) -> (RequestPermissionOutcome, bool) {
        let allowed = self.allows(request);
        let wanted: &[PermissionOptionKind] = match (allowed, self.permissions) {
            // An agent stores a lasting permission where hookloop does not see it.
            (true, AgentPermissions::Full) => {
                &[PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways]
            }
            (true, _) => &[PermissionOptionKind::AllowOnce],
            (false, _) => &[PermissionOptionKind::RejectOnce],
        };
        let offered = |kind| options.iter().find(|option| option.kind == kind);
        match wanted.iter().copied().find_map(offered) {
            Some(option) => {
                let selected = SelectedPermissionOutcome::new(option.option_id.clone());
                (RequestPermissionOutcome::Selected(selected), allowed)
            }
            None => (RequestPermissionOutcome::Cancelled, false),
        }
    }

    fn may_edit(&self) -> bool {
        self.permissions == AgentPermissions::Edit
    }

    fn are_inside(&self, paths: &[PathBuf]) -> bool {
        // The agent may use the real path of the directory.
        let real = self.root.canonicalize().ok();
        paths.iter().all(|path| {
            let path = plain(&self.root.join(path));
            path.starts_with(self.root) || real.as_ref().is_some_and(|real| path.starts_with(real))
        })
    }
}

/// Returns a path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Returns the protocol's name of a kind.
pub(super) fn name(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Edit => "edit",
        ToolKind::Delete => "delete",
        ToolKind::Move => "move",
        ToolKind::Search => "search",
        ToolKind::Execute => "execute",
        ToolKind::Think => "think",
        ToolKind::Fetch => "fetch",
        ToolKind::SwitchMode => "switch_mode",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use agent_client_protocol::v1::schema::{
        PermissionOption, PermissionOptionKind, RequestPermissionOutcome, ToolKind,
    };

    use super::{PermissionRequest, PermissionRules};
    use hookloop_config::agents::AgentPermissions;
    use hookloop_config::agents::AgentPermissions::{Edit, Full, Read};

    const ALL: [ToolKind; 10] = [
        ToolKind::Read,
        ToolKind::Search,
        ToolKind::Think,
        ToolKind::Edit,
        ToolKind::Move,
        ToolKind::Delete,
        ToolKind::Execute,
        ToolKind::Fetch,
        ToolKind::SwitchMode,
        ToolKind::Other,
    ];

    fn guard(permissions: AgentPermissions, allowed_tools: &[String]) -> PermissionRules<'_> {
        PermissionRules { permissions, allowed_tools, root: Path::new("/project") }
    }

    #[test]
    fn each_permission_level_allows_its_tool_kinds() {
        let inside = ["/project/a".into()];
        for (permissions, allowed) in [(Read, 3), (Edit, 6), (Full, 10)] {
            for (index, kind) in ALL.into_iter().enumerate() {
                let request = PermissionRequest { kind, title: "", paths: &inside };
                let is_allowed = guard(permissions, &[]).allows(&request);
                assert_eq!(is_allowed, index < allowed, "{permissions:?} {kind:?}");
            }
        }
    }

    #[test]
    fn a_tool_kind_can_be_allowed_by_name() {
        let allowed_tools = ["execute".to_owned()];
        let allows = |kind| {
            guard(Read, &allowed_tools).allows(&PermissionRequest { kind, title: "", paths: &[] })
        };
        assert!(allows(ToolKind::Execute));
        assert!(!allows(ToolKind::Edit));
    }

    #[test]
    fn the_mcp_tools_of_hookloop_are_allowed() {
        let allows =
            |kind, title| guard(Read, &[]).allows(&PermissionRequest { kind, title, paths: &[] });
        assert!(allows(ToolKind::Other, "mcp__hookloop__task_update"));
        assert!(allows(ToolKind::Other, "task_update (hookloop MCP Server)"));
        assert!(!allows(ToolKind::Other, "mcp__other__task_update"));
        assert!(!allows(ToolKind::Other, "hookloop_task_update; rm -rf /"));
        assert!(allows(ToolKind::Execute, "mcp.hookloop.task_update"));
        assert!(!allows(ToolKind::Execute, "hookloop_task_update"));
    }

    #[test]
    fn edits_outside_the_project_are_refused() {
        let check = |kind, paths: &[&str], expected| {
            let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
            let is_allowed =
                guard(Edit, &[]).allows(&PermissionRequest { kind, title: "", paths: &paths });
            assert_eq!(is_allowed, expected, "{kind:?} {paths:?}");
        };
        for kind in [ToolKind::Edit, ToolKind::Move, ToolKind::Delete] {
            check(kind, &["/project/a", "b/../c"], true);
            check(kind, &["/project/a", "/etc/passwd"], false);
            check(kind, &["/project/../etc/passwd"], false);
            check(kind, &["../other"], false);
            check(kind, &["/projects/a"], false);
        }
        check(ToolKind::Edit, &[], true);
        check(ToolKind::Delete, &[], false);
    }

    #[test]
    fn a_permission_answer_is_one_of_the_offered_options() {
        use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
        let check = |permissions, kind, offered: &[PermissionOptionKind], expected: Option<_>| {
            let option = |kind: &PermissionOptionKind| {
                PermissionOption::new(format!("{kind:?}"), "name", *kind)
            };
            let options: Vec<_> = offered.iter().map(option).collect();
            let request = PermissionRequest { kind, title: "", paths: &[] };
            let (outcome, is_yes) = guard(permissions, &[]).answer(&request, &options);
            let chosen = match outcome {
                RequestPermissionOutcome::Selected(chosen) => Some(chosen.option_id.to_string()),
                _ => None,
            };
            assert_eq!(chosen, expected.map(|kind: PermissionOptionKind| format!("{kind:?}")));
            assert_eq!(is_yes, matches!(expected, Some(AllowOnce | AllowAlways)));
        };
        let all = [RejectAlways, AllowAlways, RejectOnce, AllowOnce];
        check(Edit, ToolKind::Edit, &all, Some(AllowOnce));
        check(Edit, ToolKind::Execute, &all, Some(RejectOnce));
        check(Edit, ToolKind::Edit, &[AllowAlways, RejectOnce], None);
        check(Full, ToolKind::Execute, &[AllowAlways, RejectOnce], Some(AllowAlways));
        check(Read, ToolKind::Edit, &[AllowOnce, RejectAlways], None);
        check(Full, ToolKind::Edit, &[], None);
    }
}
