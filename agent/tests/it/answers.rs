//! Answers: what a run ends with, and what becomes of one that has to follow a schema.

use crate::world::{Dice, World};
use async_trait::async_trait;
use posse_agent::protocol::*;
use posse_agent::{
    Agent, DeltaSink, Ended, Expect, Journal, JournalError, Model, ModelError, ModelInfo, Patience,
    Reply, Request, Step, Toolbox, check_schema, run,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// Says one thing after the other: which, goes by how often it has spoken in the request, so that
/// a request made again is answered the same.
pub struct Speaker {
    info: ModelInfo,
    says: Vec<String>,
    requests: Mutex<Vec<Request>>,
}

#[async_trait]
impl Model for Speaker {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn call(
        &self,
        request: Request,
        _deltas: DeltaSink<'_>,
        _cancel: &CancellationToken,
    ) -> Result<Reply, ModelError> {
        let spoken = request.messages.iter().filter(|message| message.role == Role::Assistant);
        let says = self.says[spoken.count().min(self.says.len() - 1)].clone();
        self.requests.lock().unwrap().push(request);
        Ok(Reply {
            message: Message::new(Role::Assistant, vec![Part::text(says)]),
            stop: Stop::End,
            usage: Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() },
            request_id: None,
            service_tier: None,
            rate_limits: None,
        })
    }
}

/// A log in memory.
pub struct Paper(Mutex<Vec<Record>>);

impl Paper {
    pub fn new(records: Vec<Record>) -> Self {
        Paper(Mutex::new(records))
    }
}

#[async_trait]
impl Journal for Paper {
    async fn record(&self, events: Vec<Event>, expect: Expect) -> Result<Seq, JournalError> {
        let mut records = self.0.lock().unwrap();
        let last = Seq(records.len() as u64);
        if matches!(expect, Expect::Last(expected) if expected != last) {
            return Err(JournalError::Moved);
        }
        for event in events {
            let (run, seq) = (RunId::from_u128(1), Seq(records.len() as u64 + 1));
            let extra = Extra::default();
            records.push(Record { run, seq, at: 0, version: 1, event, extra });
        }
        Ok(last.next())
    }

    async fn read_after(&self, seq: Seq) -> Result<Vec<Record>, JournalError> {
        Ok(self.0.lock().unwrap()[seq.0 as usize..].to_vec())
    }

    fn tail(&self) -> Seq {
        Seq(self.0.lock().unwrap().len() as u64)
    }

    async fn changed(&self, _seq: Seq) {
        std::future::pending().await
    }
}

fn verdict() -> Value {
    json!({
        "type": "object",
        "properties": {"verdict": {"enum": ["yes", "no"]}, "why": {"type": "string"}},
        "required": ["verdict"],
        "additionalProperties": false,
    })
}

/// A run whose model says `says`.
pub struct Case {
    speaker: Arc<Speaker>,
    pub agent: Agent,
    pub log: World,
}

impl Case {
    pub fn new(session: bool, schema: Option<Value>, limits: Limits, says: &[&str]) -> Self {
        let log = World::new(session, limits.clone());
        let info = ModelInfo { context_window: 100_000, ..log.bounds.model.clone() };
        let says = says.iter().map(|text| (*text).to_owned()).collect();
        let speaker = Arc::new(Speaker { info, says, requests: Mutex::default() });
        let agent = Agent {
            run: RunId::from_u128(1),
            system: "Judge.".into(),
            model: speaker.clone(),
            fallbacks: Vec::new(),
            patience: Patience::default(),
            effort: None,
            output_schema: schema.map(Arc::new),
            tools: Toolbox::default(),
            offered: Arc::default(),
            grant: Grant::default(),
            guard: Arc::new(posse_agent::Unguarded),
            limits,
            deltas: Arc::new(|_| {}),
            cut: Default::default(),
        };
        Case { speaker, agent, log }
    }

    /// Runs it. Returns how it ended and the whole log.
    async fn run(&self) -> (Ended, Vec<Record>) {
        self.run_from(self.log.records.clone()).await
    }

    /// Runs it from where `records` end.
    async fn run_from(&self, records: Vec<Record>) -> (Ended, Vec<Record>) {
        let paper = Paper::new(records);
        let ended = run(&self.agent, &paper, &CancellationToken::new()).await.unwrap();
        (ended, paper.0.into_inner().unwrap())
    }
}

/// What the agent was told of its answers.
fn misfits(records: &[Record]) -> Vec<String> {
    let told = records.iter().filter_map(|record| match &record.event {
        Event::MessageReceived(MessageReceived { from: Sender::Misfit, message, .. }) => {
            Some(message.text())
        }
        _ => None,
    });
    told.collect()
}

/// Runs an agent that says `says` and has to follow the schema of a verdict.
async fn judged(says: &[&str]) -> (Outcome, Vec<String>) {
    let case = Case::new(false, Some(verdict()), Limits::default(), says);
    let (ended, records) = case.run().await;
    match ended {
        Ended::Finished(outcome) => (outcome, misfits(&records)),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_answer_that_fits_is_the_json_alone() {
    for says in [
        r#"{"verdict": "yes"}"#,
        " \n{\"verdict\": \"yes\"}\n ",
        "```json\n{\"verdict\": \"yes\"}\n```",
        "\n```\n\n{\"verdict\": \"yes\"}\n\n```  \n",
    ] {
        let (outcome, misfits) = judged(&[says]).await;
        assert_eq!(outcome, Outcome::completed(r#"{"verdict": "yes"}"#), "{says}");
        assert_eq!(misfits, [""; 0]);
    }
}

#[tokio::test]
async fn nothing_else_is_guessed() {
    for (says, problem) in [
        ("", "the answer is empty"),
        ("Yes.", "not JSON alone"),
        ("Here it is: {\"verdict\": \"yes\"}", "not JSON alone"),
        ("{\"verdict\": \"yes\"} {\"verdict\": \"no\"}", "not JSON alone"),
        ("```json\n{\"verdict\": \"yes\"}\n``` I am sure.", "not JSON alone"),
        ("```yaml\n{\"verdict\": \"yes\"}\n```", "not JSON alone"),
        ("{\"verdict\": \"yes\"", "not JSON alone"),
        ("```", "not JSON alone"),
        ("\"yes\"", "at the top: \"yes\" is not of type \"object\""),
    ] {
        let (outcome, misfits) = judged(&[says, r#"{"verdict": "no"}"#]).await;
        assert_eq!(outcome, Outcome::completed(r#"{"verdict": "no"}"#), "{says}");
        assert_eq!(misfits.len(), 1);
        assert!(misfits[0].contains(problem), "{says}: {}", misfits[0]);
    }
}

#[tokio::test]
async fn the_agent_is_told_where_its_answer_does_not_fit_and_has_two_more_tries() {
    let wrong = r#"{"verdict": "maybe", "why": 7}"#;
    let right = r#"{"verdict": "no"}"#;
    let case = Case::new(false, Some(verdict()), Limits::default(), &[wrong, "No.", right]);
    let (ended, records) = case.run().await;
    assert_eq!(ended, Ended::Finished(Outcome::completed(right)));
    let told = misfits(&records);
    assert_eq!(told.len(), 2);
    for expected in ["/verdict: \"maybe\" is not one of", "/why: 7 is not of type \"string\""] {
        assert!(told[0].contains(expected), "{}", told[0]);
    }
    let requests = case.speaker.requests.lock().unwrap();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[1].messages.last().map(|message| message.text()), Some(told[0].clone()));
}

#[tokio::test]
async fn after_three_answers_that_do_not_fit_the_run_has_failed_and_keeps_the_last() {
    let (outcome, misfits) = judged(&["one", "two", r#"{"verdict": "three"}"#]).await;
    let Outcome::Failed { reason, partial, .. } = outcome else { panic!("{outcome:?}") };
    assert!(reason.contains("/verdict: \"three\" is not one of \"yes\" or \"no\""), "{reason}");
    assert!(reason.contains("after 2 corrections"), "{reason}");
    assert_eq!(partial, r#"{"verdict": "three"}"#);
    assert_eq!(misfits.len(), 2);
}

#[tokio::test]
async fn a_crash_at_any_point_changes_nothing() {
    for says in
        [["a", "b", r#"{"verdict": "no"}"#], ["a", r#"{"verdict": "yes"}"#, "c"], ["a", "b", "c"]]
    {
        let case = Case::new(false, Some(verdict()), Limits::default(), &says);
        let (expected, whole) = case.run().await;
        for end in case.log.records.len()..=whole.len() {
            let (ended, records) = case.run_from(whole[..end].to_vec()).await;
            assert_eq!(ended, expected, "died after {end} of {}", whole.len());
            assert_eq!(misfits(&records), misfits(&whole));
        }
    }
}

#[tokio::test]
async fn a_correction_is_a_turn_so_limits_hold() {
    let limits = Limits { turns: Some(2), ..Limits::default() };
    let case = Case::new(false, Some(verdict()), limits, &["never"]);
    let (ended, records) = case.run().await;
    assert_eq!(ended, Ended::Finished(Outcome::stopped(Limit::Turns, "never")));
    let called = records.iter().filter(|record| matches!(record.event, Event::ModelCalled(_)));
    assert_eq!(called.count(), 2);
}

#[tokio::test]
async fn a_reopened_run_has_its_tries_again() {
    let fits = r#"{"verdict": "no"}"#;
    let says = ["a", "b", "c", "d", "e", fits];
    let mut case = Case::new(false, Some(verdict()), Limits::default(), &says);
    let (ended, records) = case.run().await;
    assert!(matches!(ended, Ended::Finished(Outcome::Failed { .. })), "{ended:?}");
    case.log.records = records;
    case.log.say("once more");
    let (ended, _) = case.run().await;
    assert_eq!(ended, Ended::Finished(Outcome::completed(fits)));
}

#[tokio::test]
async fn a_session_waits_whatever_it_said() {
    let case = Case::new(true, Some(verdict()), Limits::default(), &["Hello."]);
    let (ended, records) = case.run().await;
    assert!(matches!(ended, Ended::Waiting { calls: 0, .. }), "{ended:?}");
    assert_eq!(misfits(&records), [""; 0]);
}

#[tokio::test]
async fn an_empty_answer_without_a_schema_is_an_answer() {
    for says in ["", " \n"] {
        let case = Case::new(false, None, Limits::default(), &[says]);
        let (ended, _) = case.run().await;
        assert_eq!(ended, Ended::Finished(Outcome::completed("")));
    }
}

#[tokio::test]
async fn an_empty_answer_to_a_second_task_is_not_the_answer_to_the_first() {
    let mut case = Case::new(false, None, Limits::default(), &["forty-two", ""]);
    let (ended, records) = case.run().await;
    assert_eq!(ended, Ended::Finished(Outcome::completed("forty-two")));
    case.log.records = records;
    case.log.say("and now something else");
    let (ended, _) = case.run().await;
    assert_eq!(ended, Ended::Finished(Outcome::completed("")));
}

#[tokio::test]
async fn many_problems_are_told_shortly() {
    let schema = json!({"type": "array", "items": {"type": "string", "maxLength": 3}});
    let long = "x".repeat(5_000);
    let says = serde_json::to_string(&vec![long; 40]).unwrap();
    let case = Case::new(false, Some(schema), Limits::default(), &[&says]);
    let (ended, records) = case.run().await;
    let told = &misfits(&records)[0];
    assert!(told.len() < 1_000, "{told}");
    assert!(told.contains("- /4: ") && told.contains("- and 35 more"), "{told}");
    let Ended::Finished(Outcome::Failed { reason, .. }) = ended else { panic!("{ended:?}") };
    assert!(reason.len() < 1_000, "{reason}");
}

/// The runtime refuses such a schema before anything starts; a log may hold one all the same.
#[tokio::test]
async fn a_schema_that_cannot_be_used_fails_the_run_and_keeps_the_answer() {
    let case = Case::new(false, Some(json!({"type": 5})), Limits::default(), &["the answer"]);
    let (ended, records) = case.run().await;
    let Ended::Finished(Outcome::Failed { reason, partial, .. }) = ended else {
        panic!("{ended:?}")
    };
    assert!(reason.contains("cannot be used: /type: "), "{reason}");
    assert_eq!(partial, "the answer");
    assert_eq!(misfits(&records), [""; 0]);
}

#[test]
fn a_schema_that_cannot_be_used_is_refused_with_its_reason() {
    for (schema, reason) in [
        (json!(null), "a JSON Schema is an object"),
        (json!(true), "a JSON Schema is an object"),
        (json!({"type": "strin"}), "/type: \"strin\""),
        (json!({"properties": {"a": {"type": 5}}}), "/properties/a/type: 5"),
        (json!({"pattern": "("}), "/pattern: "),
        (json!({"$schema": "https://example.com/mine"}), "https://example.com/mine"),
        (json!({"$ref": "https://example.com/schema"}), "refers to `https://example.com/schema`"),
        (json!({"items": [{"$ref": "file:///etc/passwd"}]}), "refers to `file:///etc/passwd`"),
        (json!({"$ref": "other.json"}), "refers to `other.json`"),
        (json!({"$ref": "#/nope"}), "refers to `#/nope`, and there is no such part in it"),
        (json!({"$ref": "#name"}), "refers to `#name`; write the way to the part"),
        (json!({"$ref": "#/$defs/none", "$defs": {}}), "refers to `#/$defs/none`"),
        (json!({"$dynamicRef": "#node"}), "refers to `#node`"),
        (json!({"not": {"$id": "https://example.com/x"}}), "refers to `https://example.com/x`"),
    ] {
        let refused = check_schema(&schema).unwrap_err();
        assert!(refused.contains(reason), "{schema}: {refused}");
    }
}

#[test]
fn a_schema_of_references_that_multiply_is_refused_and_one_that_leads_to_itself_is_not() {
    let mut defs = json!({"d0": {"type": "integer"}});
    for level in 1..40 {
        let below = json!({"$ref": format!("#/$defs/d{}", level - 1)});
        defs[format!("d{level}")] = json!({"allOf": [below, below]});
    }
    let top = json!({"$ref": "#/$defs/d39"});
    for schema in [
        json!({"$ref": "#/$defs/d39", "$defs": defs}),
        json!({"properties": {"$defs": {"items": top}}, "$defs": defs}),
    ] {
        let refused = check_schema(&schema).unwrap_err();
        assert!(refused.contains("more than 10000 places"), "{refused}");
    }
    let many: serde_json::Map<String, Value> =
        (0..6_000).map(|index| (index.to_string(), json!({"items": {}}))).collect();
    check_schema(&json!({"$ref": "#/$defs/1", "$defs": many})).unwrap();
    let tree = json!({"type": "object", "properties": {"children": {"items": {"$ref": "#"}}}});
    check_schema(&tree).unwrap();
    check_schema(&json!({"enum": (0..20_000).collect::<Vec<_>>()})).unwrap();
    let draft = "http://json-schema.org/draft-07/schema#";
    check_schema(&json!({"$schema": draft, "definitions": {"a": {}}, "$ref": "#/definitions/a"}))
        .unwrap();
}

/// `next_step` knows nothing of schemas: it would finish, and the loop judges.
#[test]
fn what_is_next_after_a_correction_is_a_turn() {
    let mut world = World::new(false, Limits::default());
    let seen = world.transcript.seq();
    world.model_reply(seen, &mut Dice::new(&[]));
    assert!(matches!(world.next(), Step::Finish(Outcome::Completed { .. })), "{:?}", world.next());
    world.push(Event::MessageReceived(MessageReceived {
        from: Sender::Misfit,
        message: Message::user("not so"),
        later: false,
        asks: None,
        extra: Extra::default(),
    }));
    assert!(matches!(world.next(), Step::CallModel { .. }), "{:?}", world.next());
}
