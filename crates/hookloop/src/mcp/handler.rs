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

const INSTRUCTIONS: &str = "\
hookloop keeps the tasks of this project and holds work against its gates.
- A claim is not proof: work is complete when the project's gates pass on the files as they are.
- End your last message with a promise on a line of its own: <promise>COMPLETE</promise>, \
<promise>BLOCKED</promise> or <promise>ESCALATE</promise>.
- Loop: hook_register, iteration_start, work, iteration_validate, then iteration_next on CONTINUE or \
iteration_complete; hook_clear at the end.
- You can't register commands, change gates, limits or trust. Errors say in `next` what you can do.";

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
        InitializeResult::new(capabilities)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
            .with_server_info(Implementation::new("hookloop", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
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
                let work = move |desk: &_| tool.call(desk, arguments);
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
        let work = |desk: &_| Ok(resources::list(desk));
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
        let work = move |desk: &_| resources::read(desk, &uri);
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
