//! Scripts: an ordered list of rules that say which reply answers which request.
//!
//! Replies should depend on the request alone, because many runs share one server, and a run may be
//! killed and resumed. A conversation and the `turn` matcher do that. The number of uses of a rule
//! is only for tests of a single run.

mod book;
pub(crate) mod fault;
mod file;
mod reply;
mod template;
mod when;

pub(crate) use book::Book;
pub use file::ScriptError;
pub(crate) use reply::{Block, Body};
pub use reply::{Reply, Usage};
pub(crate) use template::Template;
pub use when::When;

use crate::turnstile::Capacity;
use std::time::Duration;

/// The rules of the fake model. The first rule that fits and is not spent answers.
///
/// ```
/// use posse_testkit::{Conversation, FakeModel, Gate, Reply, Rule, Script, When};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), posse_testkit::StartError> {
/// let gate = Gate::new();
/// let script = Script::new()
///     .rule(Rule::when(When::any()).reply(Reply::error(529, "busy")).once())
///     .conversation(
///         Conversation::when(When::any().first_user_contains("explore"))
///             .reply(Reply::text("Looking.").and_tool_call("List", json!({"path": "."})))
///             .reply(Reply::text("I saw {{last_tool_result}}").held_by(&gate)),
///     );
/// let fake = FakeModel::start(script).await?;
/// assert!(fake.url().starts_with("http://127.0.0.1:"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub(crate) entries: Vec<Entry>,
    pub(crate) capture: Capture,
    pub(crate) cache: CacheSetting,
    pub(crate) keys: KeyCheck,
    pub(crate) reading: Reading,
    pub(crate) capacity: Capacity,
    /// Models that are listed besides those that rules name.
    pub(crate) models: Vec<String>,
}

/// Tokens that a prompt must have to be cached, as on most real models.
pub(crate) const CACHE_MINIMUM: u64 = 1024;

/// Whether prompts are cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheSetting {
    /// From this many tokens on.
    From(u64),
    Off,
}

impl Default for CacheSetting {
    fn default() -> Self {
        CacheSetting::From(CACHE_MINIMUM)
    }
}

/// Whether a request must bring a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum KeyCheck {
    #[default]
    Needed,
    Skipped,
}

/// How much of a request is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reading {
    #[default]
    Whole,
    /// How many turns it has.
    Turns,
}

/// Whether requests are kept to be looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Capture {
    #[default]
    Keep,
    Discard,
}

/// A rule or a conversation, and its name in messages.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) label: String,
    pub(crate) when: When,
    pub(crate) answers: Answers,
}

#[derive(Clone, Debug)]
pub(crate) enum Answers {
    /// One after the other, the last one again and again; spent after `times` uses.
    InOrder { replies: Vec<Reply>, times: Option<u64> },
    /// The reply at the position of the request's turn.
    ByTurn(Vec<Reply>),
}

/// Requests that fit are answered by each reply in turn; the last one repeats.
#[derive(Clone, Debug)]
pub struct Rule {
    pub(crate) when: When,
    pub(crate) replies: Vec<Reply>,
    pub(crate) times: Option<u64>,
}

/// A request that fits and holds `n` assistant messages is answered by reply `n`, however often
/// it is asked. A request beyond the last reply is left to the rules that follow.
#[derive(Clone, Debug)]
pub struct Conversation {
    pub(crate) when: When,
    pub(crate) replies: Vec<Reply>,
}

impl Rule {
    /// A rule for the requests that fit; add replies to it.
    pub fn when(when: When) -> Self {
        Rule { when, replies: Vec::new(), times: None }
    }

    /// Adds a reply.
    pub fn reply(mut self, reply: Reply) -> Self {
        self.replies.push(reply);
        self
    }

    /// Answers this many requests, then leaves them to the rules that follow.
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Answers one request, then leaves them to the rules that follow.
    pub fn once(self) -> Self {
        self.times(1)
    }
}

impl Conversation {
    /// A conversation for the requests that fit; add replies to it.
    pub fn when(when: When) -> Self {
        Conversation { when, replies: Vec::new() }
    }

    /// Adds the reply to the next turn.
    pub fn reply(mut self, reply: Reply) -> Self {
        self.replies.push(reply);
        self
    }
}

impl Script {
    /// A script without rules; add some to it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers every request with `reply`.
    pub fn always(reply: Reply) -> Self {
        Self::new().rule(Rule::when(When::any()).reply(reply))
    }

    /// Answers the request that holds `n` assistant messages with reply `n`.
    pub fn turns(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies = replies.into_iter().collect();
        Self::new().conversation(Conversation { when: When::any(), replies })
    }

    /// Plays an agent that looks around in whatever folder it runs in, at a pace people can
    /// follow.
    #[expect(clippy::expect_used, reason = "the file is built in, and a test parses it")]
    pub fn demo() -> Self {
        Self::parse(include_str!("../../scripts/demo.toml")).expect("the demo script parses")
    }

    /// Adds a rule.
    pub fn rule(self, rule: Rule) -> Self {
        let label = format!("rule {}", self.entries.len() + 1);
        self.labelled_rule(label, rule)
    }

    /// Adds a conversation.
    pub fn conversation(self, conversation: Conversation) -> Self {
        let label = format!("conversation {}", self.entries.len() + 1);
        self.labelled_conversation(label, conversation)
    }

    /// Keeps no requests: for benchmarks, and for servers that run for long.
    pub fn without_capture(mut self) -> Self {
        self.capture = Capture::Discard;
        self
    }

    /// Caches no prompts: every token of every request counts as read anew.
    pub fn without_cache(mut self) -> Self {
        self.cache = CacheSetting::Off;
        self
    }

    /// Checks nothing, and reads only the number of turns from a request of the Anthropic wire, so
    /// that it counts as a handful of tokens. For benchmarks that measure clients, while their
    /// server uses the same processors. Rules must fit every request, and replies must not quote
    /// it.
    pub fn turns_only(mut self) -> Self {
        self.reading = Reading::Turns;
        self
    }

    /// Caches prompts of this many tokens and more, in place of 1024.
    pub fn cache_minimum(mut self, tokens: u64) -> Self {
        self.cache = CacheSetting::From(tokens);
        self
    }

    /// Answers requests without a key too, as a local server does.
    pub fn without_keys(mut self) -> Self {
        self.keys = KeyCheck::Skipped;
        self
    }

    /// Accepts this many requests at a time. Further ones get a 429, with `retry-after` if
    /// [`Script::retry_after`] is set.
    pub fn at_once(mut self, requests: usize) -> Self {
        self.capacity.at_once = Some(requests);
        self
    }

    /// Sets `retry-after` for requests beyond [`Script::at_once`].
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.capacity.retry_after = Some(wait);
        self
    }

    /// Accepts this many requests in each span of this length. The headers of the wire say how many
    /// are left. Further ones get a 429 that says when the next span begins.
    pub fn requests_per(mut self, requests: u64, span: Duration) -> Self {
        self.capacity.per_span = Some((requests, span));
        self
    }

    /// Adds a model to those that are listed. Models that rules ask for are listed anyway.
    pub fn model(mut self, name: &str) -> Self {
        self.models.push(name.to_owned());
        self
    }

    fn labelled_rule(mut self, label: String, rule: Rule) -> Self {
        let answers = Answers::InOrder { replies: rule.replies, times: rule.times };
        self.entries.push(Entry { label, when: rule.when, answers });
        self
    }

    fn labelled_conversation(mut self, label: String, conversation: Conversation) -> Self {
        let answers = Answers::ByTurn(conversation.replies);
        self.entries.push(Entry { label, when: conversation.when, answers });
        self
    }
}

impl Entry {
    pub(crate) fn replies(&self) -> &[Reply] {
        match &self.answers {
            Answers::InOrder { replies, .. } | Answers::ByTurn(replies) => replies,
        }
    }

    fn replies_mut(&mut self) -> &mut [Reply] {
        match &mut self.answers {
            Answers::InOrder { replies, .. } | Answers::ByTurn(replies) => replies,
        }
    }

    /// Why it cannot be played if only this much of requests is read.
    fn problem(&self, reading: Reading) -> Option<String> {
        if let Some(problem) = self.when.problem() {
            return Some(problem);
        }
        let quotes = || self.replies().iter().flat_map(Reply::blocks).any(Block::quotes);
        if reading == Reading::Turns && (!self.when.is_any() || quotes()) {
            let why = "it needs the words of requests, of which only the turns are counted; leave \
                       out `turns_only`, or its conditions and what its replies quote";
            return Some(why.to_owned());
        }
        if self.replies().is_empty() {
            return Some("it has no reply; give it at least one".to_owned());
        }
        let conditional = !self.when.is_any() || matches!(self.answers, Answers::ByTurn(_));
        let mut faults = self.replies().iter().filter_map(Reply::faulty);
        if let Some(unread) = faults.find(|fault| fault.is_unread()).filter(|_| conditional) {
            return Some(format!(
                "fault {} comes before the request is read; put it into a rule without conditions, \
                 before all others",
                unread.name()
            ));
        }
        self.replies().iter().find_map(Reply::problem)
    }
}
