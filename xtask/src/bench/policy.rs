//! The benchmark of rules: how long a decision about a call takes that a thousand rules may be about.

use super::Result;
use super::harness::Effort;
use super::line::{Line, Samples, seconds};
use posse::agents::built_in_tools;
use posse::policy::{Policy, Today};
use posse::protocol::{CallId, Effect, Extra, Grant, Mode, Profile, ToolCall, ToolSpec};
use posse_agent::{AddedRules, Guard, Ruling};
use serde_json::{Value, json};
use std::hint::black_box;
use std::time::Instant;

/// Rules that a call is checked against.
const RULES: usize = 1_000;
/// Seconds that a decision may take.
const GOAL: f64 = 20e-6;
/// Decisions of a round.
const DECISIONS: u32 = 20_000;

pub async fn measure(effort: Effort) -> Result<()> {
    let (full, bare) = (policy(RULES)?, policy(0)?);
    for (name, effect, input) in calls() {
        let tool = if name.starts_with("Bash") { "Bash" } else { name };
        let rounds: Vec<(f64, f64)> = (0..effort.pick(1, 7))
            .map(|_| (time(&full, tool, effect, &input), time(&bare, tool, effect, &input)))
            .collect();
        let shown = |time: f64| match time < 10e-6 {
            true => format!("{:.2} µs", time * 1e6),
            false => seconds(time),
        };
        let median = Samples::new(rounds.iter().map(|round| round.0)).median();
        Line::compared(format!("decision: {name}, 1,000 rules"), &rounds, shown)
            .against("without rules")
            .goal("under 20 µs", median <= GOAL)
            .print();
    }
    Ok(())
}

/// Calls that no rule decides, so that Posse looks at all rules.
fn calls() -> [(&'static str, Effect, Value); 4] {
    let long = "cd src && git diff --stat HEAD~1 -- a.rs 2>&1 | head -50; cargo test -p x";
    [
        ("Read", Effect::Read, json!({"file_path": "src/some/where/deep/file.rs"})),
        ("Edit", Effect::Write, json!({"file_path": "src/some/where/deep/file.rs"})),
        ("Bash, one command", Effect::Execute, json!({"command": "git diff --stat HEAD~1"})),
        ("Bash, four commands", Effect::Execute, json!({"command": long})),
    ]
}

/// A policy with so many rules of every kind, which deny, ask and allow.
fn policy(rules: usize) -> Result<Policy> {
    let mut grant = Grant {
        tools: ["Read", "Edit", "Write", "Bash"].map(str::to_owned).to_vec(),
        workspace: "/home/ada/project".to_owned(),
        mode: Mode::Ask,
        reach: Profile::WorkspaceWrite,
        attended: true,
        ..Grant::default()
    };
    for index in 0..rules {
        let rule = match index % 10 {
            0 => format!("Read(secrets{index}/**)"),
            1 => format!("Edit(docs/part{index}/*.md)"),
            2 => format!("Read(*.key{index})"),
            3 => format!("Edit(//srv/x{index}/**)"),
            4 => format!("Bash(git frob{index}:*)"),
            5 => format!("Bash(tool{index}:*)"),
            6 => format!("Bash(cargo x{index} *)"),
            7 => format!("mcp__server{index}__*"),
            8 => format!("Edit(**/gen{index}/**/*.rs)"),
            _ => format!("Bash(npm run task{index})"),
        };
        let lists = &mut grant.permissions;
        match index % 3 {
            0 => lists.deny.push(rule),
            1 => lists.ask.push(rule),
            _ => lists.allow.push(rule),
        }
    }
    Ok(Policy::new(&grant, &Today::default(), &built_in_tools().into())?)
}

/// Seconds that a decision takes, on average.
fn time(policy: &Policy, tool: &str, effect: Effect, input: &Value) -> f64 {
    let mut spec = ToolSpec::new(tool, "", effect, json!({}));
    if let Some(known) = built_in_tools().into_iter().find(|known| known.name == tool) {
        spec.facts = known;
    }
    let (id, extra) = (CallId::from("c"), Extra::default());
    let call = ToolCall { id, name: tool.to_owned(), input: input.clone(), extra };
    let standing = AddedRules::default();
    let began = Instant::now();
    for _ in 0..DECISIONS {
        let ruling: Ruling = policy.judge(black_box(&call), black_box(&spec), &standing);
        black_box(ruling);
    }
    began.elapsed().as_secs_f64() / f64::from(DECISIONS)
}
