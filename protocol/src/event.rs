//! Events in the log of a run, named in the past tense, and the records that store them.

use crate::{
    AgentSpec, Announce, Caller, Changes, ChildStarted, Cleanup, Extra, Forked, Grant,
    GuidanceFile, Limit, Limits, Message, Outcome, Parent, RunId, Seq, Usage,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

mod approvals;
mod calls;

pub use approvals::*;
pub use calls::*;

/// The version of the stored format that this build writes, and the newest that it reads.
///
/// Raise it when a build of before would misread what this one writes: a new kind of event, or a
/// field that changes what others mean. A field that an older build may pass over needs no new
/// version, because every struct keeps unknown fields.
pub const SCHEMA_VERSION: u32 = 3;

/// Makes the enum and its names from one table.
macro_rules! events {
    (
        $(#[$about:meta])+
        pub enum Event { $($(#[$doc:meta])+ $name:ident($fact:ty) = $kind:literal,)+ }
    ) => {
        $(#[$about])+
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "type")]
        pub enum Event {
            $($(#[$doc])+ #[serde(rename = $kind)] $name($fact),)+
        }

        impl Event {
            /// The names of all variants as they are stored.
            pub const KINDS: &'static [&'static str] = &[$($kind),+];

            /// The name of the variant as it is stored.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Event::$name(_) => $kind,)+
                }
            }
        }
    };
}

events! {
    /// An event in the log of a run.
    ///
    /// The worker that owns the run appends most of them. Other processes may append a message, a cancel
    /// request, a pause or its end, an approval, the result of a pending call, the start of a child, the
    /// archiving of the run, or time that passed while the run was idle.
    pub enum Event {
        /// The run exists. This is the first event, and occurs only once.
        RunStarted(Arc<RunStarted>) = "run_started",
        /// The agent got a message.
        MessageReceived(MessageReceived) = "message_received",
        /// Posse is about to call the model.
        ModelCalled(ModelCalled) = "model_called",
        /// The model replied.
        ModelReplied(Box<ModelReplied>) = "model_replied",
        /// A model call ended without a reply.
        ModelFailed(ModelFailed) = "model_failed",
        /// A person has to decide about a call.
        ApprovalAsked(Box<ApprovalAsked>) = "approval_asked",
        /// A person decided about a call.
        ApprovalGiven(ApprovalGiven) = "approval_given",
        /// A tool is about to run.
        ToolStarted(ToolStarted) = "tool_started",
        /// A tool call is pending: its result will be appended later.
        ToolPending(ToolPending) = "tool_pending",
        /// A tool call has its result.
        ToolFinished(ToolFinished) = "tool_finished",
        /// This run started a child, or gave an existing run new work.
        ChildStarted(Box<ChildStarted>) = "child_started",
        /// Time passed. Recorded only when it matters.
        TimePassed(TimePassed) = "time_passed",
        /// A summary replaced the beginning of the transcript.
        Compacted(Box<Compacted>) = "compacted",
        /// A person, a program or another run asked to cancel.
        CancelRequested(CancelRequested) = "cancel_requested",
        /// A person or program asked to pause. The run starts nothing new.
        Paused(Paused) = "paused",
        /// A person or program asked to continue after a pause.
        Resumed(Resumed) = "resumed",
        /// The run ended. Only `Archived` or a message may follow. The message reopens the run, unless
        /// it is only recorded.
        RunFinished(RunFinished) = "run_finished",
        /// The run was archived. No event follows.
        Archived(Archived) = "archived",
    }
}

impl From<RunStarted> for Event {
    fn from(started: RunStarted) -> Self {
        Event::RunStarted(Arc::new(started))
    }
}

/// How a run began. This fixes what it may do and its model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The full definition of its agent.
    pub agent: AgentSpec,
    /// Its model, as `vendor/name`.
    pub model: String,
    /// The fallback models, in the order in which they are tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<String>,
    /// What it may do.
    pub grant: Grant,
    /// Its limits.
    #[serde(default)]
    pub limits: Limits,
    /// The run waits for the next message after each turn instead of finishing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub session: bool,
    /// A second start with the same key follows this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its position in its tree; `None` for a root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// Its task in a few words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// What it took over from another run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<Box<Forked>>,
    /// Its priority in the queue for slots. Higher goes first.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub priority: i32,
    /// What happens to its log after its outcome was announced.
    #[serde(default, skip_serializing_if = "Cleanup::is_keep")]
    pub cleanup: Cleanup,
    /// The trusted folder that its agent comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Folders that are trusted only for this run and its subagents, each with the hash of its
    /// trusted content.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub trusted: BTreeMap<String, String>,
    /// The guidance files that are part of its system prompt, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guidance: Vec<GuidanceFile>,
    /// How long after its end it is archived at the latest, if its start set that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive_after_ms: Option<u64>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

fn is_usual(priority: &i32) -> bool {
    *priority == 0
}

fn is_none_at_all(number: &u64) -> bool {
    *number == 0
}

impl RunStarted {
    /// A root of `agent` with `model` and `grant`, without limits.
    pub fn new(agent: AgentSpec, model: impl Into<String>, grant: Grant) -> Self {
        RunStarted {
            agent,
            model: model.into(),
            fallbacks: Vec::new(),
            grant,
            limits: Limits::default(),
            session: false,
            key: None,
            parent: None,
            label: String::new(),
            forked: None,
            priority: 0,
            cleanup: Cleanup::Keep,
            project: None,
            trusted: BTreeMap::new(),
            guidance: Vec::new(),
            archive_after_ms: None,
            extra: Extra::default(),
        }
    }
}

/// The sender of a message to the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sender {
    /// A person or the host program.
    User,
    /// Posse: the agent is near this limit.
    LimitNear(Limit),
    /// Posse: the answer does not follow its schema.
    Misfit,
    /// Posse: something happened to the checkout that the run works in.
    Workspace,
    /// Another run, which waits for the outcome.
    Run(Caller),
    /// Posse: a child or another subagent has ended.
    Child(Announced),
}

/// The announcement of a run to its parent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Announced {
    /// The run that ended.
    pub run: RunId,
    /// How it is announced.
    pub announce: Announce,
    /// The run's parent had ended, so the announcement went to the nearest run above that had not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inherited: bool,
    /// All runs above had ended, or the run was cancelled and its parent is a session, which must not
    /// wake for that. The message is delivered when this run next gets work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// The parent's time at work when it started the run, plus the time that the run took.
    #[serde(default, skip_serializing_if = "is_none_at_all")]
    pub worked_ms: u64,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The agent got a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageReceived {
    /// The sender.
    pub from: Sender,
    /// The message.
    pub message: Message,
    /// It is delivered when the present turn ends, not before the next step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub later: bool,
    /// Changes to make before the agent answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Box<MessageOptions>>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Changes to make before the agent answers a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MessageOptions {
    /// The model from now on, as `vendor/name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Replace the conversation so far by a summary.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compact: bool,
    /// Limits for the work on this message, within the limits of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl MessageReceived {
    /// A text from a person or the host program.
    pub fn user(text: impl Into<String>) -> Self {
        MessageReceived {
            from: Sender::User,
            message: Message::user(text),
            later: false,
            asks: None,
            extra: Extra::default(),
        }
    }

    /// True when it wakes no run: an announcement that is only recorded.
    pub fn is_only_recorded(&self) -> bool {
        matches!(&self.from, Sender::Child(told) if told.kept || told.announce == Announce::Silent)
    }
}

/// Time passed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimePassed {
    /// Time at work so far, in milliseconds.
    pub worked_ms: u64,
    /// No child of a `collect` announcement has ended for a while, so the collected results are
    /// delivered now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quiet: bool,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A summary replaced the beginning of the transcript. The log still has all of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compacted {
    /// The position of the first reply that stays: the summary replaces every message before it. If
    /// no reply has this position, it replaces every message up to here.
    pub before: Seq,
    /// The summary.
    pub summary: String,
    /// The model wrote the summary. Otherwise it consists of extracts.
    pub by_model: bool,
    /// The most that it may have cost. Limits count this.
    #[serde(default)]
    pub usage: Usage,
    /// The part of `usage` that is uncertain. Old logs do not record it: then all of it is
    /// uncertain, unless the model wrote the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncertain: Option<Usage>,
    /// Time at work so far, in milliseconds.
    pub worked_ms: u64,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a cancel request cancels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelScope {
    /// The whole run.
    #[default]
    Run,
    /// The present turn of a session, which then waits for the next message.
    Turn,
}

/// A person, a program or another run asked to cancel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelRequested {
    /// Who asked, for people to read.
    pub by: String,
    /// What to cancel.
    #[serde(default)]
    pub scope: CancelScope,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A person or program asked to pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paused {
    /// Who asked, for people to read.
    pub by: String,
    /// A person interrupted the process that executed the run (Ctrl-C), and did not ask for a pause.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A person or program asked to continue after a pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resumed {
    /// Who asked, for people to read.
    pub by: String,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFinished {
    /// The outcome.
    pub outcome: Outcome,
    /// Time at work in all, in milliseconds.
    pub worked_ms: u64,
    /// The changes in its worktree, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Box<Changes>>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The run was archived.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Archived {
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// An event with its run, position and time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The run.
    pub run: RunId,
    /// The position in its log.
    pub seq: Seq,
    /// When it was stored: milliseconds since 1970 by the store's clock. For people only; no
    /// decision depends on it.
    pub at: u64,
    /// The version of the stored format.
    pub version: u32,
    /// The event.
    pub event: Event,
    /// Fields of a later version, in an exported record.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The error for a stored event that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A newer Posse wrote it.
    #[error(
        "event {seq} of run {run} was written by a newer version of posse (format {found}, this one reads up to {SCHEMA_VERSION}); update posse to read it"
    )]
    Newer {
        /// The run.
        run: RunId,
        /// The position of the event.
        seq: Seq,
        /// Its version.
        found: u32,
    },
    /// It is not an event.
    #[error("event {seq} of run {run} cannot be read")]
    Malformed {
        /// The run.
        run: RunId,
        /// The position of the event.
        seq: Seq,
        /// The error.
        source: serde_json::Error,
    },
}

impl Record {
    /// Decodes a stored event.
    ///
    /// # Errors
    /// If a newer version wrote it, or if it is not an event.
    pub fn decode(
        run: RunId,
        seq: Seq,
        at: u64,
        version: u32,
        body: &str,
    ) -> Result<Self, DecodeError> {
        if version > SCHEMA_VERSION {
            return Err(DecodeError::Newer { run, seq, found: version });
        }
        let event = serde_json::from_str(body).map_err(|source| DecodeError::Malformed {
            run,
            seq,
            source,
        })?;
        Ok(Record { run, seq, at, version, event, extra: Extra::default() })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// One event of each kind, with every field and every struct that is ever stored.
    const EVENTS: [&str; 27] = [
        r#"{"type":"run_started","agent":{"name":"code","limits":{"turns":3,"wall_ms":9}},
            "model":"anthropic/x","grant":{"tools":["Read"],"workspace":"/w"},"limits":{"cost":5}}"#,
        r#"{"type":"message_received","from":"user",
            "message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}"#,
        r#"{"type":"model_called","reserved":{"input_tokens":1,"output_tokens":2,"cost":3},
            "purpose":"turn"}"#,
        r#"{"type":"model_replied","seen":3,"message":{"role":"assistant","wire":"anthropic","parts":[
            {"type":"text","text":"hi"},{"type":"thinking","text":"","signature":"x"},
            {"type":"tool_call","id":"c","name":"Read","input":{"b":1,"a":2}}]},"stop":"end",
            "usage":{"input_tokens":1,"cache_read_tokens":4,"output_tokens":2,"cost":3},
            "rate_limits":{"requests_left":1},"worked_ms":9}"#,
        r#"{"type":"model_failed","kind":"other","reason":"no","usage":{"input_tokens":0,
            "output_tokens":0,"cost":0},"remedy":{"retry":{"after_ms":1}},"worked_ms":9}"#,
        r#"{"type":"model_failed","kind":"other","reason":"no","usage":{"input_tokens":0,
            "output_tokens":0,"cost":0},"remedy":{"fallback":{"model":"a/b"}},"worked_ms":9}"#,
        r#"{"type":"tool_started","call":"c","tool":"Read","repeatable":true}"#,
        r#"{"type":"tool_pending","call":"c","waits_for":"a person"}"#,
        r#"{"type":"approval_asked","call":"c","tool":"Bash","digest":"d","shown":"ls","by":"mode",
            "rule":"Bash(ls:*)"}"#,
        r#"{"type":"approval_given","call":"c","digest":"d","answer":"once","by":"me"}"#,
        r#"{"type":"run_started","agent":{"name":"code","limits":{},"isolation":"worktree"},"model":"a/x",
            "grant":{"tools":["Read"],"workspace":"/w","scopes":[["Read(a)"]],"permissions":{
            "deny":["Bash"]},"mode":"ask","reach":"workspace-write","network":["a.org"],
            "attended":true,"worktree":{"repository":"/r","data":"/r/.git","origin":"/r",
            "folder":"/f","base":"b","branch":"posse/x"}},"limits":{}}"#,
        r#"{"type":"tool_finished","call":"c","output":{"parts":[{"type":"tool_result","call":"d",
            "parts":[],"is_error":true}],"is_error":true,"seen":[{"path":"a","hash":"h"}]},"ending":"returned","took_ms":0,
            "worked_ms":0}"#,
        r#"{"type":"run_started","agent":{"name":"code","disallowed_tools":["Bash"],"max_depth":2,
            "agents":["plan"],"context":{"fork_turns":3},"limits":{}},"model":"a/x",
            "grant":{"tools":["Task"],"workspace":"/w","scratch":"/s","hand_on":["Read"],"delegation":{
            "strategy":"tool_call","depth":1,"agents":[{"name":"plan","description":"d"}]}},
            "limits":{},"parent":{"run":"00000000000000000000000002","call":"c",
            "ancestors":["00000000000000000000000001","00000000000000000000000002"]},
            "label":"l","forked":{"from":"00000000000000000000000002","at":4,"messages":[],
            "seen":[{"path":"a","hash":"h"}],"guise":{"system":"s","tools":["Task"]}}}"#,
        r#"{"type":"message_received","from":{"run":{"run":"00000000000000000000000002","call":"c"}},
            "message":{"role":"user","parts":[]}}"#,
        r#"{"type":"child_started","run":"00000000000000000000000003","call":"c","agent":"code",
            "label":"l","resumed":true}"#,
        r#"{"type":"time_passed","worked_ms":1}"#,
        r#"{"type":"compacted","before":2,"summary":"s","by_model":true,"usage":{"input_tokens":0,
            "output_tokens":0,"cost":0},"worked_ms":9}"#,
        r#"{"type":"cancel_requested","by":"me","scope":"turn"}"#,
        r#"{"type":"run_finished","outcome":{"kind":"completed","output":"o"},"worked_ms":9}"#,
        r#"{"type":"run_finished","outcome":{"kind":"stopped","limit":"turns","partial":"p"},
            "worked_ms":9}"#,
        r#"{"type":"archived"}"#,
        r#"{"type":"run_started","agent":{"name":"code","limits":{},"budget":{"turns":4}},
            "model":"a/x","grant":{"tools":["Read"],"workspace":"/w","budget":{"cost":5,
            "children":2}},"limits":{},"parent":{"run":"00000000000000000000000002",
            "announce":"collect","account":"00000000000000000000000001",
            "ancestors":["00000000000000000000000001","00000000000000000000000002"]},
            "priority":-3,"cleanup":"delete"}"#,
        r#"{"type":"message_received","from":{"child":{"run":"00000000000000000000000003",
            "announce":"steer","inherited":true,"kept":true}},"message":{"role":"user","parts":[]},"later":true}"#,
        r#"{"type":"time_passed","worked_ms":1,"quiet":true}"#,
        r#"{"type":"paused","by":"me"}"#,
        r#"{"type":"paused","by":"me","interrupted":true}"#,
        r#"{"type":"resumed","by":"me"}"#,
    ];

    /// Puts a field that no version knows into `value` and every object in it, except the arguments
    /// of calls and enum variants with one field.
    fn add_unknown_fields(value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(add_unknown_fields),
            Value::Object(fields) => {
                let inner = fields.iter_mut().filter(|(name, _)| *name != "input");
                inner.for_each(|(_, field)| add_unknown_fields(field));
                let tags = ["retry", "fallback", "fork_turns", "run", "child"];
                if !(fields.len() == 1 && tags.iter().any(|tag| fields.contains_key(*tag))) {
                    fields.insert("unheard_of".to_owned(), json!({"a": [1, null]}));
                }
            }
            _ => {}
        }
    }

    fn record_of(event: &str) -> Value {
        let event: Value = serde_json::from_str(event).unwrap();
        json!({"run": RunId::from_u128(7), "seq": 1, "at": 0, "version": 1, "event": event})
    }

    /// Reads `before`, writes it back, and expects the same document.
    fn check_round_trip(before: &Value) {
        let record: Record = serde_json::from_value(before.clone()).unwrap();
        assert_eq!(serde_json::to_value(&record).unwrap(), *before);
    }

    #[test]
    fn unknown_fields_survive_at_every_level() {
        for event in EVENTS {
            let mut record = record_of(event);
            check_round_trip(&record);
            add_unknown_fields(&mut record);
            check_round_trip(&record);
        }
        for outcome in [
            Outcome::completed("o"),
            Outcome::failed("r", "p"),
            Outcome::cancelled("me", "p"),
            Outcome::timed_out(5, "p"),
            Outcome::stopped(Limit::Cost, "p"),
        ] {
            let mut outcome = serde_json::to_value(outcome).unwrap();
            add_unknown_fields(&mut outcome);
            let back: Outcome = serde_json::from_value(outcome.clone()).unwrap();
            assert_eq!(serde_json::to_value(&back).unwrap(), outcome);
        }
    }

    #[test]
    fn a_sum_of_usage_claims_no_unknown_field() {
        let one: Usage = serde_json::from_value(json!({"input_tokens": 2, "later": 1})).unwrap();
        assert!(!one.extra.is_empty());
        let sum = one.clone() + &one;
        assert_eq!((sum.input_tokens, sum.extra.is_empty()), (4, true));
    }

    #[test]
    fn a_newer_version_is_refused_by_name() {
        let error = Record::decode(RunId::from_u128(1), Seq(4), 0, SCHEMA_VERSION + 1, "{}")
            .unwrap_err()
            .to_string();
        assert!(error.contains("newer version of posse"), "{error}");
        assert!(error.contains("event 4"), "{error}");
    }

    #[test]
    fn an_unknown_kind_is_malformed() {
        let error = Record::decode(RunId::from_u128(1), Seq(2), 0, 1, r#"{"type":"sang"}"#);
        assert!(matches!(error, Err(DecodeError::Malformed { .. })));
    }

    /// What the versions of the stored form before this one knew cannot grow: an older build takes an
    /// event that it does not know for damage, unless the version tells it that it is too old.
    #[test]
    fn a_new_event_has_a_new_version() {
        const OF_VERSION_3: [&str; 18] = [
            "run_started",
            "message_received",
            "model_called",
            "model_replied",
            "model_failed",
            "approval_asked",
            "approval_given",
            "tool_started",
            "tool_pending",
            "tool_finished",
            "child_started",
            "time_passed",
            "compacted",
            "cancel_requested",
            "paused",
            "resumed",
            "run_finished",
            "archived",
        ];
        for kind in OF_VERSION_3 {
            assert!(Event::KINDS.contains(&kind), "logs have `{kind}`");
        }
        let has_more = Event::KINDS.len() > OF_VERSION_3.len();
        assert!(!has_more || SCHEMA_VERSION > 3, "raise SCHEMA_VERSION for {:?}", Event::KINDS);
    }
}
