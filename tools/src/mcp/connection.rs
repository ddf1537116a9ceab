//! A connection with a server: lists its tools and calls them. It never repeats a request.

use super::handler::{Handler, Shared};
use super::listing::{Listing, plain};
use super::output::{LONGEST_TEXT, Shown, shortened};
use super::watch::{LONGEST_LINE, Watch, Watched};
use super::{Clean, McpServer};
use crate::blocking;
use crate::launch::{Process, Status};
use crate::source::{SourceContext, SourceError};
use posse_agent::{Answer, ToolContext};
use posse_protocol::{ToolOutput, ToolSpec};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ListToolsRequest,
    PaginatedRequestParams, ServerResult,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, PeerRequestOptions, RequestHandle, RoleClient,
    RunningService, ServiceError,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// The most pages of a list of tools, and the most tools in it.
const MOST_PAGES: usize = 200;
const MOST_TOOLS: usize = 1_000;
/// How long a server may take to end when it has closed its output.
const ENDING: Duration = Duration::from_secs(2);
/// How long a message that tells a server to stop may take on its way.
const STOPPING: Duration = Duration::from_secs(1);
/// The most characters of a server's last words in an error.
const LONGEST_SAID: usize = 300;

/// A server that runs. Dropping the value ends its process and all processes that it started.
pub struct McpConnection {
    service: RunningService<RoleClient, Handler>,
    shared: Arc<Shared>,
    watch: Arc<Watch>,
    process: Mutex<Process>,
    context: SourceContext,
    call_within: Duration,
    clean: Clean,
}

impl McpConnection {
    pub(super) async fn open(
        mut process: Process,
        context: &SourceContext,
        server: &McpServer,
    ) -> Result<McpConnection, SourceError> {
        let pipes = process.take_pipes();
        let (input, inner) = pipes.ok_or_else(|| SourceError::new("its pipes are in use"))?;
        let (shared, watch) = <(Arc<Shared>, Arc<Watch>)>::default();
        let reader = Watched { inner, watch: watch.clone() };
        let transport =
            AsyncRwTransport::new_client(reader, input).with_max_line_length(LONGEST_LINE + 1);
        let handler = Handler::new(context.workspace(), shared.clone());
        let mode = ClientLifecycleMode::Initialize;
        match handler.serve_with_lifecycle(transport, mode).await {
            Ok(service) => {
                let (process, context) = (Mutex::new(process), context.clone());
                let McpServer { call_within, clean, .. } = server.clone();
                Ok(McpConnection { service, shared, watch, process, context, call_within, clean })
            }
            Err(error) => {
                let ended = why_ended(&mut process, &watch).await;
                let error = short(&error.to_string());
                Err(SourceError(
                    ended.unwrap_or_else(|| {
                        format!("it did not begin as an MCP server does: {error}")
                    }),
                ))
            }
        }
    }

    /// Returns true if the server can still be asked.
    pub fn is_open(&self) -> bool {
        !self.service.is_closed() && !self.service.is_transport_closed()
    }

    /// Returns the tools of the server. The caller limits the time.
    ///
    /// # Errors
    /// If the server does not list them, or lists too many.
    pub async fn list(&self) -> Result<Listing, SourceError> {
        // A change that is told from now on is not in the list.
        self.shared.has_changed.store(false, Ordering::SeqCst);
        let mut listing = Listing::default();
        let mut cursor: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let handle = self.send(request, PeerRequestOptions::no_options()).await?;
            let answer = match handle.await_response().await {
                Ok(answer) => answer,
                Err(error) => return Err(self.broken(error).await),
            };
            let mut page = value_of(&answer)?;
            let Some(Value::Array(tools)) = page.get_mut("tools").map(Value::take) else {
                return Err(SourceError::new("its list of tools is malformed"));
            };
            if listing.tools.len() + listing.left_out.len() + tools.len() > MOST_TOOLS {
                return Err(SourceError(format!("it lists more than {MOST_TOOLS} tools")));
            }
            tools.into_iter().for_each(|tool| listing.add(tool));
            match page.get("nextCursor").and_then(Value::as_str) {
                None => return Ok(listing),
                Some(next) => cursor = Some(next.to_owned()),
            }
        }
        Err(SourceError(format!("its list of tools has more than {MOST_PAGES} pages")))
    }

    /// Returns true if the server has said that its tools have changed since they were listed.
    pub fn has_changed(&self) -> bool {
        self.shared.has_changed.load(Ordering::SeqCst)
    }

    /// Calls `tool`, which the server listed. A server that has said that its tools have changed is asked for the
    /// present definition first.
    ///
    /// # Errors
    /// If the connection is lost. What the call did is not known then.
    pub async fn call(
        &self,
        tool: &ToolSpec,
        input: Value,
        context: &ToolContext,
    ) -> Result<Answer, SourceError> {
        let name = &tool.name;
        if self.has_changed() {
            let now = match timeout(self.call_within, self.list()).await {
                Ok(listing) => listing?,
                Err(_) => return Err(SourceError::new("it did not list its tools again")),
            };
            if !now.tools.contains(tool) {
                self.shared.has_changed.store(true, Ordering::SeqCst);
                return Ok(failed(format!(
                    "`{name}` was not called: the server has changed or removed it since this run began; a \
                     new run sees it as it is now. Go on without it, or tell the user"
                )));
            }
        }
        let Value::Object(arguments) = input else {
            return Ok(failed(format!("`{name}` was not called: its arguments are not an object")));
        };
        let params = CallToolRequestParams::new(name.clone()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::with_timeout(self.call_within);
        let handle = self.send(request, options).await?;
        let _showing = self.shared.show(handle.progress_token.clone(), context);
        let (peer, id) = (handle.peer.clone(), handle.id.clone());
        let answer = tokio::select! {
            biased;
            answer = handle.await_response() => answer,
            () = context.cancel.cancelled() => {
                let stop = peer.notify_cancelled(cancelled(id));
                let _ = timeout(STOPPING, stop).await;
                return Ok(failed(format!(
                    "`{name}` was cancelled: Posse told the server to stop, and what it did until then is not known"
                )));
            }
        };
        match answer {
            Ok(answer) => Ok(self.output(result_of(answer)?).await.into()),
            Err(ServiceError::McpError(error)) => {
                let said = short(&error.message);
                Ok(failed(format!(
                    "`{name}` failed: the server refused the call ({}): {said}",
                    error.code.0
                )))
            }
            Err(ServiceError::Timeout { .. }) => {
                let seconds = self.call_within.as_secs_f64();
                Ok(failed(format!(
                    "`{name}` did not answer within {seconds} s. Posse told the server to stop; what the call did \
                     is not known. Check before you call it again"
                )))
            }
            Err(error) => Err(self.broken(error).await),
        }
    }

    /// Returns what a model sees of `result`. A text that is too long goes to the scratch folder of the run.
    async fn output(&self, result: CallToolResult) -> ToolOutput {
        let Shown { text, pictures, is_error } = Shown::of(result);
        let text = (self.clean)(text);
        let (mut kept, mut written) = (None, 0);
        if text.len() > LONGEST_TEXT {
            let (context, whole) = (self.context.clone(), text.clone());
            kept = blocking::to_the_end(move || Ok(context.keep(&whole))).await.ok().flatten();
            written = if kept.is_some() { text.len() as u64 } else { 0 };
        }
        let mut output = ToolOutput::text(shortened(text, kept.as_deref()));
        output.parts.extend(pictures);
        (output.is_error, output.written_bytes) = (is_error, written);
        output
    }

    async fn send(
        &self,
        request: ClientRequest,
        options: PeerRequestOptions,
    ) -> Result<RequestHandle<RoleClient>, SourceError> {
        self.watch.begin();
        match self.service.peer().send_cancellable_request(request, options).await {
            Ok(handle) => Ok(handle),
            Err(error) => Err(self.broken(error).await),
        }
    }

    /// Returns why the connection is lost.
    async fn broken(&self, error: ServiceError) -> SourceError {
        let error = match error {
            ServiceError::McpError(error) => return SourceError(short(&error.message)),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                "its process closed its output".to_owned()
            }
            other => short(&other.to_string()),
        };
        let ended = why_ended(&mut *self.process.lock().await, &self.watch).await;
        SourceError(ended.unwrap_or(error))
    }
}

fn cancelled(id: rmcp::model::RequestId) -> rmcp::model::CancelledNotificationParam {
    rmcp::model::CancelledNotificationParam::new(
        Some(id),
        Some("the call was cancelled".to_owned()),
    )
}

fn failed(text: String) -> Answer {
    ToolOutput::error(text).into()
}

/// Returns why the connection ended, if Posse ended it or the process has ended.
async fn why_ended(process: &mut Process, watch: &Watch) -> Option<String> {
    if let Some(why) = watch.broken() {
        return Some(why);
    }
    let ended = match timeout(ENDING, process.ended()).await {
        Ok(Ok(ended)) => ended,
        Ok(Err(error)) => return Some(error.to_string()),
        Err(_) => return None,
    };
    let how = match ended.status {
        Status::Exited(code) => format!("exit code {code}"),
        Status::Signalled(signal) => format!("signal {signal}"),
        other => format!("{other:?}"),
    };
    let said = plain(ended.output.trim());
    let last = said.chars().count().saturating_sub(LONGEST_SAID);
    let said: String = said.chars().skip(last).collect();
    Some(match said.trim() {
        "" => format!("its process ended: {how}"),
        said => format!("its process ended: {how}: {said}"),
    })
}

fn short(text: &str) -> String {
    plain(text).chars().take(LONGEST_SAID).collect()
}

fn value_of(answer: &ServerResult) -> Result<Value, SourceError> {
    serde_json::to_value(answer).map_err(|_| SourceError::new("its answer is malformed"))
}

fn result_of(answer: ServerResult) -> Result<CallToolResult, SourceError> {
    match answer {
        ServerResult::CallToolResult(result) => Ok(result),
        // The SDK takes some results for those of other requests.
        other => serde_json::from_value(value_of(&other)?)
            .map_err(|_| SourceError::new("its result is malformed")),
    }
}
