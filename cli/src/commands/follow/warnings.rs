//! Warnings before a run is shown: what is not used, or has no effect.

use super::Viewer;
use crate::clean::clean_line;
use crate::exit::Failure;
use crate::spending::{UNKNOWN, is_unpriced};
use posse::agents::{Level, Problem};
use posse::config::Config;
use posse::{RunId, Runtime, Selection};

impl Viewer {
    /// Warns about agents that cannot be used, and about parts of `agent` without effect. Other agents
    /// are not affected.
    pub fn warn_of_agents(&mut self, runtime: &Runtime, agent: &str) {
        let agents = runtime.agents();
        let matters = |problem: &&Problem| match problem.level {
            // An error in the agent itself ends the command, so it is not a warning.
            Level::Error => problem.agent.as_deref() != Some(agent),
            Level::Warning => problem.agent.as_deref() == Some(agent),
            Level::NotInForce | Level::Note => false,
        };
        let wrong = agents.problems().iter().filter(matters);
        let remark = match (wrong.clone().next(), wrong.count() as u64) {
            (None, _) => return,
            (Some(problem), 1) => format!("◇ {problem}"),
            (Some(problem), count) => {
                format!("◇ {problem}; and {} more: `posse agents check`", count - 1)
            }
        };
        self.screen.remark(&clean_line(&remark, 400));
    }

    /// Warns about named models that are not used.
    pub fn warn_of_models(&mut self, runtime: &Runtime, selection: &Selection) {
        if is_unpriced(runtime, &selection.model) {
            let model = clean_line(&selection.model, 100);
            self.screen.know_no_price();
            self.screen.remark(&format!(
                "◇ the price of {model} is unknown: Posse shows its costs as {UNKNOWN}"
            ));
        }
        for why in &selection.skipped {
            self.screen.remark(&clean_line(&format!("◇ left out: {why}"), 400));
        }
    }

    /// Warns about settings and agents without effect because their folder is not trusted.
    pub fn warn_of_trust(&mut self, runtime: &Runtime, config: &Config, agent: &str) {
        let keys: Vec<&str> = config.held_back.iter().map(|key| key.value).collect();
        let mut inert = Vec::new();
        if !keys.is_empty() {
            inert.push(format!("{} in its posse.toml has no effect", keys.join(", ")));
        }
        let agents = runtime.agents();
        let is_narrowed = |problem: &&Problem| problem.reason.starts_with("read-only");
        let narrowed = agents.problems().iter().filter(is_narrowed);
        let mut names: Vec<&str> = narrowed.filter_map(|it| it.agent.as_deref()).collect();
        names.dedup();
        // Name the selected agent, or else the agents that it may call.
        match names.as_slice() {
            [] => {}
            names if names.contains(&agent) => {
                inert.push(format!("its agent {agent} is read-only"));
            }
            [name] => inert.push(format!("its agent {name} is read-only")),
            names => inert.push(format!("its agents {} are read-only", names.join(", "))),
        }
        let kept = agents.entries().iter().filter(|entry| entry.is_kept_from_its_name());
        let kept: Vec<&str> = kept.map(|entry| entry.name.as_str()).collect();
        match kept.as_slice() {
            [] => {}
            [name] => inert.push(format!("Posse uses another agent {name} instead of its own")),
            names => {
                inert.push(format!(
                    "Posse uses other agents {} instead of its own",
                    names.join(", ")
                ));
            }
        }
        if !inert.is_empty() {
            let why = inert.join(", ");
            let remark = format!("◇ this folder is not trusted: {why}; `posse trust` shows more");
            self.screen.remark(&clean_line(&remark, 400));
        }
    }

    /// Warns that a run continues read-only, and why, if so.
    pub async fn warn_of_distrust(&mut self, runtime: &Runtime, run: RunId) -> Result<(), Failure> {
        if let Some(why) = runtime.held_back(run).await? {
            let why = format!("◇ {why}; `posse trust FOLDER` shows what it contains");
            self.screen.remark(&clean_line(&why, 1000));
        }
        Ok(())
    }
}
