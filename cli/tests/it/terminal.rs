//! `posse` on a terminal: live progress, line editing, Ctrl-C.

use crate::tmux::Terminal;
use crate::world::{LONG, World, bash, gone, mode};
use posse_testkit::{Gate, Reply, Script};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

#[tokio::test]
async fn a_run_shows_progress_on_one_line_and_takes_it_away() {
    let gate = Gate::new();
    let noisy = "for i in $(seq 30); do echo line $i of an output that is wider than the terminal is; done; until [ -e go ]; do sleep 0.05; done";
    let script = Script::turns([
        Reply::text("I will look.").and_tool_call("Bash", json!({"command": noisy})),
        Reply::text("All is well here, and nothing else is to be said about what one can see.")
            .held_after_deltas(2, &gate),
    ]);
    let world = World::new(script).await;
    let Some(terminal) = Terminal::open(&world, 50, 20).await else { return };
    terminal.enter("posse run 'look'; echo code $?").await;
    let screen = terminal.shows("Bash: line 30 of").await;
    let status: Vec<&str> = screen.lines().filter(|line| line.contains("line ")).collect();
    assert_eq!(status.len(), 1, "one line, however much comes:\n{screen}");
    assert!(status[0].contains("… · ") && status[0].ends_with('s'), "{screen}");
    world.write("go", "");
    terminal.shows("All is").await;
    assert!(!terminal.screen().await.contains("one can see"), "it is still being said");
    gate.open();
    let screen = terminal.shows("code 0").await;
    assert_eq!(screen.matches("All is well").count(), 1, "{screen}");
    assert!(screen.contains("I will look.\n● Bash for i in"), "{screen}");
    assert!(
        !screen.contains("waiting for the model") && !screen.contains("Bash: line"),
        "{screen}"
    );
    assert!(screen.contains("✓ 2 turns · 1 tool call"), "{screen}");
}

#[tokio::test]
async fn the_answer_in_a_pipe_leaves_the_progress_on_the_terminal() {
    let gate = Gate::new();
    let script = Script::turns([bash("true"), Reply::text("the answer").held_by(&gate)]);
    let world = World::new(script).await;
    let Some(terminal) = Terminal::open(&world, 80, 20).await else { return };
    terminal.enter("posse run x > answer; cat -A answer; echo code $?").await;
    terminal.shows("● Bash true").await;
    terminal.shows("  waiting for the model · ").await;
    gate.open();
    let screen = terminal.shows("code 0").await;
    assert!(screen.contains("\nthe answer$\ncode 0"), "{screen}");
    // The other way round: text live, progress in a file without control characters.
    terminal.enter("clear; posse run y 2> progress; echo again $?").await;
    let screen = terminal.shows("again 0").await;
    assert!(screen.contains("the answer\nagain 0"), "{screen}");
    let progress = world.read("progress");
    assert!(progress.contains("● Bash true") && !progress.contains('\x1b'), "{progress:?}");
}

#[tokio::test]
async fn ctrl_c_interrupts_the_turn_and_not_the_session() {
    let gate = Gate::new();
    let script = Script::turns([
        Reply::text("a long story that goes on and on").held_after_deltas(3, &gate),
        Reply::text("then a command").and_tool_call("Bash", json!({"command": LONG})),
        Reply::text("as you wish"),
    ]);
    let world = World::new(script).await;
    let Some(terminal) = Terminal::open(&world, 80, 24).await else { return };
    terminal.enter("posse chat; echo code $?").await;
    terminal.shows("general-purpose · ").await;
    terminal.shows("›").await;
    terminal.enter("tell me").await;
    terminal.shows("a long").await;
    terminal.press("C-c").await;
    terminal.shows("asked it to stop\n›").await;
    terminal.enter("now work").await;
    let pid = world.lines_in("pid", 1).await;
    terminal.press("C-c").await;
    gone(&pid).await;
    terminal.enter("be brief").await;
    terminal.shows("as you wish\n›").await;
    terminal.press("C-c").await;
    terminal.shows("(Ctrl-D or /quit leaves)\n›").await;
    terminal.press("C-d").await;
    let screen = terminal.shows("code 0").await;
    assert!(screen.contains("To continue: `posse chat --resume "), "{screen}");
    assert_eq!(mode(&world.home().join("data/posse/history")), 0o600);
}

#[tokio::test]
async fn lines_can_be_edited_and_recalled_also_in_the_next_session() {
    let world = World::new(Script::always(Reply::text("{{turn}} {{last_user}}!"))).await;
    let Some(terminal) = Terminal::open(&world, 80, 24).await else { return };
    terminal.enter("posse chat; echo code $?").await;
    terminal.shows("›").await;
    terminal.enter("first lime").await;
    terminal.shows("0 first lime!\n›").await;
    terminal.press("Up").await;
    terminal.shows("› first lime").await;
    for key in ["BSpace", "BSpace", "n", "e", "Enter"] {
        terminal.press(key).await;
    }
    terminal.shows("1 first line!\n›").await;
    terminal.press("C-d").await;
    terminal.shows("code 0").await;
    terminal.enter("clear; posse chat --resume; echo code $?").await;
    terminal
        .shows(": first lime\n› first lime\n0 first lime!\n› first line\n1 first line!\n›")
        .await;
    terminal.press("Up").await;
    terminal.shows("› first line").await;
    terminal.press("Enter").await;
    terminal.shows("2 first line!\n›").await;
    terminal.enter("/quit").await;
    terminal.shows("code 0").await;
}

#[tokio::test]
async fn a_chat_that_is_terminated_at_its_prompt_leaves_the_terminal_usable() {
    let world = World::saying("hm").await;
    let Some(terminal) = Terminal::open(&world, 80, 24).await else { return };
    let binary = env!("CARGO_BIN_EXE_posse");
    let chat = format!("bash -c 'echo $$ > pid; exec {binary} chat'");
    terminal
        .enter(&format!("stty -a > before; {chat}; stty -a > after; echo over $((6 * 7))"))
        .await;
    terminal.shows("\n›").await;
    let pid = world.read("pid").trim().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    terminal.shows("over 42").await;
    gone(&pid.to_string()).await;
    assert_eq!(world.read("before"), world.read("after"));
}

#[tokio::test]
async fn without_a_prompt_on_a_terminal_it_says_what_to_type() {
    let world = World::saying("hm").await;
    let Some(terminal) = Terminal::open(&world, 80, 24).await else { return };
    terminal.enter("posse run; echo code $?").await;
    let screen = terminal.shows("code 2").await;
    assert!(screen.contains("error: there is no task\n  hint: name the task: posse run \""));
}

#[tokio::test]
async fn a_terminal_that_nobody_names_gets_no_colours() {
    let world = World::saying("x").await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    terminal.enter("posse models sonnet; echo done").await;
    terminal.shows("\ndone").await;
    assert!(terminal.painted().await.contains("\u{1b}[32m●"));
    let posse = env!("CARGO_BIN_EXE_posse");
    terminal.enter(&format!("clear; env -u TERM {posse} models sonnet; echo over")).await;
    terminal.shows("\nover").await;
    let screen = terminal.painted().await;
    assert!(screen.contains('●') && !screen.contains("\u{1b}["), "{screen:?}");
}
