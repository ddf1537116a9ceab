//! Runs that start others: what is printed of them, lists, totals, and control.

use crate::world::{World, bash, eventually};
use posse_testkit::{Conversation, Gate, Reply, Rule, Script, When};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A call of `Task`.
pub fn task(agent: &str, prompt: &str) -> Value {
    json!({"description": format!("do {prompt}"), "prompt": prompt, "subagent_type": agent})
}

/// Makes these calls first, and says `all done` when they are answered.
pub fn lead(calls: impl IntoIterator<Item = Value>) -> Conversation {
    let calls =
        calls.into_iter().fold(Reply::empty(), |reply, call| reply.and_tool_call("Task", call));
    let when = When::any().first_user_contains("lead");
    Conversation::when(when).reply(calls).reply(Reply::text("all done"))
}

/// A child that lists the folder and then answers.
pub fn child(prompt: &str, answer: Reply) -> Conversation {
    let look = Reply::tool_call("List", json!({"path": "."}));
    Conversation::when(When::any().first_user_contains(prompt)).reply(look).reply(answer)
}

/// Two children that do well, and one that fails.
pub fn three() -> Script {
    Script::new()
        .conversation(lead([task("explore", "one"), task("plan", "two"), task("explore", "three")]))
        .conversation(child("one", Reply::text("1")))
        .conversation(child("two", Reply::text("2")))
        .conversation(child("three", Reply::error(400, "cannot be done")))
}

/// A settings file of the user.
pub fn settings(world: &World, text: &str) {
    let folder = world.home().join("config/posse");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), text).unwrap();
}

#[tokio::test]
async fn in_a_pipe_each_child_has_a_line_when_it_starts_and_one_when_it_ends() {
    let world = World::new(three()).await;
    let exit = world.run(&["run", "lead them"]).await.expect(0);
    assert_eq!(exit.out, "all done\n");
    assert!(!exit.err.contains(['\x1b', '\r']), "{:?}", exit.err);
    let lines: Vec<&str> = exit.err.lines().collect();
    assert_eq!(lines.len(), 1 + 3 + 3 + 1, "{}", exit.err);
    for (agent, label) in [("explore", "do one"), ("plan", "do two"), ("explore", "do three")] {
        let begun = format!("○ [{agent}] {label} · run ");
        assert_eq!(exit.err.matches(&begun).count(), 1, "{}", exit.err);
    }
    for begin in ["✓ [explore] do one · 1 tool, ", "✓ [plan] do two · 1 tool, "] {
        let told = lines.iter().find(|line| line.starts_with(begin)).expect(begin);
        assert!(told.contains(" tokens, $0.00"), "{told}");
    }
    let failed = lines.iter().find(|line| line.starts_with("✗ [explore] do three · ")).unwrap();
    assert!(failed.contains("cannot be done"), "{failed}");
    // The totals are those of the tree: three calls of its own, one of each child.
    let totals = lines.last().unwrap();
    assert!(totals.starts_with("✓ 2 turns · 3 tool calls · "), "{totals}");
    assert!(totals.contains(" · with 3 children: 6 tool calls, "), "{totals}");
}

/// Whoever reads the pipe has the answer, however long those in the background take.
#[tokio::test]
async fn in_a_pipe_an_answer_is_printed_while_others_are_still_at_work() {
    for options in [&["run"][..], &["run", "-q"]] {
        let gate = Gate::new();
        let spawn = json!({"task": "slow", "agentId": "explore"});
        let lead = Conversation::when(When::any().first_user_contains("lead"))
            .reply(Reply::tool_call("spawn_subagent", spawn))
            .reply(Reply::text("it is started"))
            .reply(Reply::text("it is over"));
        let slow = Conversation::when(When::any().first_user_contains("slow"))
            .reply(Reply::text("slow done").held_by(&gate));
        let world = World::new(Script::new().conversation(lead).conversation(slow)).await;
        let running = world.start(&[options, &["lead them"]].concat());
        gate.wait_for_held(1).await.unwrap();
        running.says("it is started\n").await;
        gate.open();
        assert_eq!(running.end().await.expect(0).out, "it is started\nit is over\n");
    }
}

#[tokio::test]
async fn quiet_tells_nothing_of_children_and_json_counts_them() {
    let world = World::new(three()).await;
    let exit = world.run(&["run", "-q", "lead them"]).await.expect(0);
    assert_eq!((exit.out.as_str(), exit.err.as_str()), ("all done\n", ""));
    let run = world.run(&["run", "--json", "lead them"]).await.expect(0).json();
    assert_eq!((&run["tool_calls"], &run["below"]), (&json!(3), &json!(3)));
    let subtree = &run["subtree"];
    assert_eq!((&subtree["runs"], &subtree["tool_calls"]), (&json!(4), &json!(6)), "{subtree}");
    assert!(subtree["cost_usd"].as_f64() > run["cost_usd"].as_f64(), "{run}");
    assert_eq!(&world.list().await[0]["subtree"], subtree, "a list has the same");
}

#[tokio::test]
async fn every_line_of_the_stream_says_which_run_it_is_about() {
    let world = World::new(three()).await;
    let lines = world.run(&["run", "--stream-json", "lead them"]).await.expect(0).lines();
    let top = lines[0]["run"].as_str().unwrap().to_owned();
    assert!(lines.iter().all(|line| line["run"].as_str().is_some()), "{lines:#?}");
    let ends = lines.iter().filter(|line| line["event"]["type"] == "run_finished");
    let mut ended: Vec<&str> = ends.map(|line| line["run"].as_str().unwrap()).collect();
    assert_eq!(ended.last(), Some(&top.as_str()));
    ended.sort_unstable();
    ended.dedup();
    assert_eq!(ended.len(), 4);
    let said: Vec<&Value> = lines.iter().filter(|line| line["delta"] == "text").collect();
    assert!(!said.is_empty() && said.iter().all(|line| line["run"] == *top), "{said:#?}");
}

/// Leaves one at work that nobody is told of, and that answers when the gate opens.
pub fn leaving_one_behind(gate: &Gate) -> Script {
    let task = json!({"task": "look", "agentId": "explore", "announce": "silent"});
    let lead = Conversation::when(When::any().first_user_contains("lead"));
    let lead = lead.reply(Reply::tool_call("spawn_subagent", task)).reply(Reply::text("all done"));
    let found = Rule::when(When::any().first_user_contains("look"));
    Script::new().conversation(lead).rule(found.reply(Reply::text("found").held_by(gate)))
}

#[tokio::test]
async fn a_run_is_not_left_before_those_are_done_that_it_does_not_wait_for() {
    let gate = Gate::new();
    let world = World::new(leaving_one_behind(&gate)).await;
    let run = world.start(&["run", "lead them"]);
    run.says("all done").await;
    run.notes("waiting for 1 run in the background; Ctrl-C interrupts").await;
    gate.open();
    let exit = run.end().await.expect(0);
    assert!(exit.err.contains(": completed"), "{}", exit.err);
    let all = world.run(&["runs", "list", "--all", "--json"]).await.expect(0).json();
    let outcomes: Vec<&Value> = all.as_array().unwrap().iter().map(|it| &it["outcome"]).collect();
    assert_eq!(outcomes, ["completed", "completed"], "{all}");
}

#[tokio::test]
async fn what_an_ended_run_has_left_unfinished_is_listed_and_resumed() {
    let gate = Gate::new();
    let world = World::new(leaving_one_behind(&gate)).await;
    let run = world.start(&["run", "lead them"]);
    run.notes("waiting for 1 run in the background").await;
    run.signal(Signal::INT);
    run.end().await.expect(0);
    let open = world.run(&["runs", "list", "--unfinished", "--json"]).await.expect(0).json();
    assert_eq!((&open[0]["depth"], open.as_array().unwrap().len()), (&json!(1), 1), "{open}");
    assert_eq!(open[0]["status"], "interrupted");
    gate.open();
    world.run(&["runs", "resume", "--all", "--status", "interrupted"]).await.expect(0);
    let open = world.run(&["runs", "list", "--unfinished", "--json"]).await.expect(0).json();
    assert_eq!(open, json!([]));
}

#[tokio::test]
async fn lists_show_roots_with_how_many_stand_below() {
    let world = World::new(three()).await;
    world.run(&["run", "lead them"]).await.expect(0);
    let run = world.only_run().await;
    let list = world.run(&["runs", "list"]).await.expect(0).out;
    assert!(list.ends_with("  lead them (+3)\n") && list.lines().count() == 2, "{list}");
    assert_eq!(world.list().await[0]["below"], 3);
    let all = world.run(&["runs", "list", "--all", "--json"]).await.expect(0).json();
    let depths: Vec<u64> =
        all.as_array().unwrap().iter().map(|run| run["depth"].as_u64().unwrap()).collect();
    assert_eq!(depths, [1, 1, 1, 0]);
    let children = world.run(&["runs", "list", "--children-of", &run]).await.expect(0).out;
    assert_eq!(children.lines().count(), 4, "a heading and three: {children}");
    assert!(children.contains("  failed  ") && children.contains("  plan  "), "{children}");
    world.run(&["runs", "list", "--all", "--children-of", &run]).await.expect(2);
}

#[tokio::test]
async fn the_whole_tree_is_shown_with_its_sums() {
    let script = Script::new()
        .conversation(lead([task("general-purpose", "middle")]))
        .conversation(
            Conversation::when(When::any().first_user_contains("middle"))
                .reply(Reply::tool_call("Task", task("explore", "bottom")))
                .reply(Reply::text("led")),
        )
        .conversation(child("bottom", Reply::error(400, "too deep")));
    let world = World::new(script).await;
    settings(&world, "max_depth = 2\n");
    let exit = world.run(&["run", "lead them"]).await.expect(0);
    assert!(exit.err.contains("\n  ○ [explore] do bottom · run "), "{}", exit.err);
    assert!(exit.err.contains(" (1 below, 1 failed)\n"), "{}", exit.err);
    assert!(exit.err.contains(" · with 2 runs below: 3 tool calls, "), "{}", exit.err);

    let run = world.only_run().await;
    let tree = world.run(&["runs", "tree", &run]).await.expect(0);
    let lines: Vec<&str> = tree.out.lines().map(|line| &line[10..]).collect();
    assert_eq!(lines.len(), 3, "{}", tree.out);
    assert!(lines[0].starts_with("✓ [general-purpose] lead them · 1 tool, "), "{}", tree.out);
    assert!(lines[0].contains(" · with 2 below: 3 tools, "), "{}", tree.out);
    assert!(lines[1].starts_with("└─ ✓ [general-purpose] do middle · 1 tool, "), "{}", tree.out);
    assert!(lines[2].starts_with("   └─ ✗ [explore] do bottom · 1 tool, "), "{}", tree.out);
    assert!(lines[2].contains("too deep"), "{}", tree.out);
    assert!(tree.err.starts_with("3 runs: 3 tool calls, "), "{}", tree.err);

    let json = world.run(&["runs", "tree", "--json", &run]).await.expect(0).json();
    let middle = &json["children"][0];
    assert_eq!((&json["subtree"]["runs"], &middle["subtree"]["runs"]), (&json!(3), &json!(2)));
    assert_eq!(middle["children"][0]["outcome"], "failed");
    assert_eq!(middle["parent"], *run);
    let below = middle["run"].as_str().unwrap();
    let part = world.run(&["runs", "tree", below]).await.expect(0).out;
    assert_eq!(part.lines().count(), 2, "from there on down: {part}");
}

#[tokio::test]
async fn show_names_the_parent_the_children_and_the_todo_list() {
    let todo = |status: &str| json!({"todos": [{"content": "look", "status": status}, {"content": "tell", "status": "pending"}]});
    let script = Script::new()
        .conversation(
            Conversation::when(When::any().first_user_contains("lead"))
                .reply(
                    Reply::tool_call("TodoWrite", todo("in_progress"))
                        .and_tool_call("Task", task("explore", "one")),
                )
                .reply(Reply::tool_call("TodoWrite", todo("completed")))
                .reply(Reply::tool_call("TodoWrite", json!({"todos": [{"content": "x"}]})))
                .reply(Reply::text("fine")),
        )
        .conversation(child("one", Reply::text("1")));
    let world = World::new(script).await;
    let exit = world.run(&["run", "lead"]).await.expect(0);
    assert!(exit.err.contains("● 0 of 2 done\n  [>] look\n  [ ] tell\n"), "{}", exit.err);
    assert!(exit.err.contains("● 1 of 2 done\n  [x] look\n  [ ] tell\n"), "{}", exit.err);
    assert_eq!(exit.err.matches("of 2 done").count(), 2, "what is refused changes nothing");
    let run = world.only_run().await;
    let show = world.run(&["runs", "show", &run]).await.expect(0).out;
    assert!(show.contains("\nwith below  2 runs: 6 turns, 5 tool calls, "), "{show}");
    assert!(
        show.contains("\nchildren    1\n  ") && show.contains("✓ [explore] do one · "),
        "{show}"
    );
    assert!(show.contains("\ntodo        1 of 2 done\n  [x] look\n  [ ] tell\n\nfine\n"), "{show}");
    let json = world.run(&["runs", "show", "--json", &run]).await.expect(0).json();
    assert_eq!(json["todos"][0], json!({"content": "look", "status": "completed"}));
    let child = json["children"][0].as_str().unwrap();
    let below = world.run(&["runs", "show", child]).await.expect(0).out;
    assert!(below.contains(&format!("\nparent      {}  [general-purpose] lead\n", &run[18..])));
    let watched = world.run(&["runs", "watch", child]).await.expect(0);
    assert!(watched.err.contains(&format!(" · below run {}\n", &run[18..])), "{}", watched.err);
}

#[tokio::test]
async fn cancelling_says_how_many_below_were_told_and_they_have_stopped() {
    let gate = Gate::new();
    let held = Rule::when(When::any()).reply(Reply::text("late").held_by(&gate));
    let calls = ["one", "two"].map(|prompt| task("explore", prompt));
    let world = World::new(Script::new().conversation(lead(calls)).rule(held)).await;
    let owner = world.start(&["run", "lead them"]);
    gate.wait_for_held(2).await.unwrap();
    let run = world.only_run().await;
    let list = world.run(&["runs", "list"]).await.expect(0).out;
    assert!(list.contains("  running  "), "those below are at work, and so is it: {list}");
    let cancel = world.run(&["runs", "cancel", &run]).await.expect(0);
    let told = "cancelled by the user; 2 runs below it told to stop\n";
    assert!(cancel.err.ends_with(told), "{}", cancel.err);
    let exit = owner.end().await.expect(3);
    assert_eq!(exit.err.matches("⊘ [explore] do ").count(), 2, "{}", exit.err);
    let all = world.run(&["runs", "list", "--all", "--json"]).await.expect(0).json();
    let all = all.as_array().unwrap();
    assert!(all.len() == 3 && all.iter().all(|run| run["outcome"] == "cancelled"), "{all:#?}");
}

#[tokio::test]
async fn a_tree_that_was_killed_goes_on_with_its_root() {
    for command in [&["runs", "resume"][..], &["runs", "resume", "--all"], &["run", "another"]] {
        let (gate, end) = (Gate::new(), Gate::new());
        let held = Reply::text("late").held_by(&gate);
        let script = Script::new()
            .conversation(lead(["quick", "slow"].map(|prompt| task("explore", prompt))))
            .conversation(child("quick", Reply::text("1")))
            .conversation(child("slow", held))
            .rule(Rule::when(When::any()).reply(Reply::text("something else").held_by(&end)));
        let world = World::new(script).await;
        let owner = world.start(&["run", "lead them"]);
        gate.wait_for_held(1).await.unwrap();
        owner.notes("✓ [explore] do quick").await;
        owner.signal(Signal::KILL);
        owner.end().await;
        gate.open();
        let run = world.only_run().await;
        let mut arguments = command.to_vec();
        if command == ["runs", "resume"] {
            let list = world.run(&["runs", "list", "--unfinished"]).await.expect(0).out;
            assert!(list.contains("  crashed  ") || list.contains("  queued  "), "{list}");
            arguments.push(&run);
        }
        let running = world.start(&arguments);
        // A command ends with its own run.
        eventually("the end of the tree", async || {
            world.run(&["runs", "show", &run, "--json"]).await.json()["outcome"] == "completed"
        })
        .await;
        end.open();
        let exit = running.end().await.expect(0);
        assert_eq!(exit.err.matches("do quick").count(), 0, "it was told before: {}", exit.err);
        let all = world.run(&["runs", "list", "--all", "--json"]).await.expect(0).json();
        let tree: Vec<&Value> =
            all.as_array().unwrap().iter().filter(|row| row["root"] == *run).collect();
        assert_eq!(tree.len(), 3);
        assert!(tree.iter().all(|row| row["outcome"] == "completed"), "{command:?}: {all:#}");
        if command == ["runs", "resume"] {
            assert_eq!(exit.out, "all done\n");
            assert_eq!(exit.err.matches("✓ [explore] do slow").count(), 1, "{}", exit.err);
        }
    }
}

#[tokio::test]
async fn a_child_that_is_resumed_alone_says_who_waited_for_it() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(lead([task("explore", "slow")]))
        .conversation(child("slow", Reply::text("at last").held_by(&gate)));
    let world = World::new(script).await;
    let owner = world.start(&["run", "lead them"]);
    gate.wait_for_held(1).await.unwrap();
    owner.signal(Signal::KILL);
    owner.end().await;
    gate.open();
    let run = world.only_run().await;
    let children = world.run(&["runs", "list", "--children-of", &run, "--json"]).await.expect(0);
    let child = children.json()[0]["run"].as_str().unwrap().to_owned();
    eventually("that nobody executes it", async || {
        let show = world.run(&["runs", "show", "--json", &child]).await.json();
        show["status"] != "running"
    })
    .await;
    let exit = world.run(&["runs", "resume", &child]).await.expect(0);
    assert_eq!(exit.out, "at last\n");
    let waits = format!("run {} waited for it: `posse runs resume", &run[18..]);
    assert!(exit.err.contains(&waits), "{}", exit.err);
    let exit = world.run(&["runs", "resume", &run]).await.expect(0);
    assert_eq!(exit.out, "all done\n");
}

#[tokio::test]
async fn a_tree_is_watched_from_another_process() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(lead([task("explore", "slow")]))
        .conversation(child("slow", Reply::text("1").held_by(&gate)));
    let world = World::new(script).await;
    let owner = world.start(&["run", "lead them"]);
    gate.wait_for_held(1).await.unwrap();
    let run = world.only_run().await;
    let watcher = world.start(&["runs", "watch", &run]);
    watcher.notes("○ [explore] do slow · run ").await;
    gate.open();
    owner.end().await.expect(0);
    let watched = watcher.end().await.expect(0);
    assert_eq!(watched.out, "all done\n");
    assert!(watched.err.contains("✓ [explore] do slow · 1 tool, "), "{}", watched.err);
}

#[tokio::test]
async fn without_a_key_an_agent_that_is_asked_for_by_name_does_the_work() {
    let world = World::saying("never asked").await;
    world.write(
        "README.md",
        "# Pony\n\nCarries parcels over the hills of the north, however it rains.\n",
    );
    let mut command =
        world.command(&["run", "use the explore agent to say what this project does"]);
    command.env_remove("ANTHROPIC_API_KEY").env_remove("ANTHROPIC_BASE_URL");
    let exit = crate::world::started(command).end().await.expect(0);
    assert!(exit.err.contains("✓ [explore] "), "{}", exit.err);
    assert!(exit.err.contains(" · with 1 child: "), "{}", exit.err);
    assert!(exit.out.contains("Carries parcels"), "{}", exit.out);
    assert!(!exit.out.contains("task_result"), "{}", exit.out);
}

#[tokio::test]
async fn two_hundred_children_are_followed_to_their_ends() {
    let parts = (0..200).map(|part| task("explore", &format!("part {part:03}")));
    let script =
        Script::new().conversation(lead(parts)).conversation(child("part", Reply::text("1")));
    let world = World::new(script).await;
    settings(&world, "max_concurrent = 64\n");
    let exit = world.run(&["run", "lead them"]).await.expect(0);
    assert_eq!(exit.out, "all done\n");
    assert_eq!(exit.err.matches("○ [explore] do part ").count(), 200);
    assert_eq!(exit.err.matches("✓ [explore] do part ").count(), 200);
    let totals = exit.err.lines().last().unwrap();
    assert!(totals.contains(" · with 200 children: 400 tool calls, "), "{totals}");
}

/// A root that has started work in silence and completed is no caller who went away: what waits for
/// others below goes on.
#[tokio::test]
async fn what_is_done_in_silence_below_a_completed_root_is_finished() {
    let gate = Gate::new();
    let call = |prompt: &str| Reply::empty().and_tool_call("Task", task("general-purpose", prompt));
    let says = |who: &str, replies: [Reply; 2]| {
        let talk = Conversation::when(When::any().first_user_contains(who));
        replies.into_iter().fold(talk, Conversation::reply)
    };
    let silent = json!({"task": "second", "agentId": "general-purpose", "announce": "silent"});
    let spawn = Reply::empty().and_tool_call("spawn_subagent", silent);
    let script = Script::new()
        .conversation(says("first", [spawn, Reply::text("root done")]))
        .conversation(says("second", [call("third"), Reply::text("second done")]))
        .conversation(says("third", [call("fourth"), Reply::text("third done")]))
        .conversation(says("fourth", [bash("echo x"), Reply::text("last").held_by(&gate)]));
    let world = World::new(script).await;
    settings(&world, "max_depth = 3\n");
    let running = world.start(&["run", "first"]);
    running.says("root done").await;
    gate.wait_for_held(1).await.unwrap();
    gate.open();
    running.end().await.expect(0);
    world.run(&["runs", "resume", "--all"]).await.expect(0);
    let list = world.run(&["runs", "list", "--all", "--json"]).await.expect(0).json();
    let outcomes: Vec<&Value> = list.as_array().unwrap().iter().map(|it| &it["outcome"]).collect();
    assert_eq!(outcomes, ["completed"; 4]);
}

/// A child in the background whose model waits at `gate`, and the process that started it, killed.
async fn killed_beside(gate: &Gate, announce: &str, chat: bool) -> World {
    let spawn = json!({"task": "second", "agentId": "general-purpose", "announce": announce});
    let lead = Conversation::when(When::any().first_user_contains("first"))
        .reply(Reply::empty().and_tool_call("spawn_subagent", spawn))
        .reply(Reply::text("started"))
        .reply(Reply::text("heard of it"));
    let child = Rule::when(When::any().first_user_contains("second"));
    let child = child.reply(Reply::text("found").held_by(gate));
    let world = World::new(Script::new().conversation(lead).rule(child)).await;
    let running = match chat {
        true => {
            let mut running = world.start_with_input(&["chat"]);
            running.type_line("first").await;
            running
        }
        false => world.start(&["run", "first"]),
    };
    gate.wait_for_held(1).await.unwrap();
    eventually("its turn ends", async || {
        let lead = &world.list().await[0];
        lead["status"] != "running" || lead["waiting_on"] == 1
    })
    .await;
    running.signal(Signal::KILL);
    running.end().await;
    gate.open();
    world
}

#[tokio::test]
async fn a_run_that_waits_for_a_child_in_the_background_is_resumed_by_its_name() {
    let world = killed_beside(&Gate::new(), "followup", false).await;
    let list = world.list().await;
    let root = &list[0];
    assert_eq!(root["status"], "crashed", "{root}");
    let resumed = world.run(&["runs", "resume", root["run"].as_str().unwrap()]).await.expect(0);
    assert!(resumed.out.contains("heard of it"), "{resumed:?}");
}

#[tokio::test]
async fn whoever_resumes_all_does_not_leave_before_silent_work_has_ended() {
    for chat in [true, false] {
        let world = killed_beside(&Gate::new(), "silent", chat).await;
        world.run(&["runs", "resume", "--all"]).await.expect(0);
        let list = world.run(&["runs", "list", "--all", "--json"]).await.expect(0).json();
        let runs = list.as_array().unwrap().iter();
        let child = runs.filter(|it| it["depth"] == 1).map(|it| &it["outcome"]);
        assert_eq!(child.collect::<Vec<_>>(), ["completed"], "{chat}: {list}");
    }
}
