//! Asking a person: who is asked about what, what an answer does, what survives.

use crate::bench::{Bench, eventually, within};
use posse::RunRights;
use posse::protocol::{Approval, CancelScope, Effect, Ending, Event, Mode, ToolOutput, ToolSpec};
use posse::{Answer, Question, RunHandle, RunSpec, RuntimeConfig, Tool, ToolContext};
use posse_testkit::{Conversation, Reply, Script, When};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Notify;

fn write(name: &str) -> serde_json::Value {
    json!({"file_path": name, "content": "written"})
}

/// A run that wants to look at one file and to write two, in one reply.
fn script() -> Script {
    let reply = Reply::empty()
        .and_tool_call("Read", json!({"file_path": "a.txt"}))
        .and_tool_call("Write", write("b.txt"))
        .and_tool_call("Write", write("c.txt"));
    let conversation = Conversation::when(When::any().first_user_contains("go"));
    Script::new().conversation(conversation.reply(reply).reply(Reply::text("done")))
}

async fn asking() -> (Bench, RunHandle, Vec<Question>) {
    let bench = Bench::new(script()).await;
    bench.write("a.txt", "read");
    let spec = RunSpec {
        rights: RunRights { mode: Some(Mode::Ask), attended: true, ..RunRights::default() },
        ..bench.spec("go")
    };
    let run = bench.runtime.start(spec).await.unwrap();
    eventually(async || bench.runtime.questions(None).await.unwrap().len() == 2).await;
    eventually(async || bench.runtime.executing() == 0).await;
    let questions = bench.runtime.questions(None).await.unwrap();
    (bench, run, questions)
}

async fn decide(bench: &Bench, question: &Question, answer: Approval) {
    let asked = &question.asked;
    let decided =
        bench.runtime.decide(question.run, asked.call.clone(), &asked.digest, answer, "me").await;
    decided.unwrap();
}

#[tokio::test]
async fn a_run_that_asks_waits_without_a_slot_and_shows_who_asks_and_what_will_change() {
    let (bench, run, questions) = asking().await;
    let row = bench.runtime.find(&run.id().to_string()).await.unwrap();
    assert_eq!((row.state.asks, row.status), (2, posse::Status::Waiting));
    let first = &questions[0];
    assert_eq!((first.run, first.agent.as_str(), first.depth), (run.id(), "general-purpose", 0));
    assert_eq!(first.asked.tool, "Write");
    assert!(first.asked.shown.contains("b.txt") && first.asked.shown.contains("+written"));
    assert!(!bench.work().join("b.txt").exists());
    let finished = bench.log(run.id()).await;
    let read = finished.iter().filter(|it| matches!(it.event, Event::ToolFinished(_))).count();
    assert_eq!(read, 1, "what needs nobody's word has run");
}

#[tokio::test]
async fn what_is_allowed_runs_what_is_denied_does_not_and_no_result_is_lost() {
    let (bench, run, questions) = asking().await;
    decide(&bench, &questions[0], Approval::Once).await;
    decide(&bench, &questions[1], Approval::Denied { reason: "not c".into() }).await;
    assert_eq!(within(run.outcome()).await.unwrap().text(), "done");
    assert!(bench.work().join("b.txt").exists());
    assert!(!bench.work().join("c.txt").exists());
    let results = bench.fake.last_request().tool_results();
    assert_eq!(results.len(), 3);
    assert!(results[0].contains("read") && results[2].contains("not c"), "{results:?}");
    let log = bench.log(run.id()).await;
    let refused = log.iter().any(|record| match &record.event {
        Event::ToolFinished(finished) => finished.ending == Ending::Refused,
        _ => false,
    });
    assert!(refused);
}

#[tokio::test]
async fn a_question_survives_a_restart_and_is_answered_after_it() {
    let (mut bench, run, _) = asking().await;
    bench.runtime.shutdown().await;
    bench.reopen().await;
    let questions = bench.runtime.questions(Some(run.id())).await.unwrap();
    assert_eq!(questions.len(), 2);
    for question in &questions {
        decide(&bench, question, Approval::Once).await;
    }
    let run = bench.runtime.handle(run.id());
    assert_eq!(within(run.outcome()).await.unwrap().text(), "done");
    assert!(bench.work().join("c.txt").exists());
    assert!(bench.runtime.questions(None).await.unwrap().is_empty());
}

#[tokio::test]
async fn a33_an_answer_fits_the_call_it_was_given_for_and_no_other() {
    let (bench, _, questions) = asking().await;
    let [first, second] = &questions[..] else { panic!("{questions:?}") };
    let (call, digest) = (first.asked.call.clone(), &second.asked.digest);
    let other = bench.runtime.decide(first.run, call.clone(), digest, Approval::Once, "me").await;
    assert!(other.unwrap_err().to_string().contains("does not ask"));
    decide(&bench, first, Approval::Denied { reason: String::new() }).await;
    let again =
        bench.runtime.decide(first.run, call, &first.asked.digest, Approval::Once, "you").await;
    assert!(again.is_err(), "one answer counts");
    assert!(!bench.work().join("b.txt").exists());
}

#[tokio::test]
async fn what_is_allowed_for_the_run_is_not_asked_again_in_it() {
    let reply = |name: &str| Reply::tool_call("Write", write(name));
    let conversation = Conversation::when(When::any())
        .reply(reply("b.txt"))
        .reply(reply("c.txt"))
        .reply(Reply::text("done"));
    let bench = Bench::new(Script::new().conversation(conversation)).await;
    let spec = || RunSpec {
        rights: RunRights { mode: Some(Mode::Ask), attended: true, ..RunRights::default() },
        ..bench.spec("go")
    };
    let run = bench.runtime.start(spec()).await.unwrap();
    eventually(async || bench.runtime.questions(None).await.unwrap().len() == 1).await;
    let question = bench.runtime.questions(None).await.unwrap().remove(0);
    let rule = question.asked.rule.clone().expect("there is a rule for it");
    decide(&bench, &question, Approval::Run { rule: rule.replace("b.txt", "*") }).await;
    assert_eq!(within(run.outcome()).await.unwrap().text(), "done");
    assert!(bench.work().join("c.txt").exists());
    // Another run asks again, about files that are not there yet.
    for name in ["b.txt", "c.txt"] {
        std::fs::remove_file(bench.work().join(name)).unwrap();
    }
    bench.runtime.start(spec()).await.unwrap();
    eventually(async || bench.runtime.questions(None).await.unwrap().len() == 1).await;
}

#[tokio::test]
async fn a_rule_that_does_not_mean_the_call_is_refused_and_not_stored() {
    let (bench, run, questions) = asking().await;
    let asked = &questions[0].asked;
    let answer = async |rule: &str| {
        let answer = Approval::Always { rule: rule.to_owned() };
        bench.runtime.decide(run.id(), asked.call.clone(), &asked.digest, answer, "me").await
    };
    for (rule, why) in [
        ("Nope((", "invalid rule"),
        ("", "invalid rule"),
        ("Bash(rm:*)", "does not mean the call of `Write`"),
        ("Write(elsewhere/**)", "does not mean the call of `Write`"),
    ] {
        let told = answer(rule).await.unwrap_err();
        assert!(matches!(&told, posse::Error::InvalidInput(it) if it.contains(why)), "{told}");
    }
    let log = bench.log(run.id()).await;
    assert!(!log.iter().any(|it| matches!(it.event, Event::ApprovalGiven(_))));
    answer("Write(*.txt)").await.unwrap();
}

#[tokio::test]
async fn where_nobody_can_be_asked_it_is_refused_and_said_so() {
    let bench = Bench::new(script()).await;
    bench.write("a.txt", "read");
    let spec = RunSpec {
        rights: RunRights { mode: Some(Mode::Ask), ..RunRights::default() },
        ..bench.spec("go")
    };
    let run = bench.runtime.start(spec).await.unwrap();
    assert_eq!(within(run.outcome()).await.unwrap().text(), "done");
    assert!(!bench.work().join("b.txt").exists() && !bench.work().join("c.txt").exists());
    let results = bench.fake.last_request().tool_results();
    assert!(results[1].contains("no person can answer"), "{results:?}");
}

#[tokio::test]
async fn cancelling_a_run_that_asks_ends_it_and_takes_the_question_back() {
    let (bench, run, questions) = asking().await;
    bench.runtime.cancel(run.id(), "me", posse::protocol::CancelScope::Run).await.unwrap();
    let outcome = within(run.outcome()).await.unwrap();
    assert_eq!(outcome.kind(), "cancelled");
    assert!(bench.runtime.questions(None).await.unwrap().is_empty());
    let asked = &questions[0].asked;
    let late = bench
        .runtime
        .decide(run.id(), asked.call.clone(), &asked.digest, Approval::Once, "me")
        .await;
    assert!(late.is_err());
    assert!(!bench.work().join("b.txt").exists());
}

#[tokio::test]
async fn nobody_is_asked_about_a_write_that_is_refused_whatever_they_say() {
    let elsewhere = tempfile::tempdir().unwrap();
    let outside = elsewhere.path().join("a.txt");
    let paths = [outside.to_str().unwrap(), "../b.txt", "link/c.txt", "inside/d.txt"];
    let mut reply = Reply::empty();
    for path in paths {
        reply = reply.and_tool_call("Write", write(path));
    }
    let edit = json!({"file_path": paths[0], "old_string": "a", "new_string": "b"});
    let reply = reply.and_tool_call("Edit", edit);
    let bench = Bench::new(Script::turns([reply, Reply::text("done")])).await;
    std::os::unix::fs::symlink(elsewhere.path(), bench.work().join("link")).unwrap();
    let spec = RunSpec {
        rights: RunRights { mode: Some(Mode::Ask), attended: true, ..RunRights::default() },
        ..bench.spec("go")
    };
    let run = bench.runtime.start(spec).await.unwrap();
    bench.until(&run, |event| matches!(event, Event::ApprovalAsked(_))).await;
    let questions = bench.runtime.questions(None).await.unwrap();
    let asked: Vec<&str> = questions.iter().map(|it| it.asked.shown.as_str()).collect();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(asked[0].contains("creates inside/d.txt"), "{asked:?}");
    decide(&bench, &questions[0], Approval::Once).await;
    assert_eq!(within(run.outcome()).await.unwrap().text(), "done");
    assert!(bench.work().join("inside/d.txt").exists() && !outside.exists());
    let log = bench.log(run.id()).await;
    let refused = log.iter().filter_map(|record| match &record.event {
        Event::ToolFinished(it) if it.ending == Ending::Refused => Some(it.output.joined_text()),
        _ => None,
    });
    let refused: Vec<String> = refused.collect();
    assert_eq!(refused.len(), 4, "{refused:?}");
    assert!(refused.iter().all(|why| why.contains("outside of")), "{refused:?}");
}

#[tokio::test]
async fn nobody_is_asked_about_a_change_of_a_file_that_the_run_does_not_know() {
    let edit = || {
        let input = json!({"file_path": "a.txt", "old_string": "old", "new_string": "new"});
        Reply::tool_call("Edit", input)
    };
    let read = json!({"file_path": "a.txt"});
    let both = Reply::tool_call("Read", read).and_tool_call(
        "Edit",
        json!({"file_path": "a.txt", "old_string": "old", "new_string": "new"}),
    );
    let replies = [
        edit(),
        Reply::tool_call("Write", json!({"file_path": "a.txt", "content": "new"})),
        both,
        Reply::text("done"),
    ];
    let bench = Bench::new(Script::turns(replies)).await;
    std::fs::write(bench.work().join("a.txt"), "old").unwrap();
    let spec = RunSpec {
        rights: RunRights { mode: Some(Mode::Ask), attended: true, ..RunRights::default() },
        ..bench.spec("go")
    };
    let run = bench.runtime.start(spec).await.unwrap();
    bench.until(&run, |event| matches!(event, Event::ApprovalAsked(_))).await;
    let log = bench.log(run.id()).await;
    let refused = log.iter().filter_map(|record| match &record.event {
        Event::ToolFinished(it) if it.ending == Ending::Refused => Some(it.output.joined_text()),
        _ => None,
    });
    let refused: Vec<String> = refused.collect();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused.iter().all(|why| why.contains("has not been read")), "{refused:?}");
    let questions = bench.runtime.questions(None).await.unwrap();
    assert_eq!(questions.len(), 1, "the call before it reads the file");
    decide(&bench, &questions[0], Approval::Once).await;
    assert_eq!(within(run.outcome()).await.unwrap().text(), "done");
    assert_eq!(std::fs::read_to_string(bench.work().join("a.txt")).unwrap(), "new");
}

/// A tool of the host that says in some way what a call would do.
struct Foretelling {
    spec: ToolSpec,
    way: &'static str,
    begun: Arc<Notify>,
}

#[async_trait::async_trait]
impl Tool for Foretelling {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn preview(&self, _: &Value) -> Option<String> {
        self.begun.notify_one();
        match self.way {
            "panics" => panic!("no idea"),
            "floods" => Some("x".repeat(3_000_000)),
            "hangs" => std::future::pending().await,
            other => Some(other.to_owned()),
        }
    }

    async fn call(&self, _: Value, _: &ToolContext) -> Answer {
        ToolOutput::text("changed").into()
    }
}

/// A run that wants to call a tool that says in this way what the call would do.
async fn foretelling(way: &'static str) -> (Bench, RunHandle, Arc<Notify>) {
    let spec = ToolSpec::new("change", "of the host", Effect::Write, json!({"type": "object"}));
    let begun = Arc::new(Notify::new());
    let tool = Arc::new(Foretelling { spec, way, begun: begun.clone() });
    let call = Reply::tool_call("change", json!({"what": "the world"}));
    let adjust = move |config: RuntimeConfig| {
        let mut config = {
            let mut config: RuntimeConfig = config;
            config.tools = vec![tool];
            config
        };
        config.permissions.rules.ask.push("change".to_owned());
        config
    };
    let bench = Bench::with(Script::turns([call, Reply::text("done")]), adjust).await;
    let spec = RunSpec {
        rights: RunRights { mode: Some(Mode::Ask), attended: true, ..RunRights::default() },
        ..bench.spec("go")
    };
    let run = bench.runtime.start(spec).await.unwrap();
    (bench, run, begun)
}

#[tokio::test]
async fn where_a_tool_fails_to_say_what_it_would_do_its_arguments_are_shown() {
    for way in ["plain words", "panics", "floods", "hangs"] {
        let (bench, run, _) = foretelling(way).await;
        bench.until(&run, |event| matches!(event, Event::ApprovalAsked(_))).await;
        let question = bench.runtime.questions(None).await.unwrap().remove(0);
        let shown = match way {
            "plain words" => way,
            _ => "{\n  \"what\": \"the world\"\n}",
        };
        assert_eq!(question.asked.shown, shown, "{way}");
        decide(&bench, &question, Approval::Once).await;
        assert_eq!(within(run.outcome()).await.unwrap().text(), "done", "{way}");
    }
}

#[tokio::test]
async fn a_run_is_cancelled_while_a_tool_thinks_about_what_it_would_do() {
    let (bench, run, begun) = foretelling("hangs").await;
    within(begun.notified()).await;
    let kinds = bench.kinds(run.id()).await;
    assert_eq!(kinds.last(), Some(&"model_replied"), "what asked for the call is stored");
    bench.runtime.cancel(run.id(), "me", CancelScope::Run).await.unwrap();
    let outcome = within(run.outcome()).await.unwrap();
    assert_eq!(outcome.kind(), "cancelled", "{outcome}");
    assert!(!bench.kinds(run.id()).await.contains(&"approval_asked"), "nobody is asked any more");
}
