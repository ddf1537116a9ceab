//! What a person sees and types in a chat, on a real terminal.

use crate::tmux::Terminal;
use crate::world::{World, bash, eventually};
use posse_testkit::{Conversation, Gate, Reply, Rule, Script, When};
use serde_json::json;
use std::time::Duration;
use std::time::Instant;

const ANSWER: &str = "# The title\n\nSome **bold** words and `code` that go on for longer than the line is wide: ANTHROPIC_API_KEY.\n\n- one\n- two\n\n```sh\nls --all\n```\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n";

/// Waits until the prompt stands alone on the last line.
async fn prompt(terminal: &Terminal) -> String {
    let mut screen = String::new();
    eventually("the prompt", async || {
        screen = terminal.screen().await;
        screen.ends_with("\n›") || screen == "›"
    })
    .await;
    screen
}

#[tokio::test]
async fn markdown_is_laid_out_on_a_terminal_and_raw_in_a_pipe() {
    let world = World::saying(ANSWER).await;
    let Some(terminal) = Terminal::open(&world, 40, 40).await else { return };
    terminal.enter("posse run hello; echo code $?").await;
    let screen = terminal.shows("code 0").await;
    let expected = "\nThe title\n\nSome bold words and code that go on for\nlonger than the line is wide:\n\
                    ANTHROPIC_API_KEY.\n\n• one\n• two\n\n  ls --all\n\na  b\n─  ─\n1  2\n";
    assert!(screen.contains(expected), "{screen}");
    assert!(screen.contains("\n  (ANTHROPIC_API_KEY is set)"), "remarks are broken too: {screen}");
    let painted = terminal.painted().await;
    assert!(painted.contains("\x1b[1mbold"), "{painted:?}");
    assert!(painted.contains("\x1b[36mcode"), "{painted:?}");
    let piped = world.run(&["run", "hello"]).await.expect(0);
    assert_eq!(piped.out.trim_end(), ANSWER.trim_end());
}

#[tokio::test]
async fn without_colours_there_are_none_and_a_dumb_terminal_gets_no_codes_at_all() {
    let world = World::saying(ANSWER).await;
    let Some(terminal) = Terminal::open(&world, 60, 60).await else { return };
    terminal.enter("NO_COLOR=1 posse run hello; echo code $?").await;
    let screen = terminal.shows("code 0").await;
    assert!(screen.contains("\n# The title\n\nSome **bold** words and `code`"), "{screen}");
    assert!(!terminal.painted().await.contains("\x1b["), "no colour");
    terminal.enter("clear").await;
    terminal.record("raw").await;
    terminal.enter("TERM=dumb posse run hello; echo over $?").await;
    terminal.shows("over 0").await;
    eventually("the record", async || world.read("raw").contains("over 0")).await;
    let raw = world.read("raw");
    let said = raw.split("# The title").nth(1).unwrap().split("over 0").next().unwrap();
    assert!(said.contains("**bold**") && !said.contains('\x1b'), "{said:?}");
}

#[tokio::test]
async fn an_edit_shows_its_lines_and_a_command_its_output() {
    let script = Script::turns([
        Reply::tool_call("Read", json!({"file_path": "a.txt"})),
        Reply::tool_call(
            "Edit",
            json!({"file_path": "a.txt", "old_string": "line 12", "new_string": "changed"}),
        ),
        Reply::tool_call("Write", json!({"file_path": "new.txt", "content": "first\nsecond\n"})),
        bash("seq 100 109"),
        bash("seq 200 203; exit 3"),
        Reply::text("done"),
    ]);
    let world = World::new(script).await;
    let lines: String = (1..=20).map(|line| format!("line {line}\n")).collect();
    world.write("a.txt", &lines);
    let Some(terminal) = Terminal::open(&world, 60, 60).await else { return };
    terminal.enter("posse run go; echo code $?").await;
    let screen = terminal.shows("code 0").await;
    for part in [
        "\n   9  line 9\n  10  line 10\n  11  line 11\n  12 -line 12\n  12 +changed\n  13  line 13\n",
        "● Edit a.txt",
        "● Write new.txt",
        "\n  1 +first\n  2 +second\n",
        "● Bash seq 100 109",
        "\n  … 5 earlier lines\n  105\n  106\n  107\n  108\n  109\n",
        "● Bash seq 200 203; exit 3",
        "\n  200\n  201\n  202\n  203\n  [exit code 3]\n",
    ] {
        assert!(screen.contains(part), "{part}\n--- not in:\n{screen}");
    }
    let painted = terminal.painted().await;
    assert!(painted.contains("\x1b[31m12 -line 12") && painted.contains("\x1b[32m12 +changed"));
}

#[tokio::test]
async fn in_a_pipe_a_call_stays_one_line() {
    let script = Script::turns([bash("seq 100 109"), Reply::text("done")]);
    let world = World::new(script).await;
    let exit = world.run(&["run", "go"]).await.expect(0);
    assert!(exit.err.contains("● Bash seq 100 109") && !exit.err.contains("\n  109"), "{exit:?}");
}

#[tokio::test]
async fn a_question_shows_the_change_as_the_file_will_have_it() {
    let script = Script::turns([
        Reply::tool_call("Read", json!({"file_path": "a.txt"})),
        Reply::tool_call(
            "Edit",
            json!({"file_path": "a.txt", "old_string": "line 12", "new_string": "changed"}),
        ),
        Reply::text("done"),
    ]);
    let world = World::new(script).await;
    let lines: String = (1..=20).map(|line| format!("line {line}\n")).collect();
    world.write("a.txt", &lines);
    let Some(terminal) = Terminal::open(&world, 80, 40).await else { return };
    terminal.enter("posse run --mode ask go; echo code $?").await;
    let screen = terminal.shows("allow it?").await;
    assert!(screen.contains("│ 11  line 11\n  │ 12 -line 12\n  │ 12 +changed\n"), "{screen}");
    assert!(!screen.contains("No newline"), "{screen}");
    terminal.enter("n").await;
    terminal.shows("code 0").await;
}

#[tokio::test]
async fn what_is_typed_during_a_turn_is_queued_and_sent_when_it_ends() {
    let gate = Gate::new();
    let script = Script::new()
        .rule(
            Rule::when(When::any().last_user_contains("slow"))
                .reply(Reply::text("slowly").held_by(&gate)),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("you said {{last_user}}")));
    let world = World::new(script).await;
    let Some(terminal) = Terminal::open(&world, 80, 30).await else { return };
    terminal.enter("posse chat; echo code $?").await;
    prompt(&terminal).await;
    terminal.enter("slow").await;
    gate.wait_for_held(1).await.unwrap();
    terminal.shows("waiting for the model").await;
    for _ in 0..3 {
        terminal.press("Enter").await;
    }
    terminal.type_out("frist").await;
    terminal.shows("\n› frist").await;
    terminal.press("Enter").await;
    terminal.shows("queued: frist").await;
    terminal.press("Up").await;
    terminal.shows("\n› frist").await;
    terminal.press("C-u").await;
    terminal.enter("first").await;
    terminal.enter("second").await;
    let screen = terminal.shows("queued: second").await;
    assert_eq!(screen.matches("waiting for the model").count(), 1, "one status line:\n{screen}");
    assert_eq!(world.fake.count(), 1, "nothing is sent yet");
    terminal.type_out("dra").await;
    terminal.shows("\n› dra").await;
    gate.open();
    let said = "slowly\n› first\nyou said first\n› second\nyou said second\n› dra";
    terminal.shows(said).await;
    terminal.type_out("ft").await;
    terminal.press("Enter").await;
    terminal.shows("you said draft\n›").await;
    terminal.press("Up").await;
    terminal.press("Up").await;
    terminal.shows("\n› second").await;
    terminal.press("C-c").await;
    prompt(&terminal).await;
    terminal.enter("exit").await;
    terminal.shows("code 0").await;
}

/// Several lines that come at once, as from a program that types: none is lost.
#[tokio::test]
async fn lines_that_come_in_one_burst_are_all_sent() {
    let world = World::new(Script::always(Reply::text("<{{last_user}}>"))).await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    terminal.enter("posse chat").await;
    prompt(&terminal).await;
    terminal.type_out("aaa\rbbb\r/cost\rccc\r").await;
    for said in ["<aaa>", "<bbb>", "<ccc>"] {
        terminal.shows(said).await;
    }
    assert_eq!(world.fake.count(), 3);
    terminal.enter("/quit").await;
}

#[tokio::test]
async fn escape_stops_the_turn_and_gives_back_what_was_queued() {
    let gate = Gate::new();
    let world = World::new(Script::always(Reply::text("long").held_by(&gate))).await;
    let Some(terminal) = Terminal::open(&world, 80, 30).await else { return };
    terminal.enter("posse chat; echo code $?").await;
    prompt(&terminal).await;
    terminal.enter("talk").await;
    gate.wait_for_held(1).await.unwrap();
    terminal.enter("and then this").await;
    terminal.shows("queued: and then this").await;
    terminal.press("Escape").await;
    terminal.shows("asked it to stop\n› and then this").await;
    assert_eq!(world.fake.count(), 1, "it is not sent by itself");
    terminal.press("C-c").await;
    prompt(&terminal).await;
    terminal.press("C-d").await;
    terminal.shows("code 0").await;
}

/// The text arrives faster than the time in which the rest of a key may follow its Esc.
#[tokio::test]
async fn escape_stops_a_text_that_keeps_coming() {
    let words = "word ".repeat(20_000);
    let endless = Reply::text(&words).token_delay(Duration::from_millis(10));
    let world = World::new(Script::always(endless)).await;
    let Some(terminal) = Terminal::open(&world, 80, 30).await else { return };
    terminal.enter("posse chat; echo code $?").await;
    prompt(&terminal).await;
    terminal.enter("talk").await;
    terminal.shows("word word word").await;
    terminal.press("Escape").await;
    terminal.shows("asked it to stop\n›").await;
    terminal.type_out("next").await;
    terminal.shows("› next").await;
    terminal.press("C-c").await;
    prompt(&terminal).await;
    terminal.press("C-d").await;
    terminal.shows("code 0").await;
}

#[tokio::test]
async fn what_was_queued_and_is_not_sent_is_told_when_the_person_leaves() {
    let gate = Gate::new();
    let write = json!({"file_path": "a.txt", "content": "x"});
    let first = Reply::tool_call("Write", write).held_by(&gate);
    let world = World::new(Script::always(first)).await;
    let Some(terminal) = Terminal::open(&world, 80, 40).await else { return };
    terminal.enter("posse chat --mode ask; echo code $?").await;
    prompt(&terminal).await;
    terminal.enter("talk").await;
    gate.wait_for_held(1).await.unwrap();
    terminal.enter("and then this").await;
    terminal.shows("queued: and then this").await;
    gate.open();
    terminal.shows("[y]").await;
    terminal.press("C-d").await;
    terminal.shows("not sent: and then this").await;
    terminal.shows("code 130").await;
}

#[tokio::test]
async fn the_timer_of_a_command_counts_from_its_own_start() {
    let gate = Gate::new();
    let wait = "echo tick; until [ -e go ]; do sleep 0.05; done";
    let first = Reply::tool_call("Bash", json!({"command": wait})).held_by(&gate);
    let world = World::new(Script::turns([first, Reply::text("done")])).await;
    let Some(terminal) = Terminal::open(&world, 80, 30).await else { return };
    terminal.enter("posse run go; echo code $?").await;
    let seconds = |screen: &str, what: &str| -> Option<u64> {
        screen.split(what).nth(1)?.split('s').next()?.parse().ok()
    };
    eventually("three seconds of waiting", async || {
        seconds(&terminal.screen().await, "waiting for the model · ") >= Some(3)
    })
    .await;
    let opened = Instant::now();
    gate.open();
    let screen = terminal.shows("Bash: tick · ").await;
    assert!(seconds(&screen, "Bash: tick · ") <= Some(opened.elapsed().as_secs()), "{screen}");
    world.write("go", "");
    terminal.shows("code 0").await;
}

#[tokio::test]
async fn a_chat_is_chosen_among_several_and_told_again() {
    let world = World::new(Script::always(Reply::text("**{{turn}}** {{last_user}}"))).await;
    world.feed(&["chat"], "alpha one\nalpha two\nalpha three\n").await.expect(0);
    world.feed(&["chat"], "beta\n").await.expect(0);
    let Some(terminal) = Terminal::open(&world, 80, 30).await else { return };
    terminal.enter("posse chat --resume; echo code $?").await;
    let screen = terminal.shows("Choose a chat").await;
    assert!(screen.contains("›  1 ") && screen.contains("beta"), "{screen}");
    terminal.press("Down").await;
    terminal.shows("›  2 ").await;
    terminal.press("Enter").await;
    let told = ": alpha one\n… 2 earlier messages\n› alpha two\n1 alpha two\n› alpha three\n2 alpha three\n›";
    let screen = terminal.shows(told).await;
    assert!(!screen.contains("Choose"), "the list is gone: {screen}");
    terminal.enter("/resume").await;
    terminal.shows("Choose a chat").await;
    terminal.type_out("1").await;
    terminal.shows(": beta\n› beta\n0 beta\n›").await;
    terminal.enter("more").await;
    terminal.shows("1 more\n›").await;
    terminal.enter("/clear").await;
    terminal.shows("general-purpose · ").await;
    prompt(&terminal).await;
    terminal.enter("gamma").await;
    terminal.shows("0 gamma\n›").await;
    terminal.enter("/quit").await;
    terminal.shows("code 0").await;
    let runs = world.list().await;
    assert_eq!(runs.len(), 3);
    let alpha = runs.iter().find(|run| run.to_string().contains("alpha")).unwrap();
    terminal.enter("clear; posse chat; echo again $?").await;
    prompt(&terminal).await;
    terminal.enter(&format!("/resume {}", alpha["run"].as_str().unwrap())).await;
    terminal.shows("2 alpha three\n›").await;
    terminal.enter("four").await;
    terminal.shows("3 four\n›").await;
    terminal.enter("/quit").await;
    terminal.shows("again 0").await;
    terminal.enter("clear; posse chat --resume; echo none $?").await;
    terminal.shows("Choose a chat").await;
    terminal.press("Escape").await;
    terminal.shows("none 130").await;
}

#[tokio::test]
async fn lines_go_on_and_tab_completes_commands_and_files() {
    let world = World::new(Script::always(Reply::text("heard"))).await;
    world.write("setup.sh", "");
    let Some(terminal) = Terminal::open(&world, 80, 30).await else { return };
    terminal.enter("posse chat; echo code $?").await;
    prompt(&terminal).await;
    terminal.enter("one\\").await;
    terminal.type_out("two").await;
    terminal.press("M-Enter").await;
    terminal.enter("three").await;
    terminal.shows("heard\n›").await;
    let said = |at: usize| {
        let body = &world.fake.requests()[at].body;
        let messages = body["messages"].as_array().unwrap();
        messages.last().unwrap()["content"].to_string()
    };
    assert!(said(0).contains("one\\ntwo\\nthree"), "{}", said(0));
    terminal.type_out("look at @set").await;
    terminal.press("Tab").await;
    terminal.shows("› look at @setup.sh").await;
    terminal.press("Enter").await;
    eventually("the second", async || world.fake.count() == 2).await;
    assert!(said(1).contains("[In the working folder: file setup.sh]"), "{}", said(1));
    prompt(&terminal).await;
    terminal.type_out("/perm").await;
    terminal.press("Tab").await;
    terminal.shows("› /permissions").await;
    terminal.press("Enter").await;
    terminal.shows("mode      ").await;
    terminal.enter("quit").await;
    terminal.shows("code 0").await;
}

/// What is drawn of those at work goes away before the person types, and takes nothing along.
#[tokio::test]
async fn beside_tasks_in_the_background_every_line_stays() {
    let gate = Gate::new();
    let task =
        |name: &str| json!({"task": format!("kid {name}"), "label": name, "agentId": "explore"});
    let calls = ["one", "two", "three"]
        .iter()
        .fold(Reply::empty(), |reply, name| reply.and_tool_call("spawn_subagent", task(name)));
    let lead = Conversation::when(When::any().first_user_contains("lead"))
        .reply(calls)
        .reply(Reply::text("They work."))
        .reply(Reply::text("Here I am."))
        .reply(Reply::text("All is well."));
    let kids = Rule::when(When::any()).reply(Reply::text("seen").held_by(&gate));
    let world = World::new(Script::new().conversation(lead).rule(kids)).await;
    let Some(terminal) = Terminal::open(&world, 80, 40).await else { return };
    terminal.enter("posse chat; echo co''de $?").await;
    prompt(&terminal).await;
    terminal.enter("lead them").await;
    gate.wait_for_held(3).await.unwrap();
    terminal.shows("3 running in the background\n›").await;
    terminal.enter("and you?").await;
    terminal.shows("Here I am.\n◇ 3 running in the background\n›").await;
    terminal.enter("/model").await;
    let screen = terminal.shows("lists them\n›").await;
    let told = screen.split_once("They work.").unwrap().1;
    let begin = "\n◇ 3 running in the background\n› and you?\nHere I am.\n\
                 ◇ 3 running in the background\n› /model\nmodel: anthropic/";
    assert!(told.starts_with(begin), "{screen}");
    gate.open();
    terminal.shows("has ended; Enter shows what comes of it").await;
    terminal.press("C-d").await;
    terminal.shows("code 0").await;
}

/// An idle chat whose background child has just asked whether it may touch a file.
async fn asked_while_idle() -> Option<(World, Terminal)> {
    let gate = Gate::new();
    let spawn = json!({"task": "kid: touch the file", "label": "kid"});
    let lead = Conversation::when(When::any().first_user_contains("lead"))
        .reply(Reply::tool_call("spawn_subagent", spawn))
        .reply(Reply::text("I wait."))
        .reply(Reply::text("It came."));
    let touch = json!({"command": "touch made.txt"});
    let kid = Conversation::when(When::any().first_user_contains("kid"))
        .reply(Reply::tool_call("Bash", touch).held_by(&gate))
        .reply(Reply::text("touched"));
    let world = World::new(Script::new().conversation(kid).conversation(lead)).await;
    let terminal = Terminal::open(&world, 100, 40).await?;
    terminal.enter("posse chat --mode ask; echo co''de $?").await;
    prompt(&terminal).await;
    terminal.enter("lead the way").await;
    terminal.shows("1 running in the background\n›").await;
    gate.open();
    terminal.shows("asks you something; Enter shows the question").await;
    Some((world, terminal))
}

/// An idle chat says at once that a background child asks something, and Enter shows the question.
#[tokio::test]
async fn an_idle_chat_tells_that_a_task_in_the_background_asks() {
    let Some((world, terminal)) = asked_while_idle().await else { return };
    terminal.press("Enter").await;
    terminal.shows("touch made.txt").await;
    terminal.shows("allow it?").await;
    terminal.enter("y").await;
    terminal.shows("has ended; Enter shows what comes of it").await;
    assert!(world.work().join("made.txt").exists());
    terminal.press("Enter").await;
    terminal.shows("It came.").await;
    terminal.press("C-d").await;
    terminal.shows("code 0").await;
}

/// Posse stores a message when the person sends it, also if it then asks the person something.
#[tokio::test]
async fn a_message_to_an_idle_chat_is_stored_before_anything_is_asked() {
    let Some((world, terminal)) = asked_while_idle().await else { return };
    terminal.enter("please fix the tests").await;
    terminal.shows("allow it?").await;
    terminal.press("C-d").await;
    terminal.shows("code ").await;
    let run = world.list().await[0]["run"].as_str().unwrap().to_owned();
    let log = world.run(&["runs", "log", &run, "--json"]).await.expect(0).out;
    assert!(log.contains("please fix the tests"), "{log}");
}

/// Ctrl-C at the question of a background child gives the prompt back. The question stays.
#[tokio::test]
async fn ctrl_c_at_the_question_of_a_background_task_leads_back_to_the_prompt() {
    let Some((world, terminal)) = asked_while_idle().await else { return };
    terminal.press("Enter").await;
    terminal.shows("allow it?").await;
    terminal.press("C-c").await;
    terminal.shows("Enter shows it again\n◇ 1 running in the background\n›").await;
    terminal.enter("/model").await;
    terminal.shows("model: anthropic/").await;
    terminal.press("Enter").await;
    eventually("the question", async || terminal.screen().await.matches("allow it?").count() == 2)
        .await;
    terminal.enter("y").await;
    terminal.shows("has ended; Enter shows what comes of it").await;
    assert!(world.work().join("made.txt").exists());
    terminal.press("C-d").await;
    terminal.shows("code 0").await;
}

/// A chat that another terminal has paused continues with the next message.
#[tokio::test]
async fn a_message_to_a_chat_that_is_paused_continues_it() {
    let world = World::saying("I am here").await;
    let Some(terminal) = Terminal::open(&world, 100, 40).await else { return };
    terminal.enter("posse chat; echo co''de $?").await;
    prompt(&terminal).await;
    terminal.enter("one").await;
    terminal.shows("I am here").await;
    prompt(&terminal).await;
    let run = world.only_run().await;
    world.run(&["runs", "pause", &run]).await.expect(0);
    terminal.enter("two").await;
    terminal.shows("this chat was paused; it continues with your message").await;
    eventually("the answer", async || terminal.screen().await.matches("I am here").count() == 2)
        .await;
    prompt(&terminal).await;
    terminal.press("C-d").await;
    terminal.shows("code 0").await;
}

/// `/cancel` also stops a task in the background that waits for an answer.
#[tokio::test]
async fn cancel_ends_the_question_of_a_background_task() {
    let Some((world, terminal)) = asked_while_idle().await else { return };
    terminal.enter("/cancel").await;
    terminal.shows("1 run told to stop").await;
    terminal.shows("cancelled by the user").await;
    prompt(&terminal).await;
    terminal.press("C-d").await;
    let screen = terminal.shows("code 0").await;
    assert!(!screen.contains("allow it?") && !screen.contains("not done"), "{screen}");
    let list = world.run(&["runs", "list", "--all"]).await.expect(0).out;
    assert!(list.contains(" cancelled "), "{list}");
    assert!(!world.work().join("made.txt").exists());
}

/// A chat with a task in the background, whose command takes a moment to be stopped.
async fn with_a_task_at_work(command: &str) -> Option<(World, Terminal)> {
    let spawn = json!({"task": "kid: look", "label": "kid"});
    let lead = Conversation::when(When::any().first_user_contains("lead"))
        .reply(Reply::tool_call("spawn_subagent", spawn))
        .reply(Reply::text("It works."))
        .reply(Reply::text("Here I am."));
    let stubborn = "trap '' TERM; echo yes > begun; while :; do sleep 0.1; done";
    let kid = Rule::when(When::any()).reply(bash(stubborn));
    let world = World::new(Script::new().conversation(lead).rule(kid)).await;
    let terminal = Terminal::open(&world, 100, 40).await?;
    terminal.enter(&format!("{command}; echo co''de $?")).await;
    prompt(&terminal).await;
    terminal.enter("lead the way").await;
    world.lines_in("begun", 1).await;
    terminal.shows("1 running in the background\n›").await;
    Some((world, terminal))
}

/// What is drawn of those at work is taken away when the person leaves.
#[tokio::test]
async fn leaving_a_chat_takes_away_what_is_drawn_of_its_tasks() {
    let Some((_world, terminal)) = with_a_task_at_work("posse chat").await else { return };
    terminal.press("C-d").await;
    let screen = terminal.shows("code 0").await;
    let (_, left) = screen.split_once("To continue: `posse chat --resume ").unwrap();
    assert_eq!(left.lines().nth(1), Some("code 0"), "{screen}");
}

/// The tasks of a chat that a person left rest until the chat goes on.
#[tokio::test]
async fn the_tasks_of_a_chat_that_was_left_rest_until_it_is_resumed() {
    let gate = Gate::new();
    let spawn = json!({"task": "kid: look", "label": "kid"});
    let lead = Conversation::when(When::any().first_user_contains("lead"))
        .reply(Reply::tool_call("spawn_subagent", spawn))
        .reply(Reply::text("It works."))
        .reply(Reply::text("It came."));
    let other = Rule::when(When::any().first_user_contains("other")).reply(Reply::text("Other."));
    let kid = Rule::when(When::any()).reply(Reply::text("seen").held_by(&gate));
    let world = World::new(Script::new().conversation(lead).rule(other).rule(kid)).await;
    let Some(terminal) = Terminal::open(&world, 100, 40).await else { return };
    terminal.enter("posse chat; echo co''de $?").await;
    prompt(&terminal).await;
    terminal.enter("lead the way").await;
    gate.wait_for_held(1).await.unwrap();
    terminal.shows("1 running in the background\n›").await;
    terminal.press("C-d").await;
    terminal.shows("1 background task not done: stopped now, until you resume this chat").await;
    terminal.shows("code 0").await;
    let requests = world.fake.count();
    let exit = world.run(&["run", "the other thing"]).await.expect(0);
    assert!(!exit.err.contains("unfinished"), "{}", exit.err);
    assert_eq!(world.fake.count(), requests + 1, "nobody went on with the task");
    terminal.enter("clear; posse chat -c").await;
    terminal.shows("1 running in the background\n›").await;
    gate.open();
    terminal.shows("has ended; Enter shows what comes of it").await;
    terminal.press("Enter").await;
    terminal.shows("It came.").await;
}

/// A chat that is out of budget ends its tasks, and lists say so.
#[tokio::test]
async fn the_tasks_of_a_chat_that_ran_out_of_budget_are_listed_as_cancelled() {
    // One turn is left to the chat, whether it or the task takes its turn first.
    let command = "posse chat --budget turns=4";
    let Some((world, terminal)) = with_a_task_at_work(command).await else { return };
    terminal.enter("more").await;
    terminal.shows("Here I am.").await;
    terminal.enter("more still").await;
    terminal.shows("out of budget").await;
    terminal.shows("code ").await;
    let list = world.run(&["runs", "list", "--all"]).await.expect(0).out;
    assert!(list.contains(" cancelled ") && !list.contains("queued"), "{list}");
    let again = world.feed(&["chat", "-c"], "").await;
    assert!(!again.err.contains("in the background"), "{again:?}");
}
