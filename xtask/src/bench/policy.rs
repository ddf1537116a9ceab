//! The benchmark of rules: what it takes to decide about a call that a thousand rules may be about.

use super::line::{Goal, Line, Samples, seconds, times};
use super::spine::{Effort, again, build};
use super::{Result, line, meter};
use posse::agents::built_in_tools;
use posse::policy::{Policy, Today};
use posse::protocol::{CallId, Effect, Extra, Grant, Mode, Profile, ToolCall, ToolSpec};
use posse_agent::{Guard, Ruling, Standing};
use serde_json::{Value, json};
use std::hint::black_box;
use std::time::Instant;

/// Measures what a decision about a call costs
#[derive(clap::Args)]
pub struct PolicyBench {
    /// One round of each
    #[arg(long)]
    quick: bool,
}

/// Rules that a call is held against.
const RULES: usize = 1_000;
/// What a decision may take, in seconds.
const GOAL: f64 = 20e-6;
/// Decisions of a round.
const DECISIONS: u32 = 20_000;

impl PolicyBench {
    pub fn run(self) -> Result<()> {
        if cfg!(debug_assertions) {
            build()?;
            return again();
        }
        line::say(&format!("{}\n", meter::machine()));
        line::head();
        let rounds = match if self.quick { Effort::Quick } else { Effort::Full } {
            Effort::Quick => 1,
            Effort::Full => 7,
        };
        let (full, bare) = (policy(RULES)?, policy(0)?);
        for (name, effect, input) in calls() {
            let tool = if name.starts_with("Bash") { "Bash" } else { name };
            let measured: Vec<(f64, f64)> = (0..rounds)
                .map(|_| (time(&full, tool, effect, &input), time(&bare, tool, effect, &input)))
                .collect();
            let column =
                |pick: fn(&(f64, f64)) -> f64| Samples::new(measured.iter().map(pick).collect());
            let (ours, without) = (column(|pair| pair.0), column(|pair| pair.1));
            let shown = |time: f64| match time < 10e-6 {
                true => format!("{:.2} µs", time * 1e6),
                false => seconds(time),
            };
            Line {
                name: format!("decision: {name}, 1,000 rules"),
                posse: ours.shown(shown),
                raw: format!("{} without rules", without.shown(shown)),
                ratio: Samples::ratios(&measured).shown(times),
                goal: Goal::at_most("under 20 µs", ours.median(), GOAL),
            }
            .print();
        }
        Ok(())
    }
}

/// Calls that no rule decides but the last ones, so that all have to be looked at.
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
    let standing = Standing::default();
    let began = Instant::now();
    for _ in 0..DECISIONS {
        let ruling: Ruling = policy.judge(black_box(&call), black_box(&spec), &standing);
        black_box(ruling);
    }
    began.elapsed().as_secs_f64() / f64::from(DECISIONS)
}
