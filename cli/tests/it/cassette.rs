//! `--record` and `--replay`: a run is played again elsewhere, without a key and without a model.

use crate::tree::{child, task};
use crate::world::{Exit, World, bash, mode, started};
use posse_testkit::{Conversation, Gate, Reply, Rule, Script, When, Wire};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Long enough to be a secret, and like no word.
const KEY: &str = "key-0123456789abcdef";

/// Looks into the file that it is asked about and into the folder, is overloaded once, answers.
fn look() -> Script {
    let busy = Rule::when(When::any().turn(1)).reply(Reply::error(529, "come back later"));
    let read = json!({"file_path": "{{last_user}}"});
    let conversation = Conversation::when(When::any())
        .reply(Reply::text("I read {{last_user}}.").and_tool_call("Read", read))
        .reply(bash("pwd; cat notes.txt"))
        .reply(Reply::text("It says {{last_tool_result}}"));
    Script::new().rule(busy.once()).conversation(conversation)
}

/// A world with notes to look into, whose model speaks as `script` says.
async fn world(script: Script, notes: &str) -> World {
    let world = World::new(script).await;
    world.write("notes.txt", notes);
    world
}

/// Another world, whose model must not be asked.
async fn elsewhere(notes: &str) -> World {
    world(Script::always(Reply::text("from the network")), notes).await
}

fn tape(world: &World) -> PathBuf {
    world.folder.path().join("tape.jsonl")
}

fn notes(world: &World) -> String {
    world.work().join("notes.txt").display().to_string()
}

/// Records `posse run` in `world`.
async fn record(world: &World) -> Exit {
    let (tape, notes) = (tape(world), notes(world));
    let record = ["run", "--stream-json", "--record", tape.to_str().unwrap(), &notes];
    let mut command = world.command(&record);
    command.env("ANTHROPIC_API_KEY", KEY);
    started(command).end().await
}

/// Plays `arguments` with `tape` in `world`, which has no key and no address.
async fn replay(world: &World, tape: &Path, arguments: &[&str]) -> Exit {
    let mut all = arguments.to_vec();
    all.extend(["--replay", tape.to_str().unwrap()]);
    let mut command = world.command(&all);
    command.env_remove("ANTHROPIC_API_KEY").env_remove("ANTHROPIC_BASE_URL");
    let exit = started(command).end().await;
    assert_eq!(world.fake.count(), 0, "nobody is asked");
    exit
}

/// The events of a run with what must differ taken out: times, and where it was.
fn events(world: &World, exit: &Exit) -> Vec<Value> {
    fn settle(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                let passing = ["worked_ms", "took_ms", "after_ms", "scratch"];
                fields.retain(|name, _| !passing.contains(&&**name));
                fields.values_mut().for_each(settle);
            }
            Value::Array(items) => items.iter_mut().for_each(settle),
            _ => {}
        }
    }
    let out = exit.out.replace(world.work().to_str().unwrap(), "WORK");
    let lines = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut events: Vec<Value> =
        lines.map(|mut line| line["event"].take()).filter(|event| !event.is_null()).collect();
    events.iter_mut().for_each(settle);
    events
}

#[tokio::test]
async fn a_recorded_run_is_played_elsewhere_without_a_key_and_with_the_same_events() {
    let first = world(look(), "All is well.").await;
    let recorded = record(&first).await.expect(0);
    assert_eq!(first.fake.count(), 4, "three turns and one call that was made again");
    let wanted = events(&first, &recorded);
    let tape = tape(&first);

    assert_eq!(mode(&tape), 0o600);
    let text = std::fs::read_to_string(&tape).unwrap();
    for private in [PathBuf::from(KEY), first.work(), first.home()] {
        assert!(!text.contains(private.to_str().unwrap()), "{private:?}: {text}");
    }
    assert!(text.contains("{{posse:workspace}}/notes.txt"), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let statuses: Vec<&Value> =
        lines.iter().map(|line| &line["exchange"]["response"]["status"]).collect();
    assert_eq!(
        statuses,
        [&Value::Null, &Value::Null, &json!(200), &json!(529), &json!(200), &json!(200)]
    );
    assert!(!text.contains("x-api-key") && !text.contains("authorization"), "{text}");

    // The address that was recorded is dead by now.
    let World { folder: _kept, fake } = first;
    fake.shutdown().await;
    let second = elsewhere("All is well.").await;
    let played = replay(&second, &tape, &["run", "--stream-json", &notes(&second)]).await.expect(0);
    assert_eq!(played.err, "");
    assert_eq!(events(&second, &played), wanted);
    let failed = wanted.iter().filter(|event| event["type"] == "model_failed").count();
    assert_eq!(failed, 1, "{wanted:#?}");

    let told = replay(&second, &tape, &["run", &notes(&second)]).await.expect(0);
    let line = told.err.lines().next().unwrap();
    assert!(line.contains("anthropic/claude-") && line.contains("(replayed from "), "{line}");
    assert!(told.out.contains("It says ") && told.out.contains("All is well."), "{}", told.out);
}

#[tokio::test]
async fn a_replay_waits_for_nobody() {
    let busy = Reply::error(429, "slow down").header("retry-after", "0");
    let script = Script::new().rule(Rule::when(When::any()).reply(busy).once());
    let script = script.conversation(Conversation::when(When::any()).reply(Reply::text("hello")));
    let first = world(script, "").await;
    record(&first).await.expect(0);
    let text = std::fs::read_to_string(tape(&first)).unwrap();
    let patient = text.replace("\"retry-after\":\"0\"", "\"retry-after\":\"300\"");
    assert_ne!(patient, text);
    std::fs::write(tape(&first), patient).unwrap();
    let second = elsewhere("").await;
    let exit = replay(&second, &tape(&first), &["run", &notes(&second)]).await.expect(0);
    assert!(exit.err.contains("retrying in "), "{}", exit.err);
}

#[tokio::test]
async fn a_replay_fails_at_the_first_request_that_differs_and_names_the_place() {
    let first = world(look(), "All is well.").await;
    record(&first).await.expect(0);
    let second = elsewhere("All is lost.").await;
    let exit = replay(&second, &tape(&first), &["run", "--quiet", &notes(&second)]).await.expect(1);
    let lines: Vec<&str> = exit.err.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("error: the replay of ")).unwrap();
    let error = &lines[at..];
    assert!(error[0].ends_with("failed: request 2 differs from recorded request 2"), "{error:#?}");
    assert!(error[1].starts_with("  at       messages[2].content[0].content"), "{error:#?}");
    assert!(error[2].starts_with("  recorded ") && error[2].contains("well."), "{error:#?}");
    assert!(error[3].starts_with("  sent     ") && error[3].contains("lost."), "{error:#?}");
    assert!(error[4].starts_with("  hint: ") && error[4].contains("--record "), "{error:#?}");
    assert!(lines[0].starts_with("failed: ") && lines[0].contains("messages[2]"), "{lines:#?}");

    let json = replay(&second, &tape(&first), &["run", "--json", &notes(&second)]).await.expect(1);
    assert_eq!(json.json()["outcome"], "failed");
    let told: Value = serde_json::from_str(&json.err).unwrap();
    assert!(told["error"].as_str().unwrap().contains("\n  sent     "), "{told}");
    assert!(told["hint"].as_str().unwrap().contains("record again"), "{told}");
}

#[tokio::test]
async fn a_recording_that_was_killed_is_played_up_to_there() {
    let first = world(look(), "All is well.").await;
    record(&first).await.expect(0);
    let tape = tape(&first);
    let text = std::fs::read_to_string(&tape).unwrap();
    std::fs::write(&tape, &text[..text.len() - 40]).unwrap();
    let second = elsewhere("All is well.").await;
    let exit = replay(&second, &tape, &["run", &notes(&second)]).await.expect(1);
    assert!(exit.err.contains("is incomplete and left out"), "{}", exit.err);
    let why = "request 4 was never recorded: all 3 recorded requests have been made; \
               the recording was cut off";
    assert!(exit.err.contains(why), "{}", exit.err);
}

#[tokio::test]
async fn each_exchange_is_in_the_file_as_soon_as_it_has_ended() {
    let gate = Gate::new();
    let replies = [bash("cat notes.txt"), Reply::text("never said").held_by(&gate)];
    let first = world(Script::turns(replies), "All is well.").await;
    let (tape, notes) = (tape(&first), notes(&first));
    let running = first.start(&["run", "--record", tape.to_str().unwrap(), &notes]);
    gate.wait_for_held(1).await.unwrap();
    running.signal(Signal::KILL);
    running.end().await;
    let second = elsewhere("All is well.").await;
    let exit = replay(&second, &tape, &["run", &self::notes(&second)]).await.expect(1);
    let why = "request 2 was never recorded: the only recorded request has been made";
    assert!(exit.err.contains("● Bash") && exit.err.contains(why), "{}", exit.err);
}

#[tokio::test]
async fn what_is_no_cassette_of_this_version_is_refused() {
    let world = elsewhere("").await;
    let check = async |text: &str, reason: &str| {
        let tape = tape(&world);
        std::fs::write(&tape, text).unwrap();
        let exit = replay(&world, &tape, &["run", "x"]).await.expect(2);
        assert!(exit.err.contains(reason) && exit.err.contains("  hint: "), "{}", exit.err);
    };
    check("{\"cassette\":{\"version\":7}}\n", "is a cassette of version 7").await;
    check("", "it is empty").await;
    check("hello\n", "its first line is not JSON").await;
    check("{\"a\":1}\n", "its first line names no version").await;
    let head = "{\"cassette\":{\"version\":1,\"posse\":\"0.1.0\"}}";
    check(&format!("{head}\nnot JSON\n{head}\n"), "line 2 of the cassette").await;
    assert!(!world.database().exists(), "nothing was begun");
}

#[tokio::test]
async fn a_recording_replaces_a_cassette_and_no_other_file() {
    let world = world(look(), "All is well.").await;
    record(&world).await.expect(0);
    let before = std::fs::read_to_string(tape(&world)).unwrap().lines().count();
    let again = record(&world).await.expect(0);
    assert!(again.err.is_empty(), "{}", again.err);
    // The model is no longer overloaded.
    assert_eq!(std::fs::read_to_string(tape(&world)).unwrap().lines().count(), before - 1);

    let exit = world.run(&["run", "--record", "notes.txt", "x"]).await.expect(2);
    assert!(exit.err.contains("notes.txt exists and is not a cassette"), "{}", exit.err);
    assert_eq!(world.read("notes.txt"), "All is well.");
    let exit = world.run(&["run", "--record", "no/such/folder.jsonl", "x"]).await.expect(2);
    assert!(exit.err.contains("cannot write the cassette no/such/folder.jsonl"), "{}", exit.err);
    for options in [["--record", "a", "--replay", "b"], ["--record", "a", "--key", "k"]] {
        world.run(&[&["run", "x"], options.as_slice()].concat()).await.expect(2);
    }
}

#[tokio::test]
async fn recording_tells_how_much_it_has_and_where_it_should_not_be() {
    let world = world(Script::always(Reply::text("hello")), "").await;
    let exit = world.run(&["run", "--record", "tape.jsonl", "x"]).await.expect(0);
    let said: Vec<&str> = exit.err.lines().collect();
    assert!(said[0].starts_with("tape.jsonl is in the folder the agent works in"), "{said:#?}");
    assert_eq!(said.last(), Some(&"1 request recorded in tape.jsonl"), "{said:#?}");
    let exit = world
        .run(&["run", "--model", "offline/planner", "--record", "../tape.jsonl", "list TODOs"])
        .await
        .expect(0);
    let last = exit.err.lines().last().unwrap();
    assert_eq!(last, "nothing is recorded in ../tape.jsonl: no request was made");
}

#[tokio::test]
async fn a_chat_is_recorded_and_played_line_by_line() {
    let script = Script::always(Reply::text("{{turn}}: {{last_user}}"));
    let world = world(script, "").await;
    let tape = tape(&world);
    let tape = tape.to_str().unwrap();
    let said = world.feed(&["chat", "-q", "--record", tape], "one\ntwo\n").await.expect(0);
    assert_eq!((said.out.as_str(), world.fake.count()), ("0: one\n1: two\n", 2));

    let check = async |input: &str, code: i32, out: &str, err: &str| {
        let exit = world.feed(&["chat", "--replay", tape], input).await.expect(code);
        assert_eq!(exit.out, out);
        assert!(exit.err.contains(err), "{}", exit.err);
    };
    check("one\ntwo\n", 0, "0: one\n1: two\n", "To continue: `posse chat --resume ").await;
    check("one\n", 0, "0: one\n", &format!("not made: 1 recorded request of {tape}")).await;
    let differs = "request 2 differs from recorded request 2\n  at       messages[2].content[0].text\n  \
                   recorded \"two\"\n  sent     \"three\"";
    check("one\nthree\nfour\n", 1, "0: one\n", differs).await;
    assert_eq!(world.fake.count(), 2, "the key is there, and nobody is asked");
}

#[tokio::test]
async fn every_wire_is_recorded_with_what_its_model_can_do() {
    for wire in Wire::ALL {
        let first = world(look(), "All is well.").await;
        let settings = first.home().join("config/posse");
        std::fs::create_dir_all(&settings).unwrap();
        let vendor = format!(
            "model = \"mine/model-1\"\n[vendors.mine]\nbase_url = \"{}\"\nwire = \"{}\"\n\
             key_variable = \"MY_KEY\"\n[models.\"mine/model-1\"]\nwindow = 50_000\n\
             price = {{ input = 1.0, output = 2.0 }}\n",
            first.fake.url(),
            wire.name()
        );
        std::fs::write(settings.join("config.toml"), vendor).unwrap();
        let (tape, about) = (tape(&first), notes(&first));
        let arguments = ["run", "--stream-json", "--record", tape.to_str().unwrap(), &about];
        let mut command = first.command(&arguments);
        command.env("MY_KEY", KEY);
        let recorded = started(command).end().await.expect(0);
        assert!(!std::fs::read_to_string(&tape).unwrap().contains(KEY), "{}", wire.name());

        // No settings know the vendor here.
        let second = elsewhere("All is well.").await;
        let arguments = ["run", "--stream-json", &notes(&second)];
        let played = replay(&second, &tape, &arguments).await.expect(0);
        assert_eq!(events(&second, &played), events(&first, &recorded), "{}", wire.name());
        let other = replay(&second, &tape, &["run", "--model", "haiku", "x"]).await.expect(2);
        assert!(other.err.contains("which has mine/model-1; leave the model out"), "{}", other.err);
    }
}

#[tokio::test]
async fn a_run_that_hands_work_on_is_played_with_its_children_under_their_new_names() {
    let again = json!({"description": "more", "prompt": "and now?", "resume": "{{last_run}}"});
    let both = Reply::tool_call("Task", task("explore", "one"))
        .and_tool_call("Task", task("explore", "two"));
    let when = |part: &str| Conversation::when(When::any().first_user_contains(part));
    let script = Script::new()
        .conversation(
            when("lead")
                .reply(both)
                .reply(Reply::tool_call("Task", again))
                .reply(Reply::text("all done")),
        )
        .conversation(child("one", Reply::text("1")).reply(Reply::text("more")))
        .conversation(child("two", Reply::text("2")).reply(Reply::text("more")));
    let first = world(script, "All is well.").await;
    let tape = tape(&first);
    let record = ["run", "--record", tape.to_str().unwrap(), "lead them"];
    let recorded = first.run(&record).await.expect(0);
    assert!(recorded.err.contains("✓ [explore] more · "), "{}", recorded.err);
    let second = elsewhere("All is well.").await;
    let played = replay(&second, &tape, &["run", "lead them"]).await.expect(0);
    assert_eq!(played.out, "all done\n");
    for line in ["✓ [explore] do one · ", "✓ [explore] do two · ", "✓ [explore] more · "] {
        assert!(played.err.contains(line), "{}", played.err);
    }
    assert!(!played.err.contains("not made"), "{}", played.err);
}

#[tokio::test]
async fn what_the_database_does_not_keep_is_not_recorded_either() {
    let secrets =
        [("GITHUB_TOKEN", "ghp_TokenValue0123"), ("DB_PASSWORD", "Hunter2-prod-Passw0rd!x")];
    let said: Vec<&str> = secrets.iter().map(|(_, value)| *value).collect();
    let escaped: String = KEY.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let world =
        world(Script::always(Reply::text(&format!("{} {escaped}", said.join(" ")))), "x").await;
    let (tape, prompt) = (tape(&world), format!("use {}", said.join(" and ")));
    let mut command = world.command(&["run", "--record", tape.to_str().unwrap(), &prompt]);
    command.env("ANTHROPIC_API_KEY", KEY).envs(secrets);
    started(command).end().await.expect(0);
    let tape = std::fs::read_to_string(tape).unwrap();
    for text in said.into_iter().chain([escaped.as_str()]) {
        assert!(!tape.contains(text), "{text}: {tape}");
    }
}

#[tokio::test]
async fn a_key_is_not_recorded_in_another_form_either() {
    // The key in base64, in hexadecimal digits and backwards.
    let forms = [
        "a2V5LTAxMjM0NTY3ODlhYmNkZWY",
        "6b65792d30313233343536373839616263646566",
        "fedcba9876543210-yek",
    ];
    let world = world(Script::always(Reply::text(&forms.join(" "))), "x").await;
    record(&world).await.expect(0);
    let tape = std::fs::read_to_string(tape(&world)).unwrap();
    for form in forms {
        assert!(!tape.contains(form), "{form}: {tape}");
    }
}
