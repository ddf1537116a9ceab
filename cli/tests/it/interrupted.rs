//! Ctrl-C: what a person interrupts rests until somebody resumes it. What a crash or another
//! signal stops goes on with the next command in its folder, and holds none of them up.

use crate::daemon::Guard;
use crate::tmux::Terminal;
use crate::world::{LONG, World, bash, eventually};
use posse_testkit::{Conversation, Gate, Reply, Rule, Script, When};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A task of two replies, of which the first is held; any other prompt is answered at once.
fn held(gate: &Gate) -> Script {
    let task = Conversation::when(When::any().first_user_contains("fix the parser"))
        .reply(bash("echo worked >> ledger").held_by(gate))
        .reply(Reply::text("fixed"));
    Script::new()
        .conversation(task)
        .rule(Rule::when(When::any()).reply(Reply::text("quick answer")))
}

/// A world in which this signal has stopped `posse run` with these options.
async fn stopped(gate: &Gate, script: Script, options: &[&str], signal: Signal) -> World {
    let world = World::new(script).await;
    let running = world.start(&[&["run"], options, &["fix the parser"]].concat());
    gate.wait_for_held(1).await.unwrap();
    running.signal(signal);
    if signal != Signal::KILL {
        running.notes("stops after the current step").await;
    }
    gate.open();
    running.end().await;
    world
}

async fn status(world: &World, run: &str) -> Value {
    world.run(&["runs", "show", run, "--json"]).await.expect(0).json()["status"].clone()
}

#[tokio::test]
async fn the_next_run_in_the_folder_leaves_an_interrupted_one_alone() {
    let gate = Gate::new();
    let world = stopped(&gate, held(&gate), &[], Signal::INT).await;
    let run = world.only_run().await;
    let requests = world.fake.count();
    let exit = world.run(&["run", "quick question"]).await.expect(0);
    assert_eq!(exit.out, "quick answer\n");
    assert!(!exit.err.contains(&run[18..]), "{}", exit.err);
    assert_eq!(status(&world, &run).await, "interrupted");
    assert_eq!(world.fake.count(), requests + 1, "nobody went on with it");
    for verb in ["list", "show", "tree"] {
        let mut arguments = vec!["runs", verb];
        arguments.extend((verb != "list").then_some(run.as_str()));
        let shown = world.run(&arguments).await.expect(0).out;
        assert!(shown.contains("interrupted"), "{verb}: {shown}");
    }
    let listed = ["runs", "list", "--status", "interrupted", "--json"];
    assert_eq!(world.run(&listed).await.expect(0).json().as_array().unwrap().len(), 1);
    let log = world.run(&["runs", "log", &run]).await.expect(0).out;
    assert!(log.contains("by the user, who interrupted it"), "{log}");
    world.run(&["runs", "verify"]).await.expect(0);
    let exit = world.run(&["runs", "resume", &run]).await.expect(0);
    assert_eq!(exit.out, "fixed\n");
    assert_eq!(world.read("ledger"), "worked\n");
}

/// The second Ctrl-C cuts a reply short. The last words name the run, and it can be continued.
#[tokio::test]
async fn a_second_ctrl_c_names_the_run_and_how_it_continues() {
    let gate = Gate::new();
    let more = Rule::when(When::any().last_user_contains("and now?")).reply(Reply::text("Now."));
    let held = Reply::text("a long reply in parts").held_after_deltas(1, &gate);
    let script = Script::new().rule(more).rule(Rule::when(When::any()).reply(held));
    let world = World::new(script).await;
    let running = world.start(&["run", "fix the parser"]);
    gate.wait_for_held(1).await.unwrap();
    running.signal(Signal::INT);
    running.notes("stops after the current step").await;
    running.signal(Signal::INT);
    let exit = running.end().await.expect(130);
    let run = world.only_run().await;
    let short = &run[18..];
    let last = exit.err.trim_end().rsplit('\n').take(2).collect::<Vec<_>>();
    assert!(last[1].ends_with(&format!("run {short} is kept")), "{}", exit.err);
    assert!(last[0].contains(&format!("`posse runs resume {short}` continues it")), "{}", exit.err);
    let shown = world.run(&["runs", "show", short]).await.expect(0).out;
    let says = "interrupted: calls the model again when you resume it: the call was cut short";
    assert!(shown.contains(says), "{shown}");
    let chat = world.feed(&["chat", "-c"], "").await.expect(2);
    assert!(chat.err.contains(&format!("the last run here is {short} ")), "{}", chat.err);
    assert_eq!(world.run(&["run", "-c", "and now?"]).await.expect(0).out, "Now.\n");
    assert_eq!(world.list().await.len(), 1);
}

/// A call that Posse cut short after the first Ctrl-C is made again when the run is resumed, not at once.
#[tokio::test]
async fn a_call_that_an_interruption_cut_short_waits_for_the_resumption() {
    let gate = Gate::new();
    let held = Reply::text("a long reply in parts").held_after_deltas(1, &gate);
    let world = World::new(Script::always(held)).await;
    let running = world.start(&["run", "fix the parser"]);
    gate.wait_for_held(1).await.unwrap();
    running.signal(Signal::INT);
    running.end().await.expect(130);
    let shown = world.run(&["runs", "show", &world.only_run().await]).await.expect(0).out;
    let says = "interrupted: calls the model again when you resume it: the reply of ";
    assert!(shown.contains(says) && !shown.contains("at once"), "{shown}");
}

#[tokio::test]
async fn who_resumes_all_is_told_of_interrupted_runs_and_how_to_resume_them() {
    let gate = Gate::new();
    let world = stopped(&gate, held(&gate), &[], Signal::INT).await;
    let exit = world.run(&["runs", "resume", "--all"]).await.expect(0);
    assert!(exit.err.contains("not resumed: 1 interrupted run"), "{}", exit.err);
    assert_eq!(world.list().await[0]["status"], "interrupted");
    let all = ["runs", "resume", "--all", "--status", "interrupted"];
    let exit = world.run(&all).await.expect(0);
    assert!(exit.out.trim().ends_with("  completed"), "{}", exit.out);
}

#[tokio::test]
async fn an_interrupted_run_can_be_cancelled() {
    let gate = Gate::new();
    let world = stopped(&gate, held(&gate), &[], Signal::INT).await;
    let run = world.only_run().await;
    world.run(&["runs", "cancel", &run]).await.expect(0);
    assert_eq!(world.list().await[0]["outcome"], "cancelled");
}

#[tokio::test]
async fn whoever_asks_again_with_the_same_key_resumes_it() {
    let gate = Gate::new();
    let world = stopped(&gate, held(&gate), &["--key", "nightly"], Signal::INT).await;
    let exit = world.run(&["run", "--key", "nightly", "fix the parser"]).await.expect(0);
    assert_eq!(exit.out, "fixed\n");
    assert_eq!(world.list().await.len(), 1);
}

#[tokio::test]
async fn children_rest_with_the_run_that_was_interrupted() {
    let gate = Gate::new();
    let task = json!({"description": "look", "prompt": "look", "subagent_type": "explore"});
    let script = Script::new()
        .conversation(
            Conversation::when(When::any().first_user_contains("fix the parser"))
                .reply(Reply::tool_call("Task", task))
                .reply(Reply::text("fixed")),
        )
        .rule(
            Rule::when(When::any().first_user_contains("look"))
                .reply(Reply::text("found").held_by(&gate)),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("quick answer")));
    let world = World::new(script).await;
    let running = world.start(&["run", "fix the parser"]);
    gate.wait_for_held(1).await.unwrap();
    running.signal(Signal::INT);
    running.notes("stops after the current step").await;
    running.signal(Signal::INT);
    running.end().await.expect(130);
    let all = ["runs", "list", "--all", "--json"];
    let rows = world.run(&all).await.expect(0).json();
    let standing: Vec<&Value> = rows.as_array().unwrap().iter().map(|it| &it["status"]).collect();
    assert_eq!(standing, ["interrupted", "interrupted"], "{rows}");
    world.run(&["run", "quick question"]).await.expect(0);
    gate.open();
    let root = world.list().await[1]["run"].as_str().unwrap().to_owned();
    assert_eq!(status(&world, &root).await, "interrupted");
    assert_eq!(world.run(&["runs", "resume", &root]).await.expect(0).out, "fixed\n");
}

#[tokio::test]
async fn the_daemon_leaves_an_interrupted_run_alone() {
    let gate = Gate::new();
    let world = stopped(&gate, held(&gate), &[], Signal::INT).await;
    let run = world.only_run().await;
    let _guard = Guard::of(&world);
    world.run(&["daemon", "start"]).await.expect(0);
    // The daemon has looked for work, and done some.
    let left = world.run(&["run", "--background", "quick question"]).await.expect(0);
    let other = left.out.trim().to_owned();
    eventually("the other run's end", async || status(&world, &other).await == "finished").await;
    assert_eq!(status(&world, &run).await, "interrupted");
    let told = world.run(&["daemon", "status"]).await.expect(0).out;
    assert!(told.contains("1 interrupted"), "{told}");
    world.run(&["daemon", "stop"]).await.expect(0);
}

#[tokio::test]
async fn what_another_signal_stops_goes_on_with_the_next_run() {
    for signal in [Signal::TERM, Signal::HUP, Signal::KILL] {
        let gate = Gate::new();
        let world = stopped(&gate, held(&gate), &[], signal).await;
        let run = world.only_run().await;
        let told = status(&world, &run).await;
        assert!(told == "queued" || told == "crashed", "{signal:?}: {told}");
        let exit = world.run(&["run", "quick question"]).await.expect(0);
        let short = &run[18..];
        let line = format!(
            "continuing unfinished run {short} \"fix the parser\"; to cancel it: posse runs cancel {short}"
        );
        assert!(exit.err.contains(&line), "{signal:?}: {}", exit.err);
    }
}

#[tokio::test]
async fn on_a_terminal_the_next_run_says_what_was_interrupted_and_does_not_wait() {
    let gate = Gate::new();
    let world = World::new(held(&gate)).await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    terminal.enter("posse run 'fix the parser'; echo code $?").await;
    gate.wait_for_held(1).await.unwrap();
    terminal.press("C-c").await;
    terminal.shows("Ctrl-C again to stop now").await;
    terminal.press("C-c").await;
    let screen = terminal.shows("code 130").await;
    assert!(!screen.contains("^Cstopped"), "{screen}");
    let run = world.only_run().await;
    terminal.enter("clear; posse run 'quick question'; echo code $?").await;
    let screen = terminal.shows("code 0").await;
    let short = &run[18..];
    for line in [
        format!("run {short} \"fix the parser\" was interrupted here and waits"),
        format!("resume it: posse runs resume {short}; end it: posse runs cancel {short}"),
    ] {
        assert!(screen.contains(&line), "{line}:\n{screen}");
    }
    assert_eq!(status(&world, &run).await, "interrupted");
}

/// A call that nobody knows the end of is made again, and is the same turn.
#[tokio::test]
async fn a_call_that_a_crash_cut_short_takes_no_turn() {
    let gate = Gate::new();
    let answer = Script::always(Reply::text("done").held_by(&gate));
    let world = stopped(&gate, answer, &["--max-turns", "1"], Signal::KILL).await;
    let run = world.only_run().await;
    assert_eq!(world.run(&["runs", "resume", &run]).await.expect(0).out, "done\n");
    let shown = world.run(&["runs", "show", &run]).await.expect(0).out;
    assert!(shown.contains("1 turn") && !shown.contains("2 turns"), "{shown}");
    world.run(&["runs", "verify"]).await.expect(0);
}

/// A person's word counts, whatever other signal came first.
#[tokio::test]
async fn ctrl_c_after_another_signal_still_interrupts() {
    let gate = Gate::new();
    let world = World::new(held(&gate)).await;
    let running = world.start(&["run", "fix the parser"]);
    gate.wait_for_held(1).await.unwrap();
    running.signal(Signal::TERM);
    running.notes("stops after the current step").await;
    running.signal(Signal::INT);
    running.end().await.expect(130);
    assert_eq!(status(&world, &world.only_run().await).await, "interrupted");
}

/// A terminal that is closed sends SIGHUP, and so does the shell in it.
#[tokio::test]
async fn a_second_hangup_does_not_cut_the_step_short() {
    let script = Script::turns([
        bash("touch began; while [ ! -e go ]; do sleep 0.05; done; echo end > ended"),
        Reply::text("done"),
    ]);
    let world = World::new(script).await;
    let running = world.start(&["run", "work"]);
    eventually("it works", async || world.work().join("began").exists()).await;
    running.signal(Signal::HUP);
    running.notes("stops after the current step").await;
    running.signal(Signal::HUP);
    world.write("go", "");
    running.end().await.expect(130);
    assert_eq!(world.read("ended"), "end\n");
    let run = world.only_run().await;
    let log = world.run(&["runs", "export", &run]).await.expect(0).out;
    assert!(log.contains("tool_finished"), "{log}");
}

/// Whatever is said of its result, a command ends with its own run, although one that was taken
/// up besides is stuck.
#[tokio::test]
async fn a_stuck_run_holds_up_no_other_command_in_its_folder() {
    let gate = Gate::new();
    let never = Rule::when(When::any().first_user_contains("fix the parser"))
        .reply(Reply::text("never").held_by(&gate));
    let quick = Rule::when(When::any()).reply(Reply::text("quick answer"));
    let world = World::new(Script::new().rule(never).rule(quick)).await;
    let running = world.start(&["run", "fix the parser"]);
    gate.wait_for_held(1).await.unwrap();
    running.signal(Signal::KILL);
    running.end().await;
    let run = world.only_run().await;
    for options in [&[][..], &["--json"], &["--quiet"], &["--stream-json"], &["--key", "k"]] {
        let exit = world.run(&[&["run"], options, &["quick question"]].concat()).await.expect(0);
        assert!(exit.out.contains("quick answer"), "{options:?}: {}", exit.out);
        let told = status(&world, &run).await;
        assert!(told == "queued" || told == "crashed", "{options:?}: {told}");
    }
    // One call was cut by the crash, and one by the first command that was slow enough to begin one.
    let calls = || world.fake.requests_where(&When::any().first_user_contains("fix the parser"));
    eventually("a command has gone on with it", async || {
        world.run(&["run", "quick question"]).await.expect(0);
        calls().len() == 2
    })
    .await;
    let exit = world.run(&["run", "quick question"]).await.expect(0);
    let short = &run[18..];
    let line = format!(
        "run {short} \"fix the parser\" is not done; to continue it: posse runs resume {short}"
    );
    assert!(exit.err.contains(&line), "{}", exit.err);
    assert_eq!(calls().len(), 2, "the others begin none");
}

#[tokio::test]
async fn a_tool_that_hangs_in_another_run_holds_up_no_command() {
    let stuck = Conversation::when(When::any().first_user_contains("fix the parser"))
        .reply(Reply::text("I wait").and_tool_call("Bash", json!({"command": LONG})))
        .reply(bash(LONG))
        .reply(Reply::text("at last"));
    let quick = Rule::when(When::any()).reply(Reply::text("quick answer"));
    let world = World::new(Script::new().conversation(stuck).rule(quick)).await;
    let running = world.start(&["run", "fix the parser"]);
    world.lines_in("pid", 1).await;
    running.signal(Signal::KILL);
    running.end().await;
    let exit = world.run(&["run", "quick question"]).await.expect(0);
    assert_eq!(exit.out, "quick answer\n");
    assert!(exit.err.contains("continuing unfinished run"), "{}", exit.err);
    assert!(world.list().await[1]["outcome"].is_null());
}

#[tokio::test]
async fn whoever_watches_a_run_at_rest_is_told_that_it_rests() {
    let gate = Gate::new();
    let world = stopped(&gate, held(&gate), &[], Signal::INT).await;
    let run = world.only_run().await;
    let watching = world.start(&["runs", "watch", &run]);
    watching.notes("is interrupted; `posse runs resume").await;
    watching.signal(Signal::TERM);
    watching.end().await.expect(130);
    assert_eq!(status(&world, &run).await, "interrupted");
    world.feed(&["chat"], "hello\n").await.expect(0);
    let session = world.list().await[0]["run"].as_str().unwrap().to_owned();
    let watching = world.start(&["runs", "watch", &session]);
    watching.notes("waits; `posse chat --resume").await;
    watching.signal(Signal::INT);
    watching.end().await.expect(130);
}

/// What had arrived of a reply is known to be spent, also if the process ends in the middle of it.
#[tokio::test]
async fn a_reply_that_an_interruption_cuts_short_counts_as_far_as_it_came() {
    let gate = Gate::new();
    let long = Reply::text(&"word ".repeat(500)).held_after_deltas(5, &gate);
    let world = World::new(Script::always(long)).await;
    let running = world.start(&["run", "fix the parser"]);
    gate.wait_for_held(1).await.unwrap();
    running.signal(Signal::INT);
    let exit = running.end().await.expect(130);
    assert!(!exit.err.contains("cut off"), "{}", exit.err);
    let run = world.only_run().await;
    let shown = world.run(&["runs", "show", &run, "--json"]).await.expect(0).json();
    let costs = world.run(&["cost", "--json"]).await.expect(0).json()["total"].clone();
    let dollars = |key: &str| costs[key].to_string().trim_matches('"').parse::<f64>().unwrap();
    assert!(dollars("cost_usd") > 0.0 && dollars("uncertain_cost_usd") > 1.0, "{costs} {shown}");
    assert_eq!(status(&world, &run).await, "interrupted");
    gate.open();
    world.run(&["runs", "resume", &run]).await.expect(0);
    assert_eq!(world.fake.count(), 2);
    world.run(&["runs", "verify"]).await.expect(0);
}

/// Ctrl-C stops before the next command of the same reply. What a person says then comes before it.
#[tokio::test]
async fn commands_of_the_same_reply_do_not_begin_after_an_interruption() {
    for (more, runs) in [(Some("no! leave data alone"), false), (None, true)] {
        let first = "echo begun >> ledger; while [ ! -e go ]; do sleep 0.05; done";
        let calls = Reply::empty()
            .and_tool_call("Bash", json!({"command": first}))
            .and_tool_call("Bash", json!({"command": "rm -rf data"}));
        let world = World::new(Script::turns([calls, Reply::text("done")])).await;
        std::fs::create_dir(world.work().join("data")).unwrap();
        world.write("data/kept", "x");
        let running = world.start(&["run", "clean up"]);
        world.lines_in("ledger", 1).await;
        running.signal(Signal::INT);
        running.notes("stops after the current step").await;
        world.write("go", "");
        running.end().await.expect(130);
        assert_eq!(world.read("data/kept"), "x");
        let run = world.only_run().await;
        let mut line = vec!["runs", "resume", run.as_str()];
        line.extend(more);
        world.run(&line).await.expect(0);
        let results = world.fake.last_request().tool_results();
        assert_eq!(world.work().join("data").exists(), !runs, "{more:?}: {results:?}");
        assert_eq!(results.len(), 2, "{results:?}");
    }
}
