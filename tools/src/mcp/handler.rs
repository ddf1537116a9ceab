//! What a server may ask of Posse, and tell it: the folder of the run, progress, and that its tools have changed.
//!
//! Everything else that a server may ask for, such as an answer of a model, is refused.

#![expect(deprecated, reason = "the protocol deprecates roots, and servers use them")]

use parking_lot::Mutex;
use posse_agent::ToolContext;
use rmcp::ErrorData;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ListRootsResult, ProgressNotificationParam,
    ProgressToken, Root, RootsCapabilities,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

/// How often the progress of a call is shown at most.
const SHOWN_EVERY: Duration = Duration::from_millis(100);
/// The most characters of a message about progress.
const LONGEST_PROGRESS: usize = 200;

/// What the connection and its handler share.
#[derive(Default)]
pub(super) struct Shared {
    /// The server has said that its tools have changed.
    pub(super) has_changed: AtomicBool,
    calls: Mutex<HashMap<ProgressToken, Shown>>,
}

/// A call whose progress is shown.
struct Shown {
    context: ToolContext,
    last: Option<Instant>,
}

impl Shared {
    /// Shows the progress of the request with `token` as that of the call of `context`, until the returned value is
    /// dropped.
    pub(super) fn show(self: &Arc<Self>, token: ProgressToken, context: &ToolContext) -> Showing {
        let shown = Shown { context: context.clone(), last: None };
        self.calls.lock().insert(token.clone(), shown);
        Showing { shared: self.clone(), token }
    }

    fn progress(&self, params: &ProgressNotificationParam) {
        let mut calls = self.calls.lock();
        let Some(shown) = calls.get_mut(&params.progress_token) else { return };
        if shown.last.is_some_and(|last| last.elapsed() < SHOWN_EVERY) {
            return;
        }
        shown.last = Some(Instant::now());
        let share = match params.total {
            Some(total) => format!("{}/{total}", params.progress),
            None => params.progress.to_string(),
        };
        let text = match &params.message {
            Some(message) => format!("{share} {message}"),
            None => share,
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let text: String = words.join(" ").chars().take(LONGEST_PROGRESS).collect();
        shown.context.progress(format!("{text}\n"));
    }
}

/// Shows the progress of a call.
pub(super) struct Showing {
    shared: Arc<Shared>,
    token: ProgressToken,
}

impl Drop for Showing {
    fn drop(&mut self) {
        self.shared.calls.lock().remove(&self.token);
    }
}

/// Answers a server.
pub(super) struct Handler {
    folder: Option<Url>,
    shared: Arc<Shared>,
}

impl Handler {
    pub(super) fn new(folder: &Path, shared: Arc<Shared>) -> Handler {
        Handler { folder: Url::from_directory_path(folder).ok(), shared }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(RootsCapabilities::default());
        ClientConfig::new(capabilities, Implementation::new("posse", env!("CARGO_PKG_VERSION")))
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let root = |folder: &Url| {
            let text = folder.as_str();
            Root::new(text.strip_suffix('/').filter(|it| !it.ends_with('/')).unwrap_or(text))
        };
        Ok(ListRootsResult::new(self.folder.iter().map(root).collect()))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.shared.progress(&params);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.shared.has_changed.store(true, Ordering::SeqCst);
    }
}
