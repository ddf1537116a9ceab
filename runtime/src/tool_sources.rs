//! Tool sources: Posse asks them for tools when it prepares a run, and opens them when the run calls a tool.
//!
//! The offer of a source is stored with the run and does not change. Posse never changes a tool during a run, never
//! repeats a call, and starts no task here.

use crate::error::Error;
use crate::mcp::McpServers;
use crate::mcp_settings::name_fault;
use crate::tool_facts::{ToolFacts, find};
use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use posse_agent::{Answer, Tool, ToolContext, check_schema, panic_text};
use posse_protocol::{Extra, RunId, SourceOffer, ToolOutput, ToolSpec};
use posse_tools::{OpenSource, SourceContext, SourceError, ToolSource};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// The longest name that every vendor accepts.
const LONGEST_NAME: usize = 64;
/// The most tools that one source may offer.
const MOST_TOOLS: usize = 1_000;
/// The most bytes that they may have together: every run stores them.
const MOST_BYTES: usize = 1 << 20;
/// After how many failures in a row, to open or in a call, a source stays closed for its run.
const MOST_FAILURES: u32 = 3;
/// The most characters of a reason that are stored and shown.
const LONGEST_REASON: usize = 500;

/// The sources of the host, the MCP servers, and those that are open for runs.
pub(crate) struct Sources {
    sources: Vec<Arc<dyn ToolSource>>,
    servers: McpServers,
    open: Mutex<HashMap<(RunId, String), Slot>>,
    /// Notifies that a run began to wait.
    rests: Notify,
}

/// A source of one run.
#[derive(Clone, Default)]
struct Slot {
    opened: Arc<tokio::sync::Mutex<Option<Arc<Opened>>>>,
    /// How often it has failed since a call last succeeded.
    failures: u32,
    /// How long it stays open for a run that waits.
    kept_open: Duration,
    /// When the run began to wait.
    rests: Option<Instant>,
}

/// A source, and the file that describes it if it is an MCP server.
type Candidate = (Arc<dyn ToolSource>, Option<String>);

/// An open source, and what it offers now.
struct Opened {
    source: Arc<dyn OpenSource>,
    /// With the names that models see.
    tools: Vec<ToolSpec>,
}

/// Refuses sources with equal or invalid names: vendors would not accept the names of their tools.
pub(crate) fn check(sources: &[Arc<dyn ToolSource>]) -> Result<(), Error> {
    let mut names = HashSet::new();
    for source in sources {
        let name = source.name();
        let wrong = |why: &str| Err(Error::InvalidInput(format!("the tool source `{name}` {why}")));
        if let Some(fault) = name_fault(name) {
            return wrong(&fault);
        }
        if !names.insert(name) {
            return wrong("is there twice; give one of them another name");
        }
    }
    Ok(())
}

impl Sources {
    pub(crate) fn new(sources: Vec<Arc<dyn ToolSource>>, servers: McpServers) -> Self {
        Sources { sources, servers, open: Mutex::default(), rests: Notify::new() }
    }

    /// True when no run can have a source.
    pub(crate) fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.servers.is_empty()
    }

    /// True when no run that begins in `folder` has a source.
    pub(crate) fn is_empty_in(&self, folder: &str) -> bool {
        self.is_empty() || self.for_folder(folder.as_ref()).is_empty()
    }

    /// Returns the sources for a run in `folder` that begins. Those of the host go before MCP servers of the same name.
    fn for_folder(&self, folder: &Path) -> Vec<Candidate> {
        let mut all: Vec<Candidate> =
            self.sources.iter().map(|source| (source.clone(), None)).collect();
        for server in self.servers.sources(folder) {
            if self.sources.iter().all(|source| source.name() != server.name())
                && let Some(file) = server.file().to_str().map(str::to_owned)
            {
                all.push((server, Some(file)));
            }
        }
        all
    }

    /// Returns the source that offered something when a run began.
    fn again(&self, name: &str, file: Option<&str>) -> Result<Arc<dyn ToolSource>, String> {
        let why = match file {
            Some(file) => match self.servers.again(name, file.as_ref()) {
                Ok(source) => return Ok(source),
                Err(why) => format!("the MCP server `{name}` cannot be used: {why}"),
            },
            None => match self.sources.iter().find(|source| source.name() == name) {
                Some(source) => return Ok(source.clone()),
                None => format!("this program has no tool source `{name}` any more"),
            },
        };
        Err(format!("{why}; go on without its tools, or tell the user"))
    }

    /// Asks every source at the same time what it offers for the run of `context`. It closes them again, because a
    /// call opens them with other rights.
    ///
    /// # Errors
    /// When a required source cannot be used, or a tool has the name of one of `tools`.
    pub(crate) async fn offers(
        &self,
        context: &SourceContext,
        tools: &[ToolFacts],
    ) -> Result<Vec<SourceOffer>, Error> {
        let candidates = self.for_folder(context.workspace());
        let asked = candidates.iter().map(|(source, file)| async move {
            let opened = open(&**source, context).await;
            (source, file, opened)
        });
        let mut offers = Vec::new();
        for (source, file, opened) in join_all(asked).await {
            let name = source.name();
            let (offered, missing) = match opened {
                Ok(opened) => (opened.tools.clone(), None),
                Err(why) if source.is_required() => {
                    return Err(Error::InvalidInput(format!(
                        "the run cannot start without its tool source `{name}`: {why}"
                    )));
                }
                Err(why) => (Vec::new(), Some(why)),
            };
            for tool in &offered {
                if let Some((other, _)) = find(tools, &tool.name) {
                    return Err(Error::InvalidInput(format!(
                        "the tool `{}` of the tool source `{name}` has the name of `{}`, a tool of this \
                         program; give one of them another name",
                        tool.name, other.name
                    )));
                }
            }
            let (tools, source, file) = (offered, name.to_owned(), file.clone());
            offers.push(SourceOffer { source, tools, file, missing, extra: Extra::default() });
        }
        Ok(offers)
    }

    /// Returns the tools of `offers`, for the run of `context`.
    pub(crate) fn tools(
        self: &Arc<Self>,
        offers: &[SourceOffer],
        context: &SourceContext,
    ) -> impl Iterator<Item = Arc<dyn Tool>> {
        let tool = |offer: &SourceOffer, spec: &ToolSpec| -> Arc<dyn Tool> {
            let (sources, context) = (self.clone(), context.clone());
            let (source, file) = (offer.source.clone(), offer.file.clone());
            Arc::new(SourceTool { spec: spec.clone(), source, file, context, sources })
        };
        offers
            .iter()
            .flat_map(move |offer| offer.tools.iter().map(move |offered| tool(offer, offered)))
    }

    /// Returns the source `name` of `file`, open for the run of `context`.
    async fn opened(
        &self,
        name: &str,
        file: Option<&str>,
        context: &SourceContext,
    ) -> Result<Arc<Opened>, String> {
        let source = self.again(name, file)?;
        let slot = {
            let mut open = self.lock();
            let slot = open.entry((context.run(), name.to_owned())).or_default();
            slot.rests = None;
            slot.kept_open = source.kept_open();
            if slot.failures >= MOST_FAILURES {
                return Err(format!(
                    "the tool source `{name}` has failed {MOST_FAILURES} times in a row, and stays closed for this \
                     run; go on without it, or tell the user"
                ));
            }
            slot.opened.clone()
        };
        // Concurrent callers wait here, so that the source is opened once.
        let mut opened = slot.lock().await;
        if let Some(opened) = opened.as_ref().filter(|opened| opened.source.is_open()) {
            return Ok(opened.clone());
        }
        *opened = None;
        match open(&*source, context).await {
            Ok(new) => Ok(opened.insert(Arc::new(new)).clone()),
            Err(why) => {
                self.count_failure(name, context.run());
                Err(format!(
                    "the tool source `{name}` cannot be used: {why}; go on without it, or tell the user"
                ))
            }
        }
    }

    fn count_failure(&self, name: &str, run: RunId) {
        if let Some(slot) = self.lock().get_mut(&(run, name.to_owned())) {
            slot.failures += 1;
        }
    }

    fn count_success(&self, name: &str, run: RunId) {
        if let Some(slot) = self.lock().get_mut(&(run, name.to_owned())) {
            slot.failures = 0;
        }
    }

    /// Closes `broken`, unless it is closed already.
    async fn close_broken(&self, name: &str, run: RunId, broken: &Arc<Opened>) {
        let slot = self.lock().get(&(run, name.to_owned())).map(|slot| slot.opened.clone());
        if let Some(slot) = slot {
            let mut opened = slot.lock().await;
            if opened.take_if(|opened| Arc::ptr_eq(opened, broken)).is_some() {
                self.count_failure(name, run);
            }
        }
    }

    /// Closes the sources of `run`, which has ended.
    pub(crate) fn close(&self, run: RunId) {
        self.lock().retain(|(of, _), _| *of != run);
    }

    /// Notes that `run` waits, or that another worker executes it.
    pub(crate) fn rest(&self, run: RunId) {
        let mut open = self.lock();
        let slots = open.iter_mut().filter(|((of, _), _)| *of == run);
        slots.for_each(|(_, slot)| slot.rests = Some(Instant::now()));
        self.rests.notify_one();
    }

    /// Closes everything.
    pub(crate) fn close_all(&self) {
        self.lock().clear();
    }

    /// Closes sources of runs that wait for a long time, until `stop` fires.
    pub(crate) async fn close_rested(self: Arc<Self>, stop: CancellationToken) {
        loop {
            let next = self.close_due();
            let due = async {
                match next {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.rests.notified() => {}
                () = due => {}
            }
        }
    }

    /// Closes the sources that are due, and returns when the next is due.
    fn close_due(&self) -> Option<Instant> {
        let now = Instant::now();
        let due = |slot: &Slot| slot.rests?.checked_add(slot.kept_open);
        let mut open = self.lock();
        open.retain(|_, slot| due(slot).is_none_or(|due| due > now));
        open.values().filter_map(due).min()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(RunId, String), Slot>> {
        self.open.lock()
    }
}

/// Opens `source` and lists its tools within its patience, or returns why that failed.
async fn open(source: &dyn ToolSource, context: &SourceContext) -> Result<Opened, String> {
    let patience = source.patience();
    let work = async {
        let open = source.open(context).await?;
        let tools = named(source.name(), open.tools().await?)?;
        Ok(Opened { source: open, tools })
    };
    let opened = timeout(patience, AssertUnwindSafe(work).catch_unwind()).await;
    let opened: Result<Opened, SourceError> = match opened {
        Ok(Ok(opened)) => opened,
        Ok(Err(panic)) => {
            let said = panic_text(&*panic).unwrap_or_default();
            Err(SourceError(format!("it failed inside itself {said}")))
        }
        Err(_) => {
            let seconds = patience.as_secs_f64();
            Err(SourceError(format!("it did not list its tools within {seconds} s")))
        }
    };
    opened.map_err(|SourceError(why)| {
        let words: Vec<&str> = why.split_whitespace().collect();
        words.join(" ").chars().take(LONGEST_REASON).collect()
    })
}

/// Returns `tools` with the names that models see.
fn named(source: &str, mut tools: Vec<ToolSpec>) -> Result<Vec<ToolSpec>, SourceError> {
    if tools.len() > MOST_TOOLS {
        return Err(SourceError(format!("it offers more than {MOST_TOOLS} tools")));
    }
    let (mut names, mut bytes) = (HashSet::new(), 0);
    for tool in &mut tools {
        let shown: String = tool.name.chars().take(80).collect();
        let wrong = |why: &str| Err(SourceError(format!("its tool `{shown}` {why}")));
        let plain = |char: char| char.is_ascii_alphanumeric() || "_-".contains(char);
        bytes += tool.name.len() + tool.description.len() + tool.schema.text().len();
        if bytes > MOST_BYTES {
            return Err(SourceError(format!("its tools have more than {MOST_BYTES} bytes")));
        }
        let name = format!("mcp__{source}__{}", tool.name);
        if tool.name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(plain) {
            return wrong(&format!(
                "must have a name of letters, digits, `_` and `-`, with `mcp__{source}__` at most \
                 {LONGEST_NAME}"
            ));
        }
        if tool.schema.get("type").and_then(|kind| kind.as_str()) != Some("object") {
            return wrong("has a schema that is not of type `object`");
        }
        if let Err(why) = check_schema(&tool.schema) {
            return wrong(&format!("has a schema that cannot be used: {why}"));
        }
        if !names.insert(name.clone()) {
            return wrong("is there twice");
        }
        tool.facts.name = name;
        // Posse has not checked these claims of the source, so it drops them.
        (tool.facts.confined, tool.facts.aliases) = (false, Vec::new());
    }
    Ok(tools)
}

/// A tool that a source offered for a run.
struct SourceTool {
    /// As stored with the run.
    spec: ToolSpec,
    source: String,
    file: Option<String>,
    context: SourceContext,
    sources: Arc<Sources>,
}

impl SourceTool {
    /// Returns the open source, if it still offers the same tool.
    async fn opened(&self) -> Result<Arc<Opened>, String> {
        let source = &self.source;
        let opened = self.sources.opened(source, self.file.as_deref(), &self.context).await?;
        let now = opened.tools.iter().find(|tool| tool.name == self.spec.name);
        match now {
            Some(now) if *now == self.spec => Ok(opened),
            Some(_) => Err(format!(
                "the tool source `{source}` has changed it since this run began; a new run sees it as it is \
                 now. Go on without it, or tell the user"
            )),
            None => Err(format!(
                "the tool source `{source}` does not offer it any more; go on without it, or tell the user"
            )),
        }
    }
}

#[async_trait]
impl Tool for SourceTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: Value, context: &ToolContext) -> Answer {
        let name = &self.spec.name;
        let opened = tokio::select! {
            biased;
            () = context.cancel.cancelled() => Err("the call was cancelled".to_owned()),
            opened = self.opened() => opened,
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(why) => {
                return ToolOutput::error(format!("`{name}` was not called: {why}")).into();
            }
        };
        let prefix = format!("mcp__{}__", self.source);
        let own = name.strip_prefix(&prefix).unwrap_or(name);
        match opened.source.call(own, input, context).await {
            Ok(answer) => {
                self.sources.count_success(&self.source, self.context.run());
                answer
            }
            Err(SourceError(why)) => {
                self.sources.close_broken(&self.source, self.context.run(), &opened).await;
                let source = &self.source;
                ToolOutput::error(format!(
                    "`{name}` failed: the tool source `{source}` broke down ({why}). What the call did is \
                     not known. The next call starts the source anew"
                ))
                .into()
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str, schema: Value) -> ToolSpec {
        // In the form that a server sends.
        let (description, effect) = ("Does it.", "read");
        let spec = json!({"name": name, "description": description, "schema": schema,
            "effect": effect, "idempotent": false});
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn tools_get_the_name_of_their_source() {
        let tools = vec![tool("one", json!({"type": "object"}))];
        assert_eq!(named("web", tools).unwrap()[0].name, "mcp__web__one");
    }

    #[test]
    fn a_source_whose_tools_no_provider_would_take_says_so() {
        let object = || json!({"type": "object"});
        let check = |tools: Vec<ToolSpec>, expected: &str| {
            let SourceError(why) = named("web", tools).unwrap_err();
            assert!(why.contains(expected), "{why}");
        };
        check(vec![tool("", object())], "its tool `` must have a name");
        check(vec![tool("a b", object())], "its tool `a b` must have a name");
        check(vec![tool(&"x".repeat(60), object())], "at most 64");
        check(vec![tool("one", json!({"type": "string"}))], "not of type `object`");
        check(vec![tool("one", json!({"type": "object", "properties": 1}))], "cannot be used");
        check(vec![tool("one", object()), tool("one", object())], "`one` is there twice");
        let many = (0..=MOST_TOOLS).map(|index| tool(&format!("t{index}"), object()));
        check(many.collect(), "more than 1000 tools");
        let mut long = tool("one", object());
        long.description = "x".repeat(MOST_BYTES);
        check(vec![long], "more than 1048576 bytes");
    }
}
