//! Calling tools: what runs beside what, who may call what, and what becomes of failures.

use crate::bench::{Bench, eventually, within};
use posse::protocol::{CallId, Effect, Ending, Event, Outcome, ToolOutput, ToolSpec};
use posse::{Answer, Runtime, RuntimeConfig, Tool, ToolContext};
use posse_testkit::{Reply, Script};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Barrier;

type Act = Box<dyn Fn(Value) -> Answer + Send + Sync>;

/// A tool of the host, made of a closure and a barrier.
struct HostTool {
    spec: ToolSpec,
    act: Act,
    meet: Option<Barrier>,
    running: AtomicUsize,
    peak: AtomicUsize,
}

fn host_tool(name: &str, effect: Effect, meet: Option<usize>, act: Act) -> Arc<HostTool> {
    let spec = ToolSpec::new(name, "of the host", effect, json!({"type": "object"}));
    let meet = meet.map(Barrier::new);
    Arc::new(HostTool { spec, act, meet, running: AtomicUsize::new(0), peak: AtomicUsize::new(0) })
}

/// A tool of the host that says back what it is called with.
pub fn echo(name: &str) -> Arc<dyn Tool> {
    let echo: Act = Box::new(|input| ToolOutput::text(input.to_string()).into());
    host_tool(name, Effect::Read, None, echo)
}

#[async_trait::async_trait]
impl Tool for HostTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: Value, _: &ToolContext) -> Answer {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.peak.fetch_max(running, Ordering::SeqCst);
        if let Some(barrier) = &self.meet {
            barrier.wait().await;
        }
        let answer = (self.act)(input);
        self.running.fetch_sub(1, Ordering::SeqCst);
        answer
    }
}

fn calls(name: &str, count: usize) -> Script {
    let reply = (0..count).fold(Reply::text("calling"), |reply, index| {
        reply.and_tool_call(name, json!({"index": index}))
    });
    Script::turns([reply, Reply::text("done")])
}

fn with(tools: Vec<Arc<HostTool>>) -> impl FnOnce(RuntimeConfig) -> RuntimeConfig {
    let tools = tools.into_iter().map(|tool| tool as Arc<dyn Tool>).collect();
    move |config| {
        let mut config: RuntimeConfig = config;
        config.tools = tools;
        config
    }
}

#[tokio::test]
async fn read_only_calls_of_one_reply_run_side_by_side() {
    let echo: Act = Box::new(|input| ToolOutput::text(input.to_string()).into());
    // The barrier opens only when all four stand at it.
    let tool = host_tool("look", Effect::Read, Some(4), echo);
    let bench = Bench::with(calls("look", 4), with(vec![tool.clone()])).await;
    let run = bench.start("go").await;
    assert!(within(run.outcome()).await.unwrap().is_completed());
    assert_eq!(tool.peak.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn other_calls_run_one_after_the_other_in_order() {
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = order.clone();
    let act: Act = Box::new(move |input| {
        seen.lock().unwrap().push(input["index"].as_u64().unwrap());
        ToolOutput::text("ok").into()
    });
    let tool = host_tool("change", Effect::Write, None, act);
    let bench = Bench::with(calls("change", 5), with(vec![tool.clone()])).await;
    let run = bench.start("go").await;
    assert!(within(run.outcome()).await.unwrap().is_completed());
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
    assert_eq!(tool.peak.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_pending_call_holds_no_slot_and_goes_on_when_it_is_answered() {
    let act: Act = Box::new(|_| Answer::Pending { waits_for: "a person".into() });
    let tool = host_tool("ask", Effect::Delegate, None, act);
    let bench = Bench::with(calls("ask", 2), with(vec![tool])).await;
    let run = bench.start("go").await;
    bench.until(&run, |event| matches!(event, Event::ToolPending(_))).await;
    eventually(async || bench.runtime.executing() == 0).await;
    let row = bench.runtime.find(&run.id().to_string()).await.unwrap();
    assert_eq!(row.status, posse::Status::Waiting);
    for (index, text) in ["late", "later"].into_iter().enumerate() {
        let call = CallId(format!("toolu_0_{index}"));
        bench.runtime.answer(run.id(), call, ToolOutput::text(text)).await.unwrap();
    }
    assert!(within(run.outcome()).await.unwrap().is_completed());
    let sent = bench.fake.requests()[1].body["messages"][2].to_string();
    assert!(sent.contains("late") && sent.contains("later"), "{sent}");
}

#[tokio::test]
async fn of_a_result_of_any_size_the_ends_are_stored_and_sent() {
    let flood = || ToolOutput::text(format!("begin{}end", "é".repeat(2_500_000)));
    let now = host_tool("now", Effect::Read, None, Box::new(move |_| flood().into()));
    let later: Act = Box::new(|_| Answer::Pending { waits_for: "a person".into() });
    let later = host_tool("later", Effect::Delegate, None, later);
    let both = Reply::tool_call("now", json!({})).and_tool_call("later", json!({}));
    let script = Script::turns([both, Reply::text("done")]);
    let bench = Bench::with(script, with(vec![now, later])).await;
    let run = bench.start("go").await;
    bench.until(&run, |event| matches!(event, Event::ToolPending(_))).await;
    bench.runtime.answer(run.id(), CallId("toolu_0_1".into()), flood()).await.unwrap();
    assert!(within(run.outcome()).await.unwrap().is_completed());
    let results = bench.fake.requests()[1].tool_results();
    assert_eq!(results.len(), 2);
    for text in results {
        assert!(text.len() <= 120 << 10 && text.len() > 100 << 10, "{}", text.len());
        assert!(text.starts_with("begin") && text.ends_with("end"));
        assert!(text.contains(" bytes left out; call again for a part of it]"));
    }
    let log = serde_json::to_string(&bench.log(run.id()).await).unwrap();
    assert!(log.len() < 300 << 10, "{}", log.len());
}

/// A run whose two calls of `ask` pend.
async fn two_pending() -> (Bench, posse::RunHandle) {
    let act: Act = Box::new(|_| Answer::Pending { waits_for: "a person".into() });
    let tool = host_tool("ask", Effect::Delegate, None, act);
    let bench = Bench::with(calls("ask", 2), with(vec![tool])).await;
    let run = bench.start("go").await;
    bench.until(&run, |event| matches!(event, Event::ToolPending(_))).await;
    (bench, run)
}

fn call(index: usize) -> CallId {
    CallId(format!("toolu_0_{index}"))
}

async fn results_of(bench: &Bench, run: &posse::RunHandle, call: &CallId) -> usize {
    let log = bench.log(run.id()).await;
    let result = |event: &Event| matches!(event, Event::ToolFinished(it) if it.call == *call);
    log.iter().filter(|record| result(&record.event)).count()
}

#[track_caller]
fn check_invalid(answer: Result<(), posse::Error>, parts: &[&str]) {
    match answer {
        Err(posse::Error::InvalidInput(text)) => {
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn only_an_open_call_can_be_answered() {
    let (bench, run) = two_pending().await;
    let answer = async |call: CallId| {
        bench.runtime.answer(run.id(), call, ToolOutput::text("an answer")).await
    };
    check_invalid(answer(CallId("made up".into())).await, &["`made up`", "does not make it"]);
    answer(call(0)).await.unwrap();
    check_invalid(answer(call(0)).await, &["`toolu_0_0`", "has its result already"]);
    answer(call(1)).await.unwrap();
    assert!(within(run.outcome()).await.unwrap().is_completed());
    check_invalid(answer(call(1)).await, &["`toolu_0_1`", "has its result already"]);
    assert_eq!(bench.kinds(run.id()).await.last(), Some(&"run_finished"), "nothing was woken");
    let nobody = bench.runtime.answer(posse::RunId::new(), call(0), ToolOutput::text("x")).await;
    assert!(matches!(nobody, Err(posse::Error::Store(_))), "{nobody:?}");
}

#[tokio::test]
async fn of_many_answers_at_once_one_is_stored() {
    let (bench, run) = two_pending().await;
    let second = posse::Runtime::open(bench.config.clone()).await.unwrap();
    let answers = (0..20).map(|index| {
        let runtime = if index % 2 == 0 { &bench.runtime } else { &second };
        runtime.answer(run.id(), call(0), ToolOutput::text(format!("answer {index}")))
    });
    let answers = futures_util::future::join_all(answers).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    for refused in answers.into_iter().filter(Result::is_err) {
        check_invalid(refused, &["has its result already"]);
    }
    assert_eq!(results_of(&bench, &run, &call(0)).await, 1);
    second.shutdown().await;
}

#[tokio::test]
async fn an_answer_may_come_before_its_call_is_known_to_wait() {
    let act: Act = Box::new(|_| Answer::Pending { waits_for: "a person".into() });
    // The call goes on when the test stands at the barrier too.
    let tool = host_tool("ask", Effect::Delegate, Some(2), act);
    let bench = Bench::with(calls("ask", 1), with(vec![tool.clone()])).await;
    let run = bench.start("go").await;
    bench.until(&run, |event| matches!(event, Event::ToolStarted(_))).await;
    bench.runtime.answer(run.id(), call(0), ToolOutput::text("early")).await.unwrap();
    tool.meet.as_ref().unwrap().wait().await;
    assert!(within(run.outcome()).await.unwrap().is_completed());
    assert_eq!(results_of(&bench, &run, &call(0)).await, 1);
    let sent = bench.fake.requests()[1].body["messages"][2].to_string();
    assert!(sent.contains("early"), "{sent}");
}

/// One call that is refused: the model is told, the run goes on.
async fn check_refused(reply: Reply, agent: &str, expected: &str) {
    let bench = Bench::new(Script::turns([reply, Reply::text("fine without")])).await;
    let spec = posse::RunSpec { agent: agent.parse().unwrap(), ..bench.spec("go") };
    let run = bench.runtime.start(spec).await.unwrap();
    assert_eq!(within(run.outcome()).await.unwrap(), Outcome::completed("fine without"));
    let log = bench.log(run.id()).await;
    let refused = log.iter().find_map(|record| match &record.event {
        Event::ToolFinished(finished) => Some(finished.clone()),
        _ => None,
    });
    let refused = refused.unwrap();
    assert_eq!(refused.ending, Ending::Refused);
    assert!(refused.output.is_error);
    let text = refused.output.joined_text();
    assert!(text.contains(expected), "{text}");
    assert!(!log.iter().any(|record| matches!(record.event, Event::ToolStarted(_))));
}

#[tokio::test]
async fn a_tool_outside_the_grant_is_refused_and_told() {
    let write = Reply::tool_call("Write", json!({"file_path": "x", "content": "y"}));
    check_refused(write, "explore", "`Write` is outside what this agent was granted").await;
}

#[tokio::test]
async fn an_alias_does_not_get_around_the_grant() {
    let write = Reply::tool_call("write_file", json!({"file_path": "x", "content": "y"}));
    check_refused(write, "explore", "`Write` is outside what this agent was granted").await;
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_refused_and_told() {
    check_refused(Reply::tool_call("Fly", json!({})), "explore", "no tool named `Fly`").await;
}

#[tokio::test]
async fn a_panicking_tool_is_an_error_the_model_sees() {
    let act: Act = Box::new(|_| panic!("on\npurpose with key-84613-secret {}", "x".repeat(300)));
    let tool = host_tool("trip", Effect::Read, None, act);
    let adjust = |config| {
        let mut config: RuntimeConfig = with(vec![tool])(config);
        config.permissions.redactor = posse::redact::Redactor::new(["key-84613-secret"]);
        config
    };
    let bench = Bench::with(calls("trip", 1), adjust).await;
    let run = bench.start("go").await;
    assert!(within(run.outcome()).await.unwrap().is_completed());
    let sent = bench.fake.requests()[1].body["messages"][2].to_string();
    let said = "`trip` failed inside itself (on purpose with [redacted] xxx";
    assert!(sent.contains(said) && sent.contains("xxx); its effect is not known"), "{sent}");
    assert!(sent.matches('x').count() < 200, "{sent}");
    assert!(sent.contains("\"is_error\":true"), "{sent}");
}

#[tokio::test]
async fn host_tools_that_no_model_could_be_offered_are_refused_by_name() {
    let bench = Bench::new(Script::always(Reply::text("done"))).await;
    let tool = |name: &str| host_tool(name, Effect::Read, None, Box::new(|_| panic!("called")));
    let with_schema = |schema: Value| {
        let mut tool = Arc::into_inner(tool("own")).unwrap();
        tool.spec.schema = schema.into();
        Arc::new(tool)
    };
    let long = "n".repeat(65);
    for (tools, says) in [
        (vec![tool("Read")], "`Read` has the name of one that comes with Posse"),
        (vec![tool("Task")], "`Task` has the name of one"),
        (vec![tool("own"), tool("own")], "`own` is there twice"),
        (vec![tool("my tool!")], "`my tool!` must have a name of"),
        (vec![tool("")], "1 to 64 letters"),
        (vec![tool(&long)], "1 to 64 letters"),
        (vec![with_schema(json!("text"))], "`own` has a schema that is not of type `object`"),
        (vec![with_schema(json!({"type": "array"}))], "not of type `object`"),
        (vec![with_schema(json!({"type": "object", "required": 5}))], "cannot be used"),
    ] {
        let refused = Runtime::open(with(tools)(bench.config.clone())).await;
        let why = refused.err().unwrap().to_string();
        assert!(why.contains(says), "{why}");
    }
}

#[tokio::test]
async fn the_model_is_offered_what_is_granted_and_nothing_else() {
    let bench = Bench::new(Script::always(Reply::text("done"))).await;
    let spec = posse::RunSpec { agent: "explore".parse().unwrap(), ..bench.spec("go") };
    within(bench.runtime.start(spec).await.unwrap().outcome()).await.unwrap();
    let request = &bench.fake.requests()[0].body;
    let offered: Vec<&str> =
        request["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(offered, ["Read", "Glob", "Grep", "List"]);
}
