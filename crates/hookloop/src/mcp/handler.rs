//! The server as rmcp wants it: the same for stdio and HTTP.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult,
    DiscoverResult, ErrorCode, ErrorData, Implementation, InitializeResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;

use super::refusal::ToolRefusal;
use super::resources;
use super::tools::{AgentTool, TOOLS};
use crate::mcp::tool_service::ToolService;

/// Instructions for an agent that runs its loop itself.
const OWN_LOOP: &str = "\
hookloop stores the tasks of this project and checks work with the project's gates. You run the loop:
1. Choose a task with task_list or task_get. Call hook_register and iteration_start.
2. Do the work.
3. Call iteration_validate with your message as agentOutput.
4. On CONTINUE, fix the cause, call iteration_next and go on with 2. Otherwise call iteration_complete, then hook_clear.
End your message with a promise alone on its line: <promise>COMPLETE</promise> if the task is done and checked, \
<promise>BLOCKED</promise> if something outside your control must happen first, <promise>ESCALATE</promise> if a \
person must decide.
A task is complete only when the gates pass on the files as they are. You cannot register commands or change gates, \
limits or trust. If a call fails, `next` in the error says how to continue.";

/// Instructions for an agent that a session started.
const IN_A_SESSION: &str = "\
hookloop runs this session: it starts your turns and checks your work with the project's gates.
- Your prompt says how to end a turn. task_update with `completed` is the same claim as <promise>COMPLETE</promise>: \
the task is complete only when the gates pass on the files as they are.
- Call task_get for the details of your task, task_add for work that is not part of it, and task_update with \
`blocked` and blockedReason if something outside your control must happen first.
- Call checkpoint_create before a long step. The prompt after a restart has the last checkpoint.
- You need no hook_register, iteration_next or iteration_complete: hookloop runs the loop.
You cannot register commands or change gates, limits or trust. If a call fails, `next` in the error says how to \
continue.";

/// Requests that there are, so that one which can't be read is not taken for an unknown one.
const METHODS: [&str; 5] =
    ["initialize", "tools/call", "tools/list", "resources/list", "resources/read"];

#[derive(Clone, Debug)]
pub(crate) struct McpHandler {
    service: Arc<ToolService>,
}

impl McpHandler {
    pub(crate) fn new(service: Arc<ToolService>) -> McpHandler {
        McpHandler { service }
    }
}

impl ServerHandler for McpHandler {
    fn get_info(&self) -> InitializeResult {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let instructions = if self.service.is_in_session() { IN_A_SESSION } else { OWN_LOOP };
        InitializeResult::new(capabilities)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
            .with_server_info(Implementation::new("hookloop", env!("CARGO_PKG_VERSION")))
            .with_instructions(instructions)
    }

    /// Later ones have another lifecycle, which no agent speaks yet.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25))
    }

    async fn discover(
        &self,
        _context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        Err(unknown_method("server/discover"))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.map(AgentTool::listed).into()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = AgentTool::named(&request.name) else {
            let names = TOOLS.map(|tool| tool.name).join(", ");
            return Err(ErrorData::invalid_params(
                format!("unknown tool; there are {names}"),
                None,
            ));
        };
        let answer = match tool.check(request.arguments.unwrap_or_default()) {
            Ok(arguments) => {
                let work = move |tools: &_| tool.call(tools, arguments);
                self.service.ask(context.ct.cancelled(), tool.writes, work).await
            }
            Err(refusal) => Err(refusal),
        };
        Ok(result(answer).into())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let work = |tools: &_| Ok(resources::list(tools));
        let listed = self.service.ask(context.ct.cancelled(), false, work).await;
        // Without a project there is nothing to read; tools say what is wrong.
        Ok(ListResourcesResult::with_all_items(listed.unwrap_or_default()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.clone();
        let work = move |tools: &_| resources::read(tools, &uri);
        let read = self.service.ask(context.ct.cancelled(), false, work).await;
        read.map(Into::into).map_err(|refusal| resources::not_found(&refusal, &request.uri))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        if METHODS.contains(&method.as_str()) {
            Err(ErrorData::invalid_params(format!("params do not fit {method}"), None))
        } else {
            Err(unknown_method("method not found"))
        }
    }
}

pub(super) fn unknown_method(message: &'static str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

/// An error that an agent can act on is a result: protocol errors don't reach it.
fn result(answer: Result<Value, ToolRefusal>) -> CallToolResult {
    match answer {
        Ok(value) => CallToolResult::structured(value),
        Err(refusal) => CallToolResult::structured_error(refusal.json()),
    }
}
