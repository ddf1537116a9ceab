//! `posse cost`, and what stays of runs that are put away.

use crate::tmux::Terminal;
use crate::world::{World, bash, started};
use posse_testkit::{Gate, Reply, Rule, Script, When};
use rustix::process::Signal;
use serde_json::{Value, json};

async fn cost(world: &World, arguments: &[&str]) -> Value {
    let arguments = [&["cost", "--json"], arguments].concat();
    world.run(&arguments).await.expect(0).json()
}

/// What `posse runs list` says the runs have cost, or may have cost besides.
async fn listed(world: &World, field: &str) -> f64 {
    let list = world.run(&["runs", "list", "--all", "--json"]).await.expect(0).json();
    list.as_array().unwrap().iter().map(|run| run[field].as_f64().unwrap()).sum()
}

#[track_caller]
fn check_same(one: f64, other: f64) {
    assert!((one - other).abs() < 1e-9, "{one} is not {other}");
}

#[tokio::test]
async fn what_was_spent_is_summed_up_by_what_is_asked_for() {
    let world = World::new(Script::turns([bash("true"), Reply::text("done")])).await;
    for task in ["first", "second"] {
        world.run(&["run", task]).await.expect(0);
    }
    let by_model = cost(&world, &[]).await;
    assert_eq!(by_model["by"], "model");
    assert_eq!(by_model["sums"].as_array().unwrap().len(), 1, "{by_model:#}");
    let key = by_model["sums"][0]["key"].as_str().unwrap().to_owned();
    assert!(key.starts_with("anthropic/"), "{key}");
    let total = &by_model["total"];
    assert_eq!(
        (&total["runs"], &total["calls"], &total["unanswered"]),
        (&json!(2), &json!(4), &json!(0))
    );
    let spent = total["cost_usd"].as_f64().unwrap();
    assert!(spent > 0.0);
    check_same(spent, listed(&world, "cost_usd").await);
    for by in ["run", "tree", "agent", "label", "day"] {
        let sums = cost(&world, &["--by", by]).await;
        let all = sums["sums"].as_array().unwrap();
        let expected = if matches!(by, "run" | "tree") { 2 } else { 1 };
        assert_eq!(all.len(), expected, "{sums:#}");
        check_same(all.iter().map(|sum| sum["cost_usd"].as_f64().unwrap()).sum(), spent);
    }
    assert_eq!(cost(&world, &["--since", "1h"]).await["total"], *total);
    assert_eq!(cost(&world, &["--until", "2020-01-01"]).await["total"]["calls"], 0);
    assert_eq!(cost(&world, &["--cwd", "."]).await["total"], *total);

    let table = world.run(&["cost", "--by", "run"]).await.expect(0);
    let lines: Vec<&str> = table.out.lines().collect();
    assert_eq!(lines.len(), 4, "{}", table.out);
    let head: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(head, ["RUN", "RUNS", "CALLS", "IN", "CACHED", "OUT", "COST", "TASK"]);
    assert!(lines[1].contains("[general-purpose] "), "{}", table.out);
    assert!(lines[3].starts_with("total "), "{}", table.out);
    assert_eq!(table.err, "");
    let one = world.run(&["cost", "--by", "run", "--limit", "1"]).await.expect(0);
    assert!(one.err.contains("the first 1; --limit shows more"), "{}", one.err);
}

#[tokio::test]
async fn a_call_of_a_killed_process_may_have_cost_what_it_reserved() {
    let gate = Gate::new();
    let script = Script::new()
        .rule(Rule::when(When::any()).reply(Reply::text("never").held_by(&gate)).once())
        .rule(Rule::when(When::any()).reply(Reply::text("done")));
    let world = World::new(script).await;
    let running = world.start(&["run", "x"]);
    gate.wait_for_held(1).await.unwrap();
    running.signal(Signal::KILL);
    running.end().await;
    let killed = cost(&world, &[]).await;
    assert_eq!((&killed["total"]["calls"], &killed["total"]["unanswered"]), (&json!(1), &json!(1)));
    let reserved = killed["total"]["uncertain_cost_usd"].as_f64().unwrap();
    assert!(reserved > 0.0);
    assert_eq!(killed["total"]["cost_usd"], 0.0);
    check_same(reserved, listed(&world, "uncertain_cost_usd").await);
    let words = world.run(&["cost"]).await.expect(0);
    let told = " more for 1 call cut short or still under way";
    assert!(words.err.starts_with("$0, up to $1.2") && words.err.contains(told), "{}", words.err);

    let run = world.only_run().await;
    world.run(&["runs", "resume", &run]).await.expect(0);
    let ended = cost(&world, &["--run", &run]).await;
    assert_eq!(ended["by"], "run");
    assert_eq!((&ended["total"]["calls"], &ended["total"]["unanswered"]), (&json!(2), &json!(1)));
    let spent = ended["total"]["cost_usd"].as_f64().unwrap();
    assert!(spent > 0.0);
    check_same(spent, listed(&world, "cost_usd").await);
    check_same(reserved, listed(&world, "uncertain_cost_usd").await);
}

#[tokio::test]
async fn a_failed_run_counts() {
    let world = World::new(Script::always(Reply::error(400, "no"))).await;
    world.run(&["run", "x"]).await.expect(1);
    let failed = cost(&world, &["--by", "agent"]).await;
    assert_eq!(failed["sums"][0]["key"], "general-purpose");
    assert_eq!(failed["total"]["calls"], 1, "{failed:#}");
}

#[tokio::test]
async fn nothing_costs_nothing_and_what_is_wrong_is_said() {
    let world = World::saying("hi").await;
    let nothing = world.run(&["cost"]).await.expect(0);
    assert_eq!((nothing.out.as_str(), nothing.err.as_str()), ("", "nothing was spent\n"));
    let none = cost(&world, &[]).await;
    assert_eq!((&none["sums"], &none["total"]["calls"]), (&json!([]), &json!(0)));
    world.run(&["run", "x"]).await.expect(0);
    let wrong = world.run(&["cost", "--since", "whenever"]).await.expect(2);
    assert!(wrong.err.contains("`whenever` is not a valid time"), "{}", wrong.err);
    let wrong = world.run(&["runs", "prune", "--older-than", "old"]).await.expect(2);
    assert!(wrong.err.contains("`old` is not an age"), "{}", wrong.err);
    let bare = world.run(&["runs", "prune", "--older-than", "0.001"]).await.expect(2);
    assert!(bare.err.contains("add the unit, such as 30d, 2w or 12h"), "{}", bare.err);
    world.run(&["runs", "log", &world.only_run().await]).await.expect(0);
    world.run(&["cost", "--run", "zzzz"]).await.expect(2);
}

#[tokio::test]
async fn a_run_is_put_away_its_log_goes_and_what_it_cost_stays() {
    let world = World::saying("the answer").await;
    world.run(&["run", "x"]).await.expect(0);
    let run = world.only_run().await;
    let before = cost(&world, &["--run", &run]).await;
    let away = world.run(&["runs", "archive", &run]).await.expect(0);
    assert!(away.err.contains("is archived"), "{}", away.err);
    assert_eq!(world.list().await[0]["status"], "archived");
    assert!(world.run(&["runs", "show", &run]).await.expect(0).out.contains("the answer"));
    world.run(&["runs", "archive", &run, "--json"]).await.expect(1);
    let shown = world.run(&["runs", "show", &run]).await.expect(0).out;
    assert!(shown.contains("completed; archived"), "{shown}");
    let late = world.run(&["runs", "resume", &run, "more"]).await.expect(1);
    assert!(late.err.contains("is archived"), "{}", late.err);

    world.run(&["runs", "prune", "--older-than", "30d"]).await.expect(0);
    let dry = world.run(&["runs", "prune", "--older-than", "0d", "--dry-run"]).await.expect(0);
    assert!(dry.err.contains("1 run, 6 events would be deleted"), "{}", dry.err);
    world.run(&["runs", "log", &run]).await.expect(0);
    let pruned =
        world.run(&["runs", "prune", "--older-than", "0d", "--yes", "--json"]).await.expect(0);
    assert_eq!(pruned.json(), json!({"removed": true, "runs": [run], "events": 6}));
    for verb in ["log", "export"] {
        let gone = world.run(&["runs", verb, &run]).await.expect(1);
        assert!(gone.err.contains("was removed, by a person or because"), "{}", gone.err);
    }
    let shown = world.run(&["runs", "show", &run]).await.expect(0);
    assert!(shown.out.contains("completed") && shown.out.contains("log         removed"));
    assert_eq!(world.list().await[0]["erased"], true);
    let verified = world.run(&["runs", "verify"]).await.expect(0);
    assert!(
        verified.err.contains("0 events checked, 0 damaged, 1 log removed"),
        "{}",
        verified.err
    );
    assert_eq!(cost(&world, &["--run", &run]).await, before);
}

#[tokio::test]
async fn at_a_terminal_nothing_is_deleted_before_somebody_says_yes() {
    let world = World::saying("the answer").await;
    world.run(&["run", "an old task"]).await.expect(0);
    let run = world.only_run().await;
    let Some(terminal) = Terminal::open(&world, 100, 30).await else { return };
    terminal.enter("posse runs prune --older-than 0d; echo code $?").await;
    let screen = terminal.shows("1 run would be deleted for good. Continue? [y/N]").await;
    assert!(screen.contains("an old task"), "{screen}");
    terminal.enter("n").await;
    terminal.shows("nothing was done").await;
    terminal.shows("code 3").await;
    world.run(&["runs", "log", &run]).await.expect(0);
    terminal.enter("clear; posse runs prune --older-than 0d --yes; echo code $?").await;
    terminal.shows("code 0").await;
    world.run(&["runs", "log", &run]).await.expect(1);
}

#[tokio::test]
async fn a_model_without_a_known_price_costs_nobody_knows_what() {
    let world = World::saying("done").await;
    let exit = world.run(&["run", "--model", "anthropic/claude-unheard-of-1", "x"]).await.expect(0);
    assert!(exit.err.contains("Posse shows its costs as ?"), "{}", exit.err);
    assert!(exit.err.contains(" · ? (the price of") && !exit.err.contains("$0"), "{}", exit.err);
    world.run(&["run", "y"]).await.expect(0);
    let list = world.run(&["runs", "list"]).await.expect(0).out;
    let is_unknown = |part: &str| {
        let line = list.lines().find(|line| line.contains(part)).expect(&list);
        line.split_whitespace().any(|word| word == "?")
    };
    assert!(is_unknown("unheard-of"), "{list}");
    assert!(!is_unknown("sonnet"), "{list}");
    let runs = world.list().await;
    let shown = world.run(&["runs", "show", runs[1]["run"].as_str().unwrap()]).await.expect(0).out;
    assert!(shown.contains("? (the price of the model is not known)"), "{shown}");
    let tree = world.run(&["runs", "tree", runs[1]["run"].as_str().unwrap()]).await.expect(0).out;
    assert!(tree.contains(" tokens, ?") && !tree.contains("$0"), "{tree}");
    let known = |run: &Value| (run["cost_known"].clone(), run["subtree"]["cost_known"].clone());
    assert_eq!(known(&runs[1]), (json!(false), json!(false)), "{runs:#?}");
    assert_eq!(known(&runs[0]), (json!(true), json!(true)), "{runs:#?}");
    for verb in ["show", "tree"] {
        let line = ["runs", verb, runs[1]["run"].as_str().unwrap(), "--json"];
        let shown = world.run(&line).await.expect(0).json();
        assert_eq!(known(&shown), (json!(false), json!(false)), "{verb}: {shown:#}");
    }
    let table = world.run(&["cost"]).await.expect(0);
    let line = table.out.lines().find(|line| line.contains("unheard-of")).expect(&table.out);
    assert!(line.split_whitespace().any(|word| word == "?"), "{}", table.out);
    assert!(table.err.contains("1 call of anthropic/claude-unheard-of-1"), "{}", table.err);
    let sums = cost(&world, &[]).await;
    assert_eq!(sums["total"]["unpriced_calls"], 1, "{sums:#}");
    assert_eq!(cost(&world, &["--by", "run"]).await["total"]["unpriced_calls"], 1);
}

/// Settings of someone else, or former ones, may have the price. What is stored counts.
#[tokio::test]
async fn without_the_settings_of_a_run_its_cost_is_what_is_stored_or_unknown() {
    let world = World::saying("done").await;
    let settings = world.home().join("config/posse/config.toml");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let text = format!(
        "[vendors.work]\nbase_url = \"{}\"\nwire = \"anthropic\"\nkey_variable = \"WORK_KEY\"\n\
         [models.\"work/priced\"]\nwindow = 50_000\nprice = {{ input = 1.0, output = 4.0 }}\n",
        world.fake.url()
    );
    std::fs::write(&settings, text).unwrap();
    for model in ["work/priced", "work/unpriced"] {
        let mut command = world.command(&["run", "--model", model, "x"]);
        command.env("WORK_KEY", "k");
        started(command).end().await.expect(0);
    }
    let before = cost(&world, &[]).await;
    std::fs::remove_file(&settings).unwrap();
    let after = cost(&world, &[]).await;
    for sums in [&before, &after] {
        assert_eq!(sums["total"]["unpriced_calls"], 1, "{sums:#}");
    }
    let table = world.run(&["cost"]).await.expect(0);
    let is_unknown = |model: &str| {
        let line = table.out.lines().find(|line| line.contains(model)).expect(&table.out);
        line.split_whitespace().any(|word| word == "?")
    };
    assert!(is_unknown("work/unpriced") && !is_unknown("work/priced"), "{}", table.out);
    let runs = world.list().await;
    let known = |model: &str| {
        let run = runs.iter().find(|run| run["model"] == model).unwrap();
        run["cost_known"].as_bool().unwrap()
    };
    assert!(known("work/priced") && !known("work/unpriced"), "{runs:#?}");
}
