//! Resources: documents about the current work.

use hookloop_engine::external::agent_tools::{AgentTools, ResourceKind};
use rmcp::model::{ErrorData, ReadResourceResult, Resource, ResourceContents};
use serde_json::json;

use super::refusal::ToolRefusal;

struct ResourceShelf {
    uri: &'static str,
    name: &'static str,
    about: &'static str,
    mime: &'static str,
    document: ResourceKind,
}

const SHELVES: [ResourceShelf; 3] = [
    ResourceShelf {
        uri: "hookloop://task/current",
        name: "current task",
        about: "Current task",
        mime: "application/json",
        document: ResourceKind::CurrentTask,
    },
    ResourceShelf {
        uri: "hookloop://spec",
        name: "spec",
        about: "Work of the session",
        mime: "text/markdown",
        document: ResourceKind::Spec,
    },
    ResourceShelf {
        uri: "hookloop://gates/last",
        name: "last gates",
        about: "Last gate results",
        mime: "text/plain",
        document: ResourceKind::LastGates,
    },
];

/// Those that there are now.
pub(super) fn list(tools: &AgentTools) -> Vec<Resource> {
    let is_there = |shelf: &&ResourceShelf| matches!(tools.read(shelf.document), Ok(Some(_)));
    let listed = |shelf: &ResourceShelf| {
        let resource = Resource::new(shelf.uri, shelf.name).with_description(shelf.about);
        resource.with_mime_type(shelf.mime)
    };
    SHELVES.iter().filter(is_there).map(listed).collect()
}

pub(super) fn read(tools: &AgentTools, uri: &str) -> Result<ReadResourceResult, ToolRefusal> {
    let shelf = SHELVES.iter().find(|shelf| shelf.uri == uri);
    let shelf = shelf.ok_or_else(|| {
        let known = SHELVES.map(|shelf| shelf.uri).join(", ");
        ToolRefusal::new(
            "no_such_resource",
            "there is no such resource",
            format!("read one of {known}"),
        )
    })?;
    match tools.read(shelf.document)? {
        Some(text) => {
            let contents = ResourceContents::text(text, shelf.uri).with_mime_type(shelf.mime);
            Ok(ReadResourceResult::new(vec![contents]))
        }
        None => Err(ToolRefusal::new(
            "no_such_resource",
            format!("{} has no content now", shelf.uri),
            "continue without it",
        )),
    }
}

/// Reading has no results that are errors, so these are the protocol's.
pub(super) fn not_found(refusal: &ToolRefusal, uri: &str) -> ErrorData {
    let mut data = refusal.json();
    data["uri"] = json!(uri);
    match refusal.code {
        "no_such_resource" => ErrorData::resource_not_found(refusal.message.clone(), Some(data)),
        _ => ErrorData::internal_error(refusal.message.clone(), Some(data)),
    }
}
