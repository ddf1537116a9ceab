//! Asking the person at the terminal, and answering from elsewhere.

use crate::tmux::Terminal;
use crate::tree::{lead, task};
use crate::world::{World, bash, eventually, started};
use posse_testkit::{Conversation, Reply, Script, When};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

fn writes(name: &str) -> Reply {
    Reply::tool_call("Write", json!({"file_path": name, "content": "written\n"}))
}

fn script() -> Script {
    let one = Conversation::when(When::any().first_user_contains("one"));
    let one = one.reply(writes("b.txt")).reply(Reply::text("It says: {{last_tool_result}}"));
    Script::new().conversation(one)
}

#[tokio::test]
async fn a_person_is_shown_what_will_change_and_says_yes() {
    let world = World::new(script()).await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    terminal.enter("posse run --mode ask one; echo code $?").await;
    let screen = terminal.shows("allow it?").await;
    for part in [
        "general-purpose (run ",
        ", depth 0) wants to call Write",
        "+written",
        "[y] once",
        "[a] always, in every folder: ",
    ] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    assert!(!world.work().join("b.txt").exists());
    terminal.enter("perhaps").await;
    terminal.shows("type y, r, a or n alone").await;
    terminal.enter("y").await;
    terminal.shows("code 0").await;
    assert_eq!(world.read("b.txt"), "written\n");
}

#[tokio::test]
async fn who_wants_json_is_asked_nothing_at_a_terminal_either() {
    let world = World::new(script()).await;
    let Some(terminal) = Terminal::open(&world, 100, 60).await else { return };
    for form in ["--json", "--stream-json"] {
        terminal.enter(&format!("posse run {form} --mode ask one >out; echo code {form} $?")).await;
        terminal.shows(&format!("code {form} 0")).await;
        assert!(world.read("out").contains("completed"), "{form}");
    }
    assert!(!world.work().join("b.txt").exists(), "what would be asked about is refused");
}

#[tokio::test]
async fn a_person_says_no_and_the_agent_reads_why() {
    let world = World::new(script()).await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    terminal.enter("posse run --mode ask one; echo code $?").await;
    terminal.shows("allow it?").await;
    terminal.enter("n use another name").await;
    let screen = terminal.shows("code 0").await;
    assert!(screen.contains("use another name"), "{screen}");
    assert!(!world.work().join("b.txt").exists());
}

#[tokio::test]
async fn escape_takes_back_what_is_typed_and_then_says_no() {
    let world = World::new(script()).await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    terminal.enter("posse run --mode ask one; echo code $?").await;
    terminal.shows("allow it?").await;
    terminal.type_out("y").await;
    terminal.shows("allow it? y").await;
    terminal.press("Escape").await;
    let is_typed = async || terminal.screen().await.contains("allow it? y");
    eventually("nothing is typed", async || !is_typed().await).await;
    terminal.press("Escape").await;
    let screen = terminal.shows("code 0").await;
    assert!(screen.contains("allow it? no\n") && !screen.contains("^["), "{screen}");
    assert!(!world.work().join("b.txt").exists());
}

/// Three calls that cannot succeed whatever a person says, and one that can.
#[tokio::test]
async fn nobody_is_asked_about_a_call_with_wrong_arguments() {
    let wrong = Conversation::when(When::any().first_user_contains("wrong"))
        .reply(Reply::tool_call("Edit", json!({"path": "a", "old_string": "x", "new_string": "y"})))
        .reply(Reply::tool_call("Write", json!({"file_path": "b.txt"})))
        .reply(Reply::tool_call("Bash", json!({"cmd": "true"})))
        .reply(writes("b.txt"))
        .reply(Reply::text("done"));
    let world = World::new(Script::new().conversation(wrong)).await;
    let Some(terminal) = Terminal::open(&world, 100, 40).await else { return };
    terminal.enter("posse run --mode ask wrong; echo code $?").await;
    let screen = terminal.shows("allow it?").await;
    for part in ["has no argument `path`", "needs the argument `content`", "wants to call Write"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    assert_eq!(screen.matches("wants to call").count(), 1, "{screen}");
    terminal.enter("y").await;
    terminal.shows("code 0").await;
    assert_eq!(world.read("b.txt"), "written\n");
}

#[tokio::test]
async fn what_was_typed_before_a_question_was_seen_does_not_answer_it() {
    let two = Conversation::when(When::any().first_user_contains("two"));
    let two = two.reply(writes("b.txt")).reply(writes("c.txt")).reply(Reply::text("done"));
    let world = World::new(Script::new().conversation(two)).await;
    let Some(terminal) = Terminal::open(&world, 100, 40).await else { return };
    terminal.enter("posse run --mode ask two; echo code $?").await;
    terminal.shows("allow it?").await;
    terminal.type_out("y\ny\n").await;
    let asks = |screen: &str| screen.matches("allow it?").count();
    eventually("the second question", async || asks(&terminal.screen().await) == 2).await;
    assert_eq!(world.read("b.txt"), "written\n");
    assert_eq!(asks(&terminal.screen().await), 2, "it is still asked");
    assert!(!world.work().join("c.txt").exists());
    terminal.enter("n").await;
    terminal.shows("code 0").await;
    assert!(!world.work().join("c.txt").exists());
}

#[tokio::test]
async fn what_is_always_allowed_is_written_to_the_settings_and_not_asked_again() {
    let world = World::new(script()).await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    terminal.enter("posse run --mode ask one; echo code $?").await;
    terminal.shows("allow it?").await;
    terminal.enter("a").await;
    let screen = terminal.shows("code 0").await;
    assert_eq!(world.read("b.txt"), "written\n", "{screen}");
    let settings = std::fs::read_to_string(world.home().join("config/posse/config.toml")).unwrap();
    assert!(settings.contains("[permissions]") && settings.contains("allow = ["), "{settings}");
    std::fs::remove_file(world.work().join("b.txt")).unwrap();
    // Nobody can be asked here.
    world.run(&["run", "--mode", "ask", "one"]).await.expect(0);
    assert_eq!(world.read("b.txt"), "written\n");
}

#[tokio::test]
async fn a_question_can_be_left_and_answered_from_another_process() {
    let world = World::new(script()).await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    terminal.enter("posse run --mode ask one; echo code $?").await;
    terminal.shows("allow it?").await;
    terminal.press("C-c").await;
    terminal.shows("code ").await;
    let asked = world.run(&["runs", "questions", "--json"]).await.expect(0).json();
    assert_eq!(asked[0]["tool"], "Write", "{asked}");
    let run = asked[0]["run"].as_str().unwrap();
    let unclear = world.run(&["runs", "answer", run]).await.expect(2);
    assert!(unclear.out.contains("+written"), "{unclear:?}");
    let digest = asked[0]["digest"].as_str().unwrap();
    let shown = world.run(&["runs", "questions"]).await.expect(0).out;
    for answer in ["--once", "--for-run    # Edit(/b.txt)", "--always ", "--no \"why\""] {
        let command = format!("--digest {} {answer}", &digest[..12]);
        assert!(shown.contains(&command), "{command}: {shown}");
    }
    assert!(!shown.contains("[y]"), "no keys can be pressed there: {shown}");
    assert!(asked[0]["at"].as_str().unwrap().ends_with('Z'), "{asked}");
    for (wrong, says) in [("0123456789ab", "something else than what was shown"), ("", "at least")]
    {
        let other =
            world.run(&["runs", "answer", run, "--digest", wrong, "--once"]).await.expect(2);
        assert!(other.err.contains(says), "{other:?}");
    }
    let answer = ["runs", "answer", run, "--digest", &digest[..12], "--once"];
    world.run(&answer).await.expect(0);
    world.run(&["runs", "resume", run]).await.expect(0);
    assert_eq!(world.read("b.txt"), "written\n");
    let none = world.run(&["runs", "questions"]).await.expect(0);
    assert!(none.err.contains("no run asks anything"), "{none:?}");
}

#[tokio::test]
async fn a_question_that_is_answered_elsewhere_is_withdrawn_and_the_run_followed_to_its_end() {
    for (command, note, code, written) in [
        (&["answer", "h", "--once"][..], "answered elsewhere", "code 0", "written\n"),
        (&["answer", "h", "--no", "not now"], "answered elsewhere", "code 0", ""),
        (&["cancel", "h"], "no longer asked", "code 3", ""),
    ] {
        let world = World::new(script()).await;
        let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
        terminal.enter("posse run --label h --mode ask one; echo code $?").await;
        terminal.shows("allow it?").await;
        world.run(&[&["runs"], command].concat()).await.expect(0);
        let screen = terminal.shows(code).await;
        assert!(screen.contains(note), "{command:?}: {screen}");
        assert_eq!(world.read("b.txt"), written, "{command:?}");
    }
}

/// Goes on with the run `h`, which asks again, and says yes.
async fn resumed_and_allowed(terminal: &Terminal) {
    terminal.enter("clear").await;
    let is_asked = async || terminal.screen().await.contains("allow it?");
    eventually("the old question is gone", async || !is_asked().await).await;
    terminal.enter("posse runs resume h; echo again $?").await;
    terminal.shows("allow it?").await;
    terminal.enter("y").await;
    terminal.shows("again 0").await;
}

#[tokio::test]
async fn a_run_that_was_left_at_its_question_is_resumed_and_asks_again() {
    let world = World::new(script()).await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    interrupted_at_its_question(&terminal, "posse run --label h --mode ask one; echo code $?")
        .await;
    for arguments in [&["runs", "resume", "h"][..], &["runs", "resume", "h", "--json"]] {
        let nobody = world.run(arguments).await.expect(1);
        for part in ["waits for an answer", "`posse runs questions ", "`posse runs answer "] {
            assert!(nobody.err.contains(part), "{part}: {nobody:?}");
        }
    }
    resumed_and_allowed(&terminal).await;
    assert_eq!(world.read("b.txt"), "written\n");
}

/// One call needs no answer, and one does.
#[tokio::test]
async fn a_call_that_ran_beside_a_question_is_shown_once() {
    let two = writes("a.txt").and_tool_call("Write", json!({"file_path": "b.txt", "content": ""}));
    let two = Conversation::when(When::any()).reply(two).reply(Reply::text("done"));
    let world = World::new(Script::new().conversation(two)).await;
    let ask = ["run", "--label", "h", "--mode", "ask", "--allow", "Edit(a.txt)", "go"];
    let piped = world.run(&ask).await.expect(0);
    for part in ["● Write a.txt", "● Write b.txt"] {
        assert_eq!(piped.err.matches(part).count(), 1, "{part}: {piped:?}");
    }
    std::fs::remove_file(world.work().join("a.txt")).unwrap();
    let Some(terminal) = Terminal::open(&world, 100, 40).await else { return };
    let command = "posse run --label k --mode ask --allow 'Edit(a.txt)' go; echo code $?";
    interrupted_at_its_question(&terminal, command).await;
    terminal.enter("posse runs resume k; echo again $?").await;
    let asked = async || terminal.screen().await.matches("allow it?").count();
    eventually("it is asked again", async || asked().await == 2).await;
    terminal.enter("n").await;
    let screen = terminal.shows("again 0").await;
    assert_eq!(screen.matches("● Write a.txt").count(), 1, "{screen}");
    let (ran, asked) = (screen.find("● Write a.txt"), screen.find("wants to call"));
    assert!(ran < asked, "{screen}");
    assert_eq!(world.read("a.txt"), "written\n");
}

const UNTIL: &str = "until [ -e go ]; do sleep 0.05; done";

/// It takes longer than the question waits.
#[tokio::test]
async fn a_call_that_ends_while_a_person_is_asked_is_shown_above_the_prompt() {
    let two = Reply::tool_call("Bash", json!({"command": "sh until.sh"}));
    let two = two.and_tool_call("Write", json!({"file_path": "b.txt", "content": "b"}));
    let two = Conversation::when(When::any()).reply(two).reply(Reply::text("done"));
    let world = World::new(Script::new().conversation(two)).await;
    world.write("until.sh", UNTIL);
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    terminal.enter("posse run --mode ask --allow 'Bash(sh until.sh)' go; echo code $?").await;
    terminal.shows("allow it?").await;
    terminal.type_out("n not").await;
    terminal.shows("allow it? n not").await;
    world.write("go", "");
    terminal.shows("● Bash sh until.sh").await;
    // The question is no longer right above its prompt.
    terminal.shows("\n  Write: creates b.txt … · allow it? n not").await;
    terminal.enter(" now").await;
    let screen = terminal.shows("code 0").await;
    assert_eq!(screen.matches("● Bash sh until.sh").count(), 1, "{screen}");
    assert_eq!(screen.matches("allow it?").count(), 1, "{screen}");
    assert!(screen.contains("not now") && !world.work().join("b.txt").exists(), "{screen}");
}

#[tokio::test]
async fn a_step_that_ends_after_ctrl_c_is_shown() {
    let world = World::new(Script::turns([bash(UNTIL), Reply::text("done")])).await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    terminal.enter("posse run go; echo code $?").await;
    terminal.shows("  Bash until").await;
    terminal.press("C-c").await;
    terminal.shows("stops after the current step").await;
    world.write("go", "");
    let screen = terminal.shows("code 130").await;
    assert_eq!(screen.matches("● Bash until").count(), 1, "{screen}");
}

#[tokio::test]
async fn what_leads_to_the_next_question_is_shown_before_it() {
    let second = json!({"file_path": "c.txt", "content": "c"});
    let two = Conversation::when(When::any())
        .reply(writes("b.txt"))
        .reply(Reply::text("Now the other.").and_tool_call("Write", second))
        .reply(Reply::text("done"));
    let world = World::new(Script::new().conversation(two)).await;
    let Some(terminal) = Terminal::open(&world, 100, 50).await else { return };
    terminal.enter("posse run --label h --mode ask go; echo code $?").await;
    terminal.shows("allow it?").await;
    world.run(&["runs", "answer", "h", "--once"]).await.expect(0);
    let asked = async || terminal.screen().await.matches("allow it?").count();
    eventually("the second question", async || asked().await == 2).await;
    terminal.enter("y").await;
    let screen = terminal.shows("code 0").await;
    let places: Vec<_> =
        ["answered elsewhere", "● Write b.txt", "Now the other.", "│ creates c.txt"]
            .map(|part| screen.find(part).unwrap_or_else(|| panic!("{part}: {screen}")))
            .into();
    assert!(places.is_sorted(), "{screen}");
}

/// Has `command` start a run, and presses Ctrl-C when it asks.
async fn interrupted_at_its_question(terminal: &Terminal, command: &str) {
    terminal.enter(command).await;
    terminal.shows("allow it?").await;
    terminal.press("C-c").await;
    terminal.shows("code 130").await;
}

#[tokio::test]
async fn who_answers_a_run_that_nobody_executes_is_told_how_it_goes_on() {
    let world = World::new(script()).await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    interrupted_at_its_question(&terminal, "posse run --label h --mode ask one; echo code $?")
        .await;
    let answered = world.run(&["runs", "answer", "h", "--once"]).await.expect(0);
    assert!(answered.err.contains("is interrupted: `posse runs resume"), "{answered:?}");
    world.run(&["runs", "resume", "h"]).await.expect(0);
    assert_eq!(world.read("b.txt"), "written\n");
}

/// Who answers need not be able to execute the run.
#[tokio::test]
async fn an_answer_from_a_terminal_without_the_key_leaves_the_run_to_others() {
    let world = World::new(script()).await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    for round in 0..4 {
        terminal.enter(&format!("clear; rm -f b.txt; echo ro''und {round}")).await;
        terminal.shows(&format!("round {round}")).await;
        terminal.enter("posse run --mode ask one; echo code $?").await;
        terminal.shows("allow it?").await;
        let asked = world.run(&["runs", "questions", "--json"]).await.expect(0).json();
        let run = asked[0]["run"].as_str().unwrap();
        let mut command = world.command(&["runs", "answer", run, "--once"]);
        command.env_remove("ANTHROPIC_API_KEY").env_remove("ANTHROPIC_BASE_URL");
        started(command).end().await.expect(0);
        terminal.shows("code 0").await;
        assert_eq!(world.read("b.txt"), "written\n");
    }
}

/// To watch is to look: who answers there need not have the key, and the run stays where it is.
#[tokio::test]
async fn an_answer_while_watching_leaves_the_run_where_it_is_executed() {
    let world = World::new(script()).await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    let Some(watching) = Terminal::open_as(&world, "watching", 100, 30).await else { return };
    terminal.enter("posse run --label h --mode ask one; echo code $?").await;
    terminal.shows("allow it?").await;
    watching.enter("unset ANTHROPIC_API_KEY ANTHROPIC_BASE_URL; posse runs watch h").await;
    watching.shows("allow it?").await;
    watching.enter("y").await;
    let screen = terminal.shows("code 0").await;
    assert!(screen.contains("answered elsewhere") && !screen.contains("taken over"), "{screen}");
    assert_eq!(world.read("b.txt"), "written\n");
    terminal.enter("exit").await;
}

#[tokio::test]
async fn who_ends_the_input_at_a_question_leaves_the_chat_and_is_asked_again() {
    let world = World::new(script()).await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    terminal.enter("posse chat --mode ask; echo le''ft $?").await;
    terminal.shows("\n›").await;
    terminal.enter("one").await;
    terminal.shows("allow it?").await;
    terminal.press("C-d").await;
    let screen = terminal.shows("left ").await;
    assert!(screen.contains("the question stays open"), "{screen}");
    assert!(screen.contains("To continue: `posse chat --resume"), "{screen}");
    // Or the question of before would be taken for the one to come.
    terminal.enter("clear; echo cle''ared").await;
    terminal.shows("cleared").await;
    terminal.enter("posse chat --continue; echo code $?").await;
    terminal.shows("allow it?").await;
    terminal.enter("y").await;
    terminal.shows("It says: Created b.txt").await;
    terminal.enter("/quit").await;
    terminal.shows("code 0").await;
}

#[tokio::test]
async fn a_question_that_was_left_is_not_forgotten() {
    let two = Conversation::when(When::any().first_user_contains("two"));
    let world = World::new(script().conversation(two.reply(Reply::text("done")))).await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    terminal.enter("posse run --mode ask one; echo en''ded").await;
    terminal.shows("allow it?").await;
    terminal.press("C-d").await;
    terminal.shows("ended").await;
    terminal.enter("clear; posse run two").await;
    terminal.shows("waits for your answer: posse runs questions").await;
}

/// What cannot be seen, or looks like something else, is written out.
#[tokio::test]
async fn a_question_shows_rare_characters_escaped() {
    let hidden = "echo a\u{61c}b\u{2800}c\u{335}d\u{1d173}e\u{1680}f\u{200b}g é 中 | cat";
    let call = Reply::tool_call("Bash", json!({"command": hidden}));
    let world = World::new(Script::turns([call, Reply::text("done")])).await;
    let Some(terminal) = Terminal::open(&world, 160, 30).await else { return };
    terminal.enter("posse run --mode ask one; echo code $?").await;
    let screen = terminal.shows("allow it?").await;
    let shown = "a\\u{61c}b\\u{2800}c\\u{335}d\\u{1d173}e\\u{1680}f\\u{200b}g é 中 | cat";
    assert!(screen.contains(shown), "{screen}");
    terminal.press("C-c").await;
    terminal.shows("code ").await;
}

/// What stands far above the question is named beside it.
#[tokio::test]
async fn a_long_command_is_told_by_its_size_and_its_programs() {
    let hidden = format!("rm -rf build\n{}\necho done", vec!["# a comment"; 400].join("\n"));
    let call = Reply::tool_call("Bash", json!({"command": hidden}));
    let world = World::new(Script::turns([call, Reply::text("done")])).await;
    let Some(terminal) = Terminal::open(&world, 100, 12).await else { return };
    terminal.enter("posse run --mode ask one; echo code $?").await;
    terminal.shows("allow it?").await;
    terminal.shows("rows of a screen with 12: what you see may not be all").await;
    terminal.shows("it runs: rm, echo").await;
    terminal.press("C-c").await;
    terminal.shows("code ").await;
}

/// Of two answers at the same time one counts, and whoever gave the other is told so.
#[tokio::test]
async fn who_answers_too_late_is_told_so() {
    let world = World::new(script()).await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    for round in 0..6 {
        // The screen of the round before is gone when this is seen, which nobody typed.
        terminal.enter(&format!("clear; rm -f b.txt; echo ro''und {round}")).await;
        terminal.shows(&format!("round {round}")).await;
        let command = "posse run --mode ask one; echo code $?";
        interrupted_at_its_question(&terminal, command).await;
        let asked = world.run(&["runs", "questions", "--json"]).await.expect(0).json();
        let run = asked[0]["run"].as_str().unwrap();
        let yes = world.start(&["runs", "answer", run, "--once"]);
        let no = world.start(&["runs", "answer", run, "--no", "stop"]);
        let (yes, no) = tokio::join!(yes.end(), no.end());
        let codes = [yes.code, no.code];
        assert!(codes == [Some(0), Some(2)] || codes == [Some(2), Some(0)], "{yes:?} {no:?}");
        world.run(&["runs", "resume", run]).await.expect(0);
        let is_written = world.work().join("b.txt").exists();
        assert_eq!(is_written, yes.code == Some(0), "{round}: {yes:?} {no:?}");
    }
}

#[tokio::test]
async fn a_run_that_was_killed_at_its_question_asks_it_again_and_its_model_nothing_twice() {
    let world = World::new(script()).await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    let posse = env!("CARGO_BIN_EXE_posse");
    let run = format!("sh -c 'echo $$ >pid; exec {posse} run --label h --mode ask one'");
    terminal.enter(&format!("{run}; echo code $?")).await;
    terminal.shows("allow it?").await;
    let pid = world.lines_in("pid", 1).await.trim().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    terminal.shows("code 137").await;
    let asked = world.run(&["runs", "questions", "--json"]).await.expect(0).json();
    assert_eq!((asked.as_array().unwrap().len(), &asked[0]["tool"]), (1, &json!("Write")));
    resumed_and_allowed(&terminal).await;
    assert_eq!(world.read("b.txt"), "written\n");
    assert_eq!(world.fake.count(), 2, "the call that was asked about, and the answer");
}

#[tokio::test]
async fn what_a_run_below_asks_is_asked_again_when_the_one_above_is_resumed() {
    let world = World::new(script().conversation(lead([task("general-purpose", "one")]))).await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    terminal.enter("posse run --label h --mode ask 'lead them'; echo code $?").await;
    terminal.shows("allow it?").await;
    terminal.press("C-c").await;
    terminal.shows("code 130").await;
    let asked = world.run(&["runs", "questions", "--json"]).await.expect(0).json();
    let asking = asked[0]["run"].as_str().unwrap();
    let nobody = world.run(&["runs", "resume", "h"]).await.expect(1);
    let answer = nobody.err.split("`posse runs answer ").nth(1).unwrap_or_default();
    assert!(asking.ends_with(answer.split(' ').next().unwrap()), "{asking}: {nobody:?}");
    resumed_and_allowed(&terminal).await;
    assert_eq!(world.read("b.txt"), "written\n");
}

#[tokio::test]
async fn a_question_of_a_chat_goes_with_its_turn_and_the_chat_goes_on() {
    let talk = Conversation::when(When::any().first_user_contains("one"));
    let talk = talk.reply(writes("b.txt")).reply(Reply::text("never mind"));
    let world = World::new(Script::new().conversation(talk)).await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    terminal.enter("posse chat --mode ask; echo code $?").await;
    terminal.shows("›").await;
    terminal.enter("one").await;
    terminal.shows("allow it?").await;
    terminal.press("C-c").await;
    eventually("the prompt", async || terminal.screen().await.ends_with('›')).await;
    terminal.enter("two").await;
    terminal.shows("never mind").await;
    eventually("the prompt", async || terminal.screen().await.ends_with('›')).await;
    terminal.press("C-d").await;
    terminal.shows("code 0").await;
    assert!(!world.work().join("b.txt").exists());
}

/// Models send calls side by side all the time: one answer for the run is for all that its rule covers.
#[tokio::test]
async fn a_rule_for_the_run_covers_what_was_asked_beside_it() {
    let touch = |name: &str| json!({"command": format!("touch {name}")});
    let calls = Reply::tool_call("Bash", touch("one"))
        .and_tool_call("Bash", touch("two"))
        .and_tool_call("Bash", json!({"command": "mkdir three"}));
    let world = World::new(Script::turns([calls, Reply::text("done")])).await;
    let Some(terminal) = Terminal::open(&world, 100, 40).await else { return };
    terminal.enter("posse run --mode ask go; echo co''de $?").await;
    terminal.shows("[r] for this run: Bash(touch:*)").await;
    terminal.enter("r").await;
    terminal.shows("mkdir three").await;
    terminal.shows("[r] for this run: Bash(mkdir:*)").await;
    terminal.enter("y").await;
    terminal.shows("code 0").await;
    for made in ["one", "two", "three"] {
        assert!(world.work().join(made).exists(), "{made}");
    }
    let asked = terminal.screen().await.matches("allow it?").count();
    assert_eq!(asked, 2, "{}", terminal.screen().await);
}

/// Nobody says yes to one call while looking at another.
#[tokio::test]
async fn a_question_is_right_above_its_prompt_whatever_else_is_shown() {
    let lines = (0..60).fold(String::new(), |text, line| format!("{text}line {line}\n"));
    let notes = json!({"file_path": "notes.txt", "content": lines});
    let both =
        Reply::tool_call("Write", notes).and_tool_call("Bash", json!({"command": "rm -r src"}));
    let both = Conversation::when(When::any()).reply(both).reply(Reply::text("done"));
    let world = World::new(Script::new().conversation(both)).await;
    let Some(terminal) = Terminal::open(&world, 80, 24).await else { return };
    terminal.enter("posse run --mode ask go; echo code $?").await;
    terminal.shows("allow it?").await;
    terminal.enter("y").await;
    let screen = terminal.shows("wants to call Bash").await;
    let below = screen.split("wants to call Bash").last().unwrap();
    assert!(!below.contains("● Write"), "{screen}");
    terminal.shows("rm -r src").await;
    terminal.enter("n").await;
    let screen = terminal.shows("code 0").await;
    assert_eq!(screen.matches("wants to call Bash").count(), 1, "{screen}");
}

#[tokio::test]
async fn a_question_comes_again_below_what_was_shown_meanwhile() {
    let two = Reply::tool_call("Bash", json!({"command": "sh until.sh"}));
    let two = two.and_tool_call("Write", json!({"file_path": "b.txt", "content": "b"}));
    let two = Conversation::when(When::any()).reply(two).reply(Reply::text("done"));
    let world = World::new(Script::new().conversation(two)).await;
    world.write("until.sh", UNTIL);
    let Some(terminal) = Terminal::open(&world, 100, 40).await else { return };
    terminal.enter("posse run --mode ask --allow 'Bash(sh until.sh)' go; echo code $?").await;
    terminal.shows("allow it?").await;
    world.write("go", "");
    let asked = async || terminal.screen().await.matches("wants to call Write").count();
    eventually("it is asked again", async || asked().await == 2).await;
    let screen = terminal.shows("\n  allow it?").await;
    let below = screen.split("wants to call Write").last().unwrap();
    assert!(!below.contains("● Bash"), "{screen}");
    terminal.enter("y").await;
    terminal.shows("code 0").await;
    assert_eq!(world.read("b.txt"), "b");
}
