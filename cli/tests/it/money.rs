//! Money on the command line: small limits are useful, and what was spent is told apart from what
//! may have been.

use crate::tree::{lead, task};
use crate::world::{NOWHERE, World, eventually, started};
use posse_testkit::{Conversation, Gate, Reply, Rule, Script, When};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Looks around five times and answers.
fn looking() -> Script {
    let look = || Reply::tool_call("List", json!({}));
    Script::turns([look(), look(), look(), look(), look(), Reply::text("that is all")])
}

async fn show(world: &World) -> String {
    let run = world.only_run().await;
    world.run(&["runs", "show", &run]).await.expect(0).out
}

/// What `posse cost` says of everything.
async fn costs(world: &World) -> Value {
    world.run(&["cost", "--json"]).await.expect(0).json()["total"].clone()
}

fn dollars(value: &Value, field: &str) -> f64 {
    value[field].as_f64().unwrap_or_else(|| panic!("no {field}: {value:#}"))
}

/// Whatever shows it, the one call of `world` that was cut short may have cost as much as it
/// reserved, and is not told as spent.
async fn check_cut_short(world: &World) {
    let list = world.run(&["runs", "list"]).await.expect(0).out;
    assert!(list.contains("+  "), "{list}");
    let listed = &world.list().await[0];
    assert!(dollars(listed, "cost_usd") < 0.02, "{listed:#}");
    assert!(dollars(listed, "uncertain_cost_usd") > 1.2, "{listed:#}");
    assert!(listed["output_tokens"].as_u64().unwrap() < 100, "{listed:#}");
    let shown = show(world).await;
    assert!(
        shown.contains(", up to $1.2") && shown.contains(" more for 1 call cut short"),
        "{shown}"
    );
    let costs = costs(world).await;
    assert_eq!(dollars(&costs, "cost_usd"), dollars(listed, "cost_usd"));
    assert_eq!(dollars(&costs, "uncertain_cost_usd"), dollars(listed, "uncertain_cost_usd"));
    assert_eq!(costs["unanswered"], 1);
    let told = world.run(&["cost"]).await.expect(0);
    assert!(told.err.contains(" more for 1 call cut short or still under way"), "{}", told.err);
    world.run(&["runs", "verify"]).await.expect(0);
}

#[tokio::test]
async fn a_small_limit_of_money_is_enough_for_a_run_that_uses_tools() {
    let world = World::new(looking()).await;
    for (model, limit) in [
        ("haiku", "0.05"),
        ("sonnet", "0.05"),
        ("sonnet", "0.2"),
        ("sonnet", "0.50"),
        ("sonnet", "1"),
        ("opus", "0.2"),
        ("opus", "2"),
    ] {
        let spec = ["run", "--model", model, "--max-cost", limit, "loop around"];
        let exit = world.run(&spec).await.expect(0);
        assert_eq!(exit.out, "that is all\n", "{model} with {limit}");
    }
    let exit = world.run(&["run", "--budget", "cost=0.5", "loop around"]).await.expect(0);
    assert_eq!(exit.out, "that is all\n");
    world.write("posse.toml", "[limits]\ncost = 0.5\n");
    world.run(&["run", "loop around"]).await.expect(0);
    // It is asked for no more than is left.
    let asked = world.fake.requests().iter().map(|it| it.body["max_tokens"].as_u64()).min();
    assert!(asked.flatten().is_some_and(|tokens| tokens < 100_000), "{asked:?}");
}

/// A reply that costs $0.007.
fn dear(reply: Reply) -> Reply {
    reply.usage(posse_testkit::Usage {
        input_tokens: Some(2_000),
        output_tokens: Some(300),
        ..posse_testkit::Usage::default()
    })
}

#[tokio::test]
async fn the_money_of_a_chat_is_that_of_all_its_lines_and_of_everyone_below_it() {
    let world = World::new(Script::always(dear(Reply::text("some words")))).await;
    let input = "one\ntwo\nthree\nfour\nfive\n";
    let exit = world.feed(&["chat", "--max-cost", "0.02"], input).await.expect(7);
    assert_eq!(exit.err.matches("✗ out of budget").count(), 1, "{}", exit.err);
    assert!(dollars(&costs(&world).await, "cost_usd") <= 0.02, "{}", costs(&world).await);

    // Also when each line is cut short, by its money or by its turns.
    for options in [&[][..], &["--max-turns", "1"]] {
        let list = Reply::tool_call("List", json!({"path": "."}));
        let world = World::new(Script::always(dear(list))).await;
        let exit = world.feed(&[&["chat", "--max-cost", "0.02"], options].concat(), input).await;
        let exit = exit.expect(7);
        assert_eq!(exit.err.matches("✗ out of budget").count(), 1, "{}", exit.err);
        let spent = dollars(&costs(&world).await, "cost_usd");
        assert!(spent > 0.01 && spent <= 0.02, "{spent}: {}", exit.err);
        // Whoever takes up a chat that has used up its money gives it as much again.
        world.feed(&["chat", "--resume"], "more\n").await;
        let after = dollars(&costs(&world).await, "cost_usd");
        assert!(after > spent && after <= spent + 0.02, "{after}");
        world.run(&["runs", "verify"]).await.expect(0);
    }

    // A new conversation is no new money.
    let world = World::new(Script::always(dear(Reply::text("some words")))).await;
    let input = "one\n/clear\ntwo\n/clear\nthree\n/clear\nfour\n";
    let exit = world.feed(&["chat", "--max-cost", "0.02"], input).await.expect(7);
    let spent = dollars(&costs(&world).await, "cost_usd");
    assert!(spent > 0.01 && spent <= 0.02, "{spent}: {}", exit.err);
    let other = world.list().await[0]["run"].as_str().unwrap().to_owned();
    let input = format!("/resume {other} more\n");
    let exit = world.feed(&["chat", "--max-cost", "0.02"], &input).await.expect(0);
    assert!(exit.err.contains("other chats have money of their own"), "{}", exit.err);
    assert!(dollars(&costs(&world).await, "cost_usd") <= 0.02);

    let calls = (0..4).map(|part| task("explore", &format!("part {part}")));
    let child = Conversation::when(When::any()).reply(dear(Reply::text("seen")));
    let world = World::new(Script::new().conversation(lead(calls)).conversation(child)).await;
    let exit = world.feed(&["chat", "--max-cost", "0.02"], "lead\n").await;
    assert!(dollars(&costs(&world).await, "cost_usd") <= 0.02, "{exit:?}");
}

/// A limit holds for whatever model a run goes on with.
#[tokio::test]
async fn a_run_with_a_limit_does_not_go_on_with_a_model_whose_price_is_not_known() {
    let world = World::new(Script::always(Reply::text("hm"))).await;
    let unpriced = "anthropic/claude-unheard-of";
    for (limit, more) in [("--max-cost", "0.05"), ("--budget", "cost=1")] {
        let input = format!("one\n/model {unpriced}\ntwo\n");
        let exit = world.feed(&["chat", limit, more], &input).await.expect(0);
        assert!(
            exit.err.contains(&format!("the price of {unpriced} is not known")),
            "{}",
            exit.err
        );
        world.run(&["run", limit, more, "--label", more, "three"]).await.expect(0);
        let arguments = ["run", "--resume", more, "--model", unpriced, "four"];
        let exit = world.run(&arguments).await.expect(2);
        assert!(
            exit.err.contains("is not known, so a limit of cost cannot be kept"),
            "{}",
            exit.err
        );
    }
    let asked = world.fake.requests();
    assert!(asked.iter().all(|it| it.body["model"] != "claude-unheard-of"), "{asked:?}");
    // Without a limit it is as good as another.
    world.feed(&["chat"], &format!("one\n/model {unpriced}\ntwo\n")).await.expect(0);
    assert_eq!(world.fake.last_request().body["model"], "claude-unheard-of");
}

/// Nobody can take back what was charged; but it is said.
#[tokio::test]
async fn a_last_call_that_was_charged_more_than_expected_is_told() {
    let usage = posse_testkit::Usage {
        input_tokens: Some(900_000),
        output_tokens: Some(1_000),
        ..posse_testkit::Usage::default()
    };
    let world = World::new(Script::always(Reply::text("words").usage(usage))).await;
    let exit = world.run(&["run", "--max-cost", "0.50", "x"]).await.expect(0);
    assert!(exit.err.contains("the run cost $1.81, and its budget was $0.50"), "{}", exit.err);
}

#[tokio::test]
async fn in_a_list_of_all_runs_each_has_its_own_cost() {
    let calls = (0..2).map(|part| task("explore", &format!("part {part}")));
    let child = Conversation::when(When::any()).reply(dear(Reply::text("seen")));
    let world = World::new(Script::new().conversation(lead(calls)).conversation(child)).await;
    world.run(&["run", "lead"]).await.expect(0);
    let costs = async |arguments: &[&str]| -> f64 {
        let list = world.run(arguments).await.expect(0).out;
        let amounts = list.split_whitespace().filter_map(|word| word.strip_prefix('$'));
        amounts.map(|amount| amount.parse::<f64>().unwrap()).sum()
    };
    let (roots, all) = (costs(&["runs", "list"]).await, costs(&["runs", "list", "--all"]).await);
    assert!(roots > 0.0 && (roots - all).abs() < 0.0003, "{roots}, {all}");
}

/// What a run keeps back of its money for a call is about what the call takes.
#[tokio::test]
async fn instructions_and_tools_are_counted_once() {
    let world = World::new(looking()).await;
    world.run(&["run", "x"]).await.expect(0);
    let run = world.only_run().await;
    let log = world.run(&["runs", "export", &run]).await.expect(0).lines();
    let events = |kind: &str| -> Vec<Value> {
        let events = log.iter().map(|line| line["event"].clone());
        events.filter(|event| event["type"] == *kind).collect()
    };
    let (called, replied) = (events("model_called"), events("model_replied"));
    assert_eq!((called.len(), replied.len()), (6, 6));
    for (called, replied) in called.iter().zip(&replied) {
        let count = |value: &Value| value.as_u64().unwrap_or(0);
        let usage = &replied["usage"];
        let sent = count(&usage["input_tokens"])
            + count(&usage["cache_read_tokens"])
            + count(&usage["cache_write_tokens"]);
        let reserved = count(&called["reserved"]["input_tokens"]);
        assert!(reserved >= sent && reserved * 2 < sent * 3, "{reserved} for {sent}");
    }
}

#[tokio::test]
async fn a_limit_too_small_for_the_first_call_says_what_that_could_cost_and_what_to_do() {
    let world = World::new(looking()).await;
    let exit = world.run(&["run", "--max-cost", "0.0001", "x"]).await.expect(5);
    let says = "✗ stopped at its limit of cost: the next call could cost up to $0.0";
    assert!(exit.err.contains(says), "{}", exit.err);
    let left = "with the shortest reply (64 tokens), and $0.0001 is left";
    assert!(exit.err.contains(left), "{}", exit.err);
    assert!(exit.err.contains("spend more, use --max-cost"), "{}", exit.err);
    assert!(exit.err.contains("posse models"), "{}", exit.err);
    let exit = world.run(&["run", "--budget", "cost=0.0001", "x"]).await.expect(7);
    assert!(exit.err.contains("✗ out of budget: cost of run "), "{}", exit.err);
    assert!(exit.err.contains(left), "{}", exit.err);
    let exit = world.run(&["run", "--budget", "input_tokens=10", "x"]).await.expect(7);
    assert!(exit.err.contains("the next call would send "), "{}", exit.err);
    assert!(exit.err.contains(" tokens, and 10 are left"), "{}", exit.err);
    assert_eq!(world.fake.count(), 0);
}

#[tokio::test]
async fn a_limit_of_money_for_a_model_without_a_price_says_how_to_give_it_one() {
    let world = World::new(looking()).await;
    let model = "anthropic/brand-new";
    let exit = world.run(&["run", "--model", model, "--max-cost", "1", "x"]).await.expect(2);
    let setting = "under [models.\"anthropic/brand-new\"]: price = { input = 1.0, output = 4.0 }";
    assert!(exit.err.contains(setting), "{}", exit.err);
}

#[tokio::test]
async fn a_chat_interrupted_before_the_first_word_has_spent_nothing_that_is_known() {
    let gate = Gate::new();
    let world = World::new(Script::always(Reply::text("never").held_by(&gate))).await;
    let mut chat = world.start_with_input(&["chat"]);
    chat.type_line("talk").await;
    gate.wait_for_held(1).await.unwrap();
    chat.signal(Signal::INT);
    chat.notes("the user asked it to stop").await;
    chat.type_line("/cost").await;
    chat.notes("$0, up to $1.29 more for 1 call cut short").await;
    let exit = chat.end().await.expect(0);
    assert!(exit.err.contains("0 in / 0 out"), "{}", exit.err);
    check_cut_short(&world).await;
}

#[tokio::test]
async fn a_run_that_is_out_of_time_has_spent_nothing_that_is_known() {
    let gate = Gate::new();
    let world = World::new(Script::always(Reply::text("never").held_by(&gate))).await;
    let exit = world.run(&["run", "--timeout", "300ms", "x"]).await.expect(4);
    let told = "0 in / 0 out · $0, up to $1.29 more for 1 call cut short · ";
    assert!(exit.err.contains(told), "{}", exit.err);
    check_cut_short(&world).await;
}

/// The first attempt fails with `fault` and the second one answers.
async fn after(fault: &str) -> World {
    let broken = Reply::text("one two three four five six seven eight nine ten").fault(fault);
    let script = Script::new()
        .rule(Rule::when(When::any()).reply(broken).once())
        .rule(Rule::when(When::any()).reply(Reply::text("fine")));
    let world = World::new(script).await;
    let exit = world.run(&["run", "x"]).await.expect(0);
    assert_eq!(exit.out, "fine\n");
    assert!(exit.err.contains(" more for 1 call cut short"), "{}", exit.err);
    world
}

#[tokio::test]
async fn a_connection_that_breaks_before_an_answer_may_have_cost_something() {
    check_cut_short(&after("reset-before-headers").await).await;
}

#[tokio::test]
async fn a_reply_that_is_cut_counts_for_what_arrived() {
    let world = after("reset-after-text").await;
    check_cut_short(&world).await;
    let run = world.only_run().await;
    let log = world.run(&["runs", "export", &run]).await.expect(0);
    let records = log.lines();
    let event = |kind: &str| {
        let mut events = records.iter().map(|record| &record["event"]);
        events.find(|event| event["type"] == kind).unwrap_or_else(|| panic!("{kind}: {}", log.out))
    };
    let (failed, called) = (event("model_failed"), event("model_called"));
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let (usage, uncertain) = (&failed["usage"], &failed["uncertain"]);
    let arrived = number(&usage["output_tokens"]) - number(&uncertain["output_tokens"]);
    assert!((5..40).contains(&arrived), "{failed:#}");
    assert_eq!(usage["output_tokens"], called["reserved"]["output_tokens"]);
    assert_eq!(number(&uncertain["input_tokens"]), 0, "the provider said how many: {failed:#}");
    let sent = |usage: &Value| {
        let kinds = ["input_tokens", "cache_write_tokens", "cache_read_tokens"];
        kinds.iter().map(|kind| number(&usage[kind])).sum::<u64>()
    };
    let (first, second) = (sent(usage), sent(&event("model_replied")["usage"]));
    assert!(first > 0, "{failed:#}");
    let listed = &world.list().await[0];
    assert_eq!(number(&listed["input_tokens"]), first + second, "both calls sent the prompt");
}

#[tokio::test]
async fn a_call_that_never_reached_its_provider_costs_nothing() {
    let world = World::saying("never").await;
    let settings = world.home().join("config/posse");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(settings.join("config.toml"), "[patience]\nretries = 1\n").unwrap();
    let mut command = world.command(&["run", "--max-cost", "0.05", "x"]);
    command.env("ANTHROPIC_BASE_URL", NOWHERE);
    let exit = started(command).end().await.expect(1);
    assert!(exit.err.contains("cannot reach"), "it had money for a second attempt: {}", exit.err);
    let listed = &world.list().await[0];
    assert_eq!((dollars(listed, "cost_usd"), dollars(listed, "uncertain_cost_usd")), (0.0, 0.0));
    assert_eq!(listed["budget"].as_array().unwrap()[0]["drawn"], 0.0, "{listed:#}");
}

#[tokio::test]
async fn a_reply_that_says_nothing_of_its_usage_is_estimated_and_limits_hold() {
    let reply = || Reply::tool_call("Glob", json!({"pattern": "*"})).fault("missing-usage");
    let world = World::new(Script::always(reply())).await;
    world.run(&["run", "--max-cost", "0.05", "x"]).await.expect(5);
    let known = dollars(&world.list().await[0], "cost_usd");
    assert!(known > 0.01 && known <= 0.05, "{known}");
}

/// One call used to reserve all that was left, and the others gave up waiting for it.
#[tokio::test]
async fn children_share_the_money_and_work_side_by_side() {
    let gate = Gate::new();
    let parts = (0..12).map(|part| task("explore", &format!("part {part}")));
    let done = Reply::text("looked").held_by(&gate);
    let script = Script::new()
        .conversation(lead(parts))
        .rule(Rule::when(When::any().first_user_contains("part")).reply(done));
    let world = World::new(script).await;
    let running = world.start(&["run", "--max-cost", "1", "lead"]);
    gate.wait_for_held(4).await.unwrap();
    gate.open();
    assert_eq!(running.end().await.expect(0).out, "all done\n");
    let rows = world.run(&["runs", "list", "--all", "--json"]).await.expect(0).json();
    let outcomes: Vec<&Value> = rows.as_array().unwrap().iter().map(|it| &it["outcome"]).collect();
    assert_eq!(outcomes, ["completed"; 13], "{rows}");
}

#[tokio::test]
async fn a_call_that_is_under_way_is_not_shown_as_spent() {
    let gate = Gate::new();
    let world = World::new(Script::always(Reply::text("fine").held_by(&gate))).await;
    let running = world.start(&["run", "--max-cost", "2", "x"]);
    gate.wait_for_held(1).await.unwrap();
    let list = world.run(&["runs", "list"]).await.expect(0).out;
    assert!(list.contains("  $0  "), "{list}");
    let listed = &world.list().await[0];
    assert_eq!((dollars(listed, "cost_usd"), dollars(listed, "uncertain_cost_usd")), (0.0, 0.0));
    let shown = show(&world).await;
    assert!(shown.contains("0 out, $0\n"), "{shown}");
    assert!(
        shown.contains("budget      $0 of $2.00 ($1.2") && shown.contains(" reserved)"),
        "{shown}"
    );
    gate.open();
    running.end().await.expect(0);
    let listed = &world.list().await[0];
    assert!(dollars(listed, "cost_usd") > 0.003, "{listed:#}");
    assert_eq!(dollars(listed, "uncertain_cost_usd"), 0.0);
}

#[tokio::test]
async fn a_killed_tree_that_is_resumed_shows_what_it_spent_and_what_it_may_have() {
    let gate = Gate::new();
    let task = |it: &str| json!({"description": it, "prompt": it, "subagent_type": "explore"});
    let tasks = Reply::empty().and_tool_call("Task", task("a")).and_tool_call("Task", task("b"));
    let lead = Conversation::when(When::any().first_user_contains("lead"));
    let script = Script::new()
        .conversation(lead.reply(tasks).reply(Reply::text("all done")))
        .rule(Rule::when(When::any()).reply(Reply::text("seen").held_by(&gate)));
    let world = World::new(script).await;
    let running = world.start(&["run", "lead"]);
    gate.wait_for_held(2).await.unwrap();
    running.signal(Signal::KILL);
    running.end().await;
    gate.open();
    let run = world.only_run().await;
    eventually("that nobody executes it", async || world.list().await[0]["status"] != "running")
        .await;
    let exit = world.run(&["runs", "resume", &run]).await.expect(0);
    assert_eq!(exit.out, "all done\n");
    let shown = world.run(&["runs", "show", &run]).await.expect(0).out;
    assert!(
        shown.contains(", up to $2.5") && shown.contains(" more for 2 calls cut short"),
        "{shown}"
    );
    let costs = costs(&world).await;
    assert!(dollars(&costs, "cost_usd") < 0.05, "{costs:#}");
    assert!(dollars(&costs, "uncertain_cost_usd") > 2.0, "{costs:#}");
    world.run(&["runs", "verify"]).await.expect(0);
}

/// What a crash cut short cannot give back what it reserved: nobody waits for that.
#[tokio::test]
async fn a_killed_tree_with_little_money_ends_when_it_is_resumed() {
    let gate = Gate::new();
    let script = ["one", "two", "three"].into_iter().fold(
        Script::new().conversation(lead(["one", "two", "three"].map(|it| task("explore", it)))),
        |script, it| {
            let slow = Rule::when(When::any().first_user_contains(it));
            script.rule(slow.reply(Reply::text("found").held_by(&gate)))
        },
    );
    let world = World::new(script).await;
    let running = world.start(&["run", "--max-cost", "0.3", "lead them"]);
    gate.wait_for_held(2).await.unwrap();
    running.signal(Signal::KILL);
    running.end().await;
    gate.open();
    let root = world.only_run().await;
    let exit = world.start(&["runs", "resume", &root]).end().await;
    let rows = world.list().await;
    let ended = |row: &Value| row["status"] == "finished";
    assert!(rows.iter().all(ended), "{}: {rows:#?}", exit.err);
    world.run(&["runs", "verify"]).await.expect(0);
    let costs = costs(&world).await;
    let most = dollars(&costs, "cost_usd") + dollars(&costs, "uncertain_cost_usd");
    assert!(most <= 0.3, "{costs:#}");
}

#[tokio::test]
async fn a_run_that_has_spent_all_is_told_so_and_not_that_nothing_is_left() {
    let list = Reply::tool_call("List", json!({"path": "."}));
    let dear = list.usage(posse_testkit::Usage {
        input_tokens: Some(500_000),
        ..posse_testkit::Usage::default()
    });
    let world = World::new(Script::always(dear)).await;
    let exit = world.run(&["run", "--max-cost", "0.05", "x"]).await.expect(5);
    assert!(exit.err.contains("all of it is spent, and the next call could cost"), "{}", exit.err);
}
