//! Budgets of every size, for models of every price: what fits is completed, what does not fit stops
//! at the limit, and nothing is ever overshot.

use crate::bench::{Bench, eventually, within};
use crate::delegation::task;
use futures_util::StreamExt;
use posse::ModelChoice;
use posse::protocol::{Event, Limit, Outcome, Usd};
use posse::store::{Filter, Kin};
use posse::{AgentSpec, Budget, Limits, RunId, RunRow, RunSpec};
use posse_testkit::{Conversation, Reply, Rule, Script, When};
use serde_json::json;

/// Dollars.
const BUDGETS: [f64; 6] = [0.05, 0.2, 0.5, 1.0, 2.0, 5.0];

/// A model, and what a million of its tokens cost: sent at most, and received.
const MODELS: [(&str, f64, f64); 3] = [
    ("anthropic/claude-haiku-5-5", 0.125, 0.5),
    ("anthropic/claude-sonnet-5-5", 2.5, 10.0),
    ("anthropic/claude-opus-5-5", 5.0, 20.0),
];

/// The shortest reply that is asked for, in tokens.
const SHORTEST: u64 = 64;

const WORK: [&str; 3] = ["talk", "look", "look often"];
const HELP: [&str; 3] = ["alone", "with tasks", "with others behind"];

fn replies(work: &str) -> Vec<Reply> {
    let look = || Reply::tool_call("List", json!({}));
    match work {
        "talk" => Vec::new(),
        "look" => vec![look(), look(), look()],
        _ => {
            let often = || look().and_tool_call("List", json!({})).and_tool_call("List", json!({}));
            vec![often(), often()]
        }
    }
}

/// A root that does `work` and has `help`, and those it calls, which do the same work.
fn script() -> Script {
    let mut script = Script::new();
    let children = ["one", "two"];
    for work in WORK {
        for help in HELP {
            let prompt = |child: &str| format!("child {child}: {work}.");
            let handed_on = children.iter().fold(Reply::empty(), |reply, child| match help {
                "with tasks" => reply.and_tool_call("Task", task("explore", &prompt(child))),
                _ => {
                    let spawned = json!({"task": prompt(child), "agentId": "explore"});
                    reply.and_tool_call("spawn_subagent", spawned)
                }
            });
            let lead = When::any().first_user_contains(&format!("lead {help}: {work}."));
            let mut conversation = Conversation::when(lead);
            for reply in replies(work) {
                conversation = conversation.reply(reply);
            }
            if help != "alone" {
                conversation = conversation.reply(handed_on);
            }
            script = script.conversation(conversation.reply(Reply::text("done")));
        }
        for child in children {
            let prompt = format!("child {child}: {work}.");
            let conversation = Conversation::when(When::any().first_user_contains(&prompt));
            let conversation = replies(work).into_iter().fold(conversation, Conversation::reply);
            script = script.conversation(conversation.reply(Reply::text("did it")));
        }
    }
    let endless = Reply::text(&"I look again. ".repeat(60)).and_tool_call("List", json!({}));
    script
        .rule(Rule::when(When::any().first_user_contains("for ever")).reply(endless))
        .rule(Rule::when(When::any()).reply(Reply::text("done")))
}

async fn tree(bench: &Bench, root: RunId) -> Vec<RunRow> {
    let filter = Filter { kin: Kin::TreeOf(root), ..Filter::default() };
    bench.runtime.list(&filter).await.unwrap()
}

async fn outcome(bench: &Bench, spec: RunSpec) -> (RunId, Outcome) {
    let run = bench.runtime.start(spec).await.unwrap().id();
    (run, within(bench.runtime.handle(run).outcome()).await.unwrap())
}

/// What all runs of a tree have cost, and what the dearest of their calls would at least reserve.
async fn cost(bench: &Bench, root: RunId, model: (&str, f64, f64)) -> (Usd, Usd) {
    let (mut spent, mut least) = (Usd::ZERO, Usd::ZERO);
    for row in tree(bench, root).await {
        spent += row.most_cost();
        for record in bench.log(row.id).await {
            if let Event::ModelCalled(called) = &record.event {
                let sent = called.reserved.input_tokens as f64 * model.1;
                let shortest = Usd::from_dollars((sent + SHORTEST as f64 * model.2) / 1e6);
                least = least.max(shortest);
            }
        }
    }
    (spent, least)
}

/// Checks that a run is completed if what it costs `fits`, and that it never costs more than `budget`.
async fn check(bench: &Bench, what: String, spec: RunSpec, budget: Usd, fits: bool) {
    let (run, outcome) = outcome(bench, spec).await;
    if fits {
        assert_eq!(outcome, Outcome::completed("done"), "{what}");
    }
    // Those in the background may still be on their way to their end.
    eventually(async || tree(bench, run).await.iter().all(|row| row.state.outcome.is_some())).await;
    let rows = tree(bench, run).await;
    let root = rows.iter().find(|row| row.id == run).unwrap();
    let spent: u64 = rows.iter().map(|row| row.most_cost().0).sum();
    assert!(spent <= budget.0, "{what}: {} is spent", Usd(spent));
    if let Some(drawn) =
        root.funds.drawn.filter(|_| root.funds.budget.as_ref().unwrap().cost.is_some())
    {
        assert_eq!((drawn.cost.0, root.funds.held.cost.0), (spent, 0), "{what}");
    }
}

#[tokio::test]
async fn a_run_is_completed_if_what_it_costs_fits_its_budget_and_never_costs_more() {
    let bench = &Bench::new(script()).await;
    let mut cells = Vec::new();
    let mut fitting = 0;
    for model in MODELS {
        for work in WORK {
            for help in HELP {
                let prompt = format!("lead {help}: {work}.");
                let model_name = Some(model.0.to_owned());
                let spec = RunSpec { models: ModelChoice::of(model_name), ..bench.spec(&prompt) };
                let (free, ended) = outcome(bench, spec.clone()).await;
                assert_eq!(ended, Outcome::completed("done"), "{prompt}");
                let (real, least) = cost(bench, free, model).await;
                for dollars in BUDGETS {
                    let budget = Usd::from_dollars(dollars);
                    // A tenth more for what it is told when little is left.
                    let wanted = Usd((real + least).0 / 10 * 11);
                    let fits = wanted <= budget;
                    fitting += usize::from(fits);
                    let what = format!("{prompt} of {}, {real} of {budget}", model.0);
                    let limits = Limits { cost: Some(budget), ..Limits::default() };
                    let of_tree = Budget { cost: Some(budget), ..Budget::default() };
                    // As `--max-cost` does it, as `--budget` does, and as the settings may.
                    let (limits, of_tree) = match (cells.len() + cells.len() / BUDGETS.len()) % 3 {
                        0 => (limits, of_tree),
                        2 if help == "alone" => (limits, Budget::default()),
                        _ => (Limits::default(), of_tree),
                    };
                    let spec = RunSpec { limits, budget: of_tree, ..spec.clone() };
                    cells.push(check(bench, what, spec, budget, fits));
                }
            }
        }
    }
    assert!(fitting > 130, "{fitting} of 162 fit");
    futures_util::stream::iter(cells).buffer_unordered(8).collect::<Vec<_>>().await;
}

#[tokio::test]
async fn a_run_that_never_ends_stops_when_not_even_the_shortest_reply_fits() {
    let bench = &Bench::new(script()).await;
    let mut cells = Vec::new();
    for (model, dollars) in [
        (MODELS[0], 0.005),
        (MODELS[1], 0.05),
        (MODELS[1], 0.2),
        (MODELS[2], 0.05),
        (MODELS[2], 0.5),
    ] {
        let budget = Usd::from_dollars(dollars);
        cells.push(async move {
            let limit = Budget { cost: Some(budget), ..Budget::default() };
            let (name, spec) = (Some(model.0.to_owned()), bench.spec("go on for ever"));
            let (run, outcome) =
                outcome(bench, RunSpec { models: ModelChoice::of(name), budget: limit, ..spec })
                    .await;
            let what = format!("{} with {budget}: {outcome}", model.0);
            let Outcome::OutOfBudget { limit, shortfall: Some(short), .. } = &outcome else {
                panic!("{what}")
            };
            let row = tree(bench, run).await.remove(0);
            let spent = row.most_cost();
            assert_eq!(*limit, Limit::Cost, "{what}");
            assert_eq!(short.left, budget.0 - spent.0, "{what}");
            assert!(short.needed > short.left && short.reply_tokens == SHORTEST, "{what}");
            assert!(row.spending.turns > 1, "{what}");
            let told = format!("could cost up to {}", Usd(short.needed));
            assert!(row.state.note.contains(&told), "{what}");
        });
    }
    futures_util::future::join_all(cells).await;
}

#[tokio::test]
async fn budgets_of_tokens_are_enough_for_what_fits_them() {
    let bench = &Bench::new(script()).await;
    for work in WORK {
        for help in HELP {
            let spec = bench.spec(&format!("lead {help}: {work}."));
            let (free, _) = outcome(bench, spec.clone()).await;
            let rows = tree(bench, free).await;
            let sent: u64 = rows.iter().map(|row| row.spending.spent.input_tokens).sum();
            // Far less than the longest reply of one call has.
            let tokens = Budget {
                input_tokens: Some(sent * 2),
                output_tokens: Some(4_000),
                ..Budget::default()
            };
            let (run, ended) = outcome(bench, RunSpec { budget: tokens, ..spec }).await;
            assert_eq!(ended, Outcome::completed("done"), "{help}: {work}");
            let root = tree(bench, run).await.into_iter().find(|row| row.id == run).unwrap();
            let drawn = root.funds.drawn.unwrap();
            assert!(drawn.input_tokens <= sent * 2 && drawn.output_tokens <= 4_000, "{drawn:?}");
        }
    }
}

#[tokio::test]
async fn a_budget_that_is_carved_out_for_a_child_is_enough_for_what_fits_it() {
    let agent = |name: &str| AgentSpec {
        description: "looks".to_owned(),
        instructions: "Look.".to_owned(),
        budget: Budget { cost: Some(Usd::from_dollars(0.1)), ..Budget::default() },
        ..AgentSpec::new(name.parse().unwrap())
    };
    let look = || Reply::tool_call("List", json!({}));
    let child = Conversation::when(When::any().first_user_contains("look around"))
        .reply(look())
        .reply(look())
        .reply(Reply::text("seen"));
    let lead = Conversation::when(When::any().first_user_contains("lead"))
        .reply(look())
        .reply(Reply::tool_call("Task", task("thrifty", "look around")))
        .reply(look())
        .reply(Reply::text("done"));
    let script = Script::new().conversation(lead).conversation(child);
    let bench = Bench::with(script, |config| {
        config.definitions.agents.set(agent("thrifty"));
        config
    })
    .await;
    let budget = Budget { cost: Some(Usd::from_dollars(0.3)), ..Budget::default() };
    let (run, ended) = outcome(&bench, RunSpec { budget, ..bench.spec("lead") }).await;
    assert_eq!(ended, Outcome::completed("done"));
    let rows = tree(&bench, run).await;
    assert!(rows.iter().all(|row| row.state.outcome.as_deref() == Some("completed")), "{rows:#?}");
}

#[tokio::test]
async fn a_reply_that_the_money_made_too_short_ends_the_run_at_its_cost() {
    let bench = &Bench::new(Script::always(Reply::text("and so").stop_reason("max_tokens"))).await;
    let cost = Some(Usd::from_dollars(0.3));
    let limited = Limits { cost, ..Limits::default() };
    let (_, ended) = outcome(bench, RunSpec { limits: limited, ..bench.spec("x") }).await;
    assert_eq!(ended, Outcome::stopped(Limit::Cost, "and so"));
    let budget = Budget { cost, ..Budget::default() };
    let (run, ended) = outcome(bench, RunSpec { budget, ..bench.spec("x") }).await;
    assert_eq!(ended, Outcome::out_of_budget(Limit::Cost, run, "and so"));
    let (_, ended) = outcome(bench, bench.spec("x")).await;
    assert_eq!(ended, Outcome::stopped(Limit::OutputTokens, "and so"));
}
