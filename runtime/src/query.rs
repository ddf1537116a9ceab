//! One question, one call: [`query()`] starts a main agent and returns a finite stream of messages
//! with what the agent says and does.
//!
//! It is a thin layer: one [`Runtime`](crate::Runtime), one run in it, and the log of the run as
//! messages.

mod message;
mod options;

pub use crate::agents::{AgentDefinition, DefinedRights};
pub use message::{Message, Started, Summary};
pub use options::QueryOptions;
pub(crate) use options::{USUAL, is_main, leader};

use crate::error::Error;
use crate::feed::Update;
use crate::handle::{Events, RunHandle};
use crate::home::{Hold, SharedHome};
use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use message::MessageBuilder;
use options::Agents;
use posse_protocol::{Event, Outcome, Record, RunId, RunSpec, Seq};
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// The name of the agent that answers.
pub(crate) const MAIN: &str = "main";

/// Starts an agent on `prompt` and returns what happens as a finite stream.
///
/// A mistake in the question is an error here, before anything starts. A later failure is the
/// outcome in the last message.
///
/// ```
/// use posse::query::{Message, QueryOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let about = "# Kettle\n\nKettle is a program that boils water for everyone who asks.\n";
/// # std::fs::write(folder.path().join("README.md"), about)?;
/// let options = QueryOptions {
///     model: Some("offline/planner".into()), // needs no key
///     workspace: folder.path().into(),
///     ..QueryOptions::default()
/// };
/// let mut messages = posse::query("What does this project do?", options).await?;
/// while let Some(message) = messages.next().await {
///     match message? {
///         Message::Assistant { message } => println!("{}", message.text()),
///         Message::Result(summary) => println!("{}, {}", summary.outcome, summary.cost),
///         _ => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When the prompt is empty, the definition of an agent is invalid, the model, the folder or the
/// database cannot be used.
pub async fn query(prompt: impl Into<String>, options: QueryOptions) -> Result<Query, Error> {
    let prompt = prompt.into();
    if prompt.trim().is_empty() {
        return Err(Error::InvalidInput("the prompt is empty; say what to do".to_owned()));
    }
    let Agents { all, warnings } = options.agents()?;
    let shared_home = options.home.open(all).await?;
    match options.resume {
        Some(run) => Query::resume(shared_home, run, prompt, warnings).await,
        None => Query::start(shared_home, options.spec(prompt)?, warnings).await,
    }
}

/// The messages of an agent: [`Message::Started`] first, and exactly one [`Message::Result`] last,
/// or an error if the runtime itself fails.
///
/// Dropping it before its end cancels the run with its subagents and their processes.
pub struct Query {
    run: RunId,
    messages: BoxStream<'static, Result<Message, Error>>,
}

impl Query {
    /// The run that answers.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// The next message; `None` after the last.
    pub async fn next(&mut self) -> Option<Result<Message, Error>> {
        self.messages.next().await
    }

    /// Waits for the end and returns the summary of the run.
    ///
    /// # Errors
    /// When the runtime fails, or the stream delivered the result before.
    pub async fn result(mut self) -> Result<Summary, Error> {
        while let Some(message) = self.next().await {
            if let Message::Result(summary) = message? {
                return Ok(summary);
            }
        }
        Err(Error::NotNow { run: self.run, reason: "has told its result before".to_owned() })
    }

    /// Starts a run of `spec` in the runtime of `shared_home`.
    pub(crate) async fn start(
        shared_home: Arc<SharedHome>,
        spec: RunSpec,
        warnings: Vec<String>,
    ) -> Result<Self, Error> {
        let runtime = shared_home.runtime.clone();
        let run = runtime.handle(RunId::new());
        let events = run.events(Seq::ZERO);
        // The hold exists before the run: if the caller drops this future, no run is left behind.
        let hold = Hold::new(shared_home, run.clone());
        match runtime.begin_below(run.id(), spec, None).await {
            Ok(_) => Ok(Query::of(Flow::new(hold, events, warnings))),
            Err(error) => {
                hold.release().await;
                Err(error)
            }
        }
    }

    /// Sends `prompt` to a run of an earlier query.
    async fn resume(
        shared_home: Arc<SharedHome>,
        run: RunId,
        prompt: String,
        warnings: Vec<String>,
    ) -> Result<Self, Error> {
        let runtime = shared_home.runtime.clone();
        let run = runtime.handle(run);
        let (started, last) = match before(&run).await {
            Ok(before) => before,
            Err(error) => {
                shared_home.leave().await;
                return Err(error);
            }
        };
        let hold = Hold::new(shared_home, run.clone());
        let mut flow = Flow::new(hold, run.events(last), warnings);
        flow.ready.extend(flow.teller.tell(started));
        match runtime.send(run.id(), prompt).await {
            Ok(()) => Ok(Query::of(flow)),
            Err(error) => {
                flow.hold.release().await;
                Err(error)
            }
        }
    }

    fn of(flow: Flow) -> Self {
        let run = flow.hold.run().id();
        let messages = stream::unfold(Some(flow), |flow| async move { flow?.step().await });
        Query { run, messages: messages.fuse().boxed() }
    }
}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query").field("run", &self.run).finish_non_exhaustive()
    }
}

impl Stream for Query {
    type Item = Result<Message, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.messages.poll_next_unpin(context)
    }
}

/// Returns the first event of a run that is about to continue, and the position of its last one.
async fn before(run: &RunHandle) -> Result<(Event, Seq), Error> {
    let row = run.row().await?;
    let first = run.inner.store.read(run.id(), Seq::ZERO, 1).await?.pop();
    match first {
        Some(Record { event: Event::RunStarted(started), .. }) if !started.session => {
            Ok((Event::RunStarted(started), row.log.last_seq))
        }
        _ => Err(Error::NotNow {
            run: run.id(),
            reason: "is a session, whose turns are no ends; talk to it with `Runtime::send`"
                .to_owned(),
        }),
    }
}

/// A query under way.
struct Flow {
    hold: Hold,
    events: Events,
    teller: MessageBuilder,
    /// Messages to deliver before reading more events.
    ready: VecDeque<Message>,
    began: Instant,
}

impl Flow {
    fn new(hold: Hold, events: Events, warnings: Vec<String>) -> Self {
        let teller = MessageBuilder::new(hold.run().id(), warnings);
        Flow { hold, events, teller, ready: VecDeque::new(), began: Instant::now() }
    }

    /// Returns the next message, and the flow if more follows.
    async fn step(mut self) -> Option<(Result<Message, Error>, Option<Flow>)> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some((Ok(message), Some(self)));
            }
            let record = match self.events.next().await {
                Some(Ok(Update::Delta(delta))) => {
                    return Some((Ok(Message::Delta(delta)), Some(self)));
                }
                Some(Ok(Update::Event(record))) => record,
                Some(Err(error)) => return Some((Err(error), None)),
                None => {
                    let (run, reason) = (self.hold.run().id(), "is archived".to_owned());
                    return Some((Err(Error::NotNow { run, reason }), None));
                }
            };
            match record.event {
                Event::RunFinished(finished) => {
                    return Some((self.finish(finished.outcome).await, None));
                }
                event => self.ready.extend(self.teller.tell(event)),
            }
        }
    }

    /// Returns the summary. By then the query has cleaned up everything that it does not keep.
    async fn finish(self, outcome: Outcome) -> Result<Message, Error> {
        let summed = Summary::of(self.hold.run(), outcome, self.began.elapsed()).await;
        self.hold.release().await;
        summed.map(Message::Result)
    }
}
