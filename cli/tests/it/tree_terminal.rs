//! A tree on a terminal: lines that stand while children work, and one that stays of each.

use crate::tmux::Terminal;
use crate::tree::{child, lead, task};
use crate::world::{World, eventually};
use posse_testkit::{Gate, Reply, Rule, Script, When};
use serde_json::json;

#[tokio::test]
async fn children_stand_at_the_bottom_and_leave_one_line_each() {
    let (one, two) = (Gate::new(), Gate::new());
    let script = Script::new()
        .conversation(lead([task("explore", "one"), task("plan", "two")]))
        .conversation(child("one", Reply::text("1").held_by(&one)))
        .conversation(child("two", Reply::text("2").held_by(&two)));
    let world = World::new(script).await;
    let Some(terminal) = Terminal::open(&world, 80, 24).await else { return };
    terminal.enter("posse run 'lead them'; echo code $?").await;
    terminal.shows("2 running · 2 tools, ").await;
    let screen = terminal.screen().await;
    for line in [" [explore] do one … 1 tool, ", " [plan] do two … 1 tool, "] {
        assert_eq!(screen.matches(line).count(), 1, "{screen}");
    }
    one.open();
    let screen = terminal.shows("✓ [explore] do one · 1 tool, ").await;
    assert!(!screen.contains("do one …"), "it has left the bottom:\n{screen}");
    terminal.shows("1 running, 1 done · ").await;
    two.open();
    let screen = terminal.shows("code 0").await;
    let lines: Vec<&str> = screen.lines().collect();
    let at = |part: &str| lines.iter().position(|line| line.contains(part)).expect(part);
    assert!(lines[at("✓ [plan] do two · ")..].join("\n").contains("all done\n✓ 2 turns"));
    assert!(at("✓ [explore] do one") < at("✓ [plan] do two"), "{screen}");
    assert_eq!(screen.matches("[explore]").count(), 1, "{screen}");
    assert_eq!(screen.matches("[plan]").count(), 1, "{screen}");
    assert!(!screen.contains(" running") && !screen.contains('…'), "{screen}");
}

#[tokio::test]
async fn many_children_fill_a_third_of_the_screen_and_scroll_nothing_twice() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(lead((100..160).map(|part| task("explore", &format!("part {part}")))))
        .rule(
            Rule::when(When::any().first_user_contains("part 130"))
                .reply(Reply::error(400, "not this one")),
        )
        .rule(
            Rule::when(When::any().first_user_contains("part"))
                .reply(Reply::text("1").held_by(&gate)),
        );
    let world = World::new(script).await;
    crate::tree::settings(&world, "max_concurrent = 64\n");
    let Some(terminal) = Terminal::open(&world, 60, 18).await else { return };
    terminal.enter("posse run 'lead them'; echo code $?").await;
    let screen = terminal.shows("59 running, 1 failed · ").await;
    let standing = screen.lines().filter(|line| line.contains(" … ")).count();
    assert_eq!(standing, 5, "six lines of eighteen, one of them the counts:\n{screen}");
    assert_eq!(screen.matches("✗ [explore] do part 130").count(), 1, "{screen}");
    gate.open();
    let screen = terminal.shows("code 0").await;
    assert!(screen.contains("✓ 59 more done · 0 tools, "), "{screen}");
    assert!(screen.contains("✗ [explore] do part 130"), "{screen}");
    assert!(screen.contains(" rejected the request: "), "{screen}");
    assert_eq!(screen.matches("[explore]").count(), 1, "{screen}");
}

#[tokio::test]
async fn a_terminal_that_becomes_narrower_is_left_clean() {
    let gate = Gate::new();
    let long = "a label that is rather long, so that it fills the line";
    let call = json!({"description": long, "prompt": "slow", "subagent_type": "explore"});
    let script = Script::new()
        .conversation(lead([call]))
        .conversation(child("slow", Reply::text("1").held_by(&gate)));
    let world = World::new(script).await;
    let Some(terminal) = Terminal::open(&world, 100, 24).await else { return };
    terminal.enter("posse run 'lead them'; echo code $?").await;
    terminal.shows("so that it fills t… 1 tool").await;
    terminal.resize(50, 24).await;
    terminal.shows("[explore] a label that is rath… 1 tool").await;
    gate.open();
    let screen = terminal.shows("code 0").await;
    assert_eq!(screen.matches("[explore]").count(), 1, "{screen}");
    assert!(!screen.contains(" running"), "{screen}");
}

#[tokio::test]
async fn ctrl_c_in_a_chat_stops_the_children_and_not_the_session() {
    let gate = Gate::new();
    let script = Script::new()
        .rule(
            Rule::when(When::any().last_user_contains("and now"))
                .reply(Reply::text("at your service")),
        )
        .conversation(lead([task("explore", "slow")]))
        .conversation(child("slow", Reply::text("1").held_by(&gate)));
    let world = World::new(script).await;
    let Some(terminal) = Terminal::open(&world, 80, 24).await else { return };
    terminal.enter("posse chat; echo code $?").await;
    terminal.shows("›").await;
    terminal.enter("lead them").await;
    terminal.shows("[explore] do slow … 1 tool").await;
    terminal.press("C-c").await;
    let screen = terminal.shows("⊘ [explore] do slow · 1 tool, ").await;
    assert!(!screen.contains("do slow …"), "{screen}");
    terminal.enter("and now?").await;
    terminal.shows("at your service\n›").await;
    terminal.enter("/runs").await;
    terminal.shows("└─ ⊘ [explore] do slow").await;
    eventually("the prompt", async || terminal.screen().await.ends_with('›')).await;
    terminal.press("C-d").await;
    terminal.shows("code 0").await;
}
