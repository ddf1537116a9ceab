//! The facts in a run's log, in the past tense, and the envelope they are stored in.

use crate::{
    AgentSpec, Announce, Caller, Changes, ChildStarted, Cleanup, Extra, Forked, Grant, Limit,
    Limits, Message, Outcome, Parent, RunId, Seq, Usage,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

mod approvals;
mod calls;

pub use approvals::*;
pub use calls::*;

/// The version of the stored form that this build writes, and the newest it reads.
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
    /// A fact in a run's log.
    ///
    /// The owner of a run (the process that executes it) appends most of them. Anyone may append a
    /// message, a cancel request, a pause, an approval, the result of a pending call, or that a child
    /// was started.
    pub enum Event {
        /// The run exists. Always the first event, and only the first.
        RunStarted(Arc<RunStarted>) = "run_started",
        /// Someone said something to the agent.
        MessageReceived(MessageReceived) = "message_received",
        /// A request to the model is about to be made.
        ModelCalled(ModelCalled) = "model_called",
        /// The model answered.
        ModelReplied(Box<ModelReplied>) = "model_replied",
        /// The call to the model ended without an answer.
        ModelFailed(ModelFailed) = "model_failed",
        /// A person is to decide about a call.
        ApprovalAsked(Box<ApprovalAsked>) = "approval_asked",
        /// A person decided about a call.
        ApprovalGiven(ApprovalGiven) = "approval_given",
        /// A tool is about to run.
        ToolStarted(ToolStarted) = "tool_started",
        /// A tool answered that its result will be appended later.
        ToolPending(ToolPending) = "tool_pending",
        /// A call has its result.
        ToolFinished(ToolFinished) = "tool_finished",
        /// Another run was set to work on behalf of this one.
        ChildStarted(Box<ChildStarted>) = "child_started",
        /// So much time has been spent; recorded when that matters.
        TimePassed(TimePassed) = "time_passed",
        /// The beginning of the transcript was replaced by a summary.
        Compacted(Box<Compacted>) = "compacted",
        /// Someone asked to stop.
        CancelRequested(CancelRequested) = "cancel_requested",
        /// Someone asked to pause: nothing more is begun.
        Paused(Paused) = "paused",
        /// Someone asked to go on after a pause.
        Resumed(Resumed) = "resumed",
        /// The run ended. Only a message, which reopens it unless it is kept, or `Archived` may
        /// follow.
        RunFinished(RunFinished) = "run_finished",
        /// The run was put away. Nothing follows.
        Archived(Archived) = "archived",
    }
}

impl From<RunStarted> for Event {
    fn from(started: RunStarted) -> Self {
        Event::RunStarted(Arc::new(started))
    }
}

/// How a run began. What it may do and with which model is decided here, once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The definition it started with, whole.
    pub agent: AgentSpec,
    /// The model it was resolved to, as `vendor/name`.
    pub model: String,
    /// The models to go on with, in this order, when that one cannot be had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<String>,
    /// What it may do.
    pub grant: Grant,
    /// How far it may go.
    #[serde(default)]
    pub limits: Limits,
    /// Ends each turn waiting for the next message instead of finishing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub session: bool,
    /// A second start with the same key finds this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Where it stands in its tree; a run without is a root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// What it is about, in a few words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// What it took over from another run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<Box<Forked>>,
    /// Who waits for a slot with a higher one goes first.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub priority: i32,
    /// What becomes of its log once its end has been told.
    #[serde(default, skip_serializing_if = "Cleanup::is_keep")]
    pub cleanup: Cleanup,
    /// The folder that brought its agent along and was trusted with it when the run started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Folders that were trusted for this run and those below it only, by the hash of what each
    /// brought along.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub trusted: BTreeMap<String, String>,
    /// How long after its end it is archived at the latest, if whoever started it says so.
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
    /// A root run of `agent` with `model` that may do what `grant` says, without limits.
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
            archive_after_ms: None,
            extra: Extra::default(),
        }
    }
}

/// Who says something to the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sender {
    /// A person or the host program.
    User,
    /// The runtime: the agent nears this limit.
    LimitNear(Limit),
    /// The runtime: the answer does not follow the schema it was asked for.
    Misfit,
    /// Another run, which waits for what comes of it.
    Run(Caller),
    /// The runtime: a run below this one has ended.
    Child(Announced),
}

/// The end of a run, on its way to its parent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Announced {
    /// Which run.
    pub run: RunId,
    /// How it is told.
    pub announce: Announce,
    /// Its own parent had ended: it comes to the nearest run above that has not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inherited: bool,
    /// Nobody above was left who had not ended: it is told when this run is next set to work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// The time at work of whoever set it to work, as far as this run's own work reaches.
    #[serde(default, skip_serializing_if = "is_none_at_all")]
    pub worked_ms: u64,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Someone said something to the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageReceived {
    /// Who.
    pub from: Sender,
    /// What.
    pub message: Message,
    /// It is told when the present turn ends, not before the next step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub later: bool,
    /// What is to change before it is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Box<Asks>>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What is to change before a message is answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asks {
    /// The model from now on, as `vendor/name`, in place of the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The conversation so far is replaced by a summary first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compact: bool,
    /// How far the run may go with this message, within its own limits. Heard where the message sets
    /// it to work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl MessageReceived {
    /// A text by a person or the host program.
    pub fn user(text: impl Into<String>) -> Self {
        MessageReceived {
            from: Sender::User,
            message: Message::user(text),
            later: false,
            asks: None,
            extra: Extra::default(),
        }
    }

    /// True when it sets nobody to work: an announcement that is only recorded.
    pub fn is_only_recorded(&self) -> bool {
        matches!(&self.from, Sender::Child(told) if told.kept || told.announce == Announce::Silent)
    }
}

/// So much time has been spent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimePassed {
    /// Time at work so far, in milliseconds.
    pub worked_ms: u64,
    /// For a while no child has ended whose result is told together with others': those there are,
    /// are told now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quiet: bool,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The beginning of the transcript was replaced by a summary. The log keeps it all the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compacted {
    /// The replaced prefix: every message before the reply recorded at this position. If no
    /// reply has it, every message up to here.
    pub before: Seq,
    /// What stands in its place.
    pub summary: String,
    /// The model wrote the summary; otherwise it was put together from extracts.
    pub by_model: bool,
    /// What it cost, or may have cost at most. Limits count this.
    #[serde(default)]
    pub usage: Usage,
    /// What of that is not known to have been spent. Logs from before this was recorded do not say
    /// it: then all of it, unless the model wrote the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncertain: Option<Usage>,
    /// Time at work so far, in milliseconds.
    pub worked_ms: u64,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a cancel request stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelScope {
    /// The whole run.
    #[default]
    Run,
    /// What a session does now; it then waits for the next message.
    Turn,
}

/// Someone asked to stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelRequested {
    /// Who, in words for people.
    pub by: String,
    /// What to stop.
    #[serde(default)]
    pub scope: CancelScope,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Someone asked to pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paused {
    /// Who, in words for people.
    pub by: String,
    /// A person interrupted the process that worked on the run (Ctrl-C), rather than asked for a
    /// pause.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Someone asked to go on after a pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resumed {
    /// Who, in words for people.
    pub by: String,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFinished {
    /// How.
    pub outcome: Outcome,
    /// Time at work in all, in milliseconds.
    pub worked_ms: u64,
    /// What it has changed in a worktree of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Box<Changes>>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The run was put away.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Archived {
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// An event in its place: what a log is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which run.
    pub run: RunId,
    /// Where in its log.
    pub seq: Seq,
    /// When it was stored: milliseconds since 1970 by the store's clock. For people only;
    /// nothing is decided by it.
    pub at: u64,
    /// The version of the stored form.
    pub version: u32,
    /// The fact.
    pub event: Event,
    /// Fields of a later version, in a record that was exported.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A stored event that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Written by a newer Posse.
    #[error(
        "event {seq} of run {run} was written by a newer version of posse (format {found}, this one reads up to {SCHEMA_VERSION}); update posse to read it"
    )]
    Newer {
        /// Which run.
        run: RunId,
        /// Which event.
        seq: Seq,
        /// The version found.
        found: u32,
    },
    /// Not an event.
    #[error("event {seq} of run {run} cannot be read")]
    Malformed {
        /// Which run.
        run: RunId,
        /// Which event.
        seq: Seq,
        /// Why.
        source: serde_json::Error,
    },
}

impl Record {
    /// Reads a stored event.
    ///
    /// # Errors
    /// When it was written by a newer version, or is not an event.
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

    /// Puts a field that no version knows into `value` and every object in it. What is between a
    /// call's braces is the model's; and the one field of a remedy and its like says which it is.
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
