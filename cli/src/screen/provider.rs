//! The model of a run: its name, why the run has it, and what happens when it fails.

use crate::clean::clean_line;
use crate::offline::is_offline;
use posse::RunId;
use posse::protocol::{Event, ModelFailed, Remedy, RunStarted};

/// The note about the built-in model.
const OFFLINE: &str = "\nThis is the built-in offline model: it searches files and quotes them, but \
    does not reason.\nFor a language model set ANTHROPIC_API_KEY or another key, or start a local \
    server: `posse models`";

#[derive(Default)]
pub struct Provider {
    /// The model and the reason for it, if the command that starts the run knows.
    why: Option<(String, String)>,
    /// The model in use.
    model: String,
    /// Why the last call of the present turn failed.
    trouble: String,
}

/// Says which sources of tools could not be used for a run that begins a tree, and why.
pub fn missing(started: &RunStarted) -> impl Iterator<Item = String> {
    let offers = started.grant.sources.iter().filter(|_| started.parent.is_none());
    offers.filter_map(|offer| {
        let (source, why) = (clean_line(&offer.source, 40), offer.missing.as_ref()?);
        Some(format!("◇ without the tools of `{source}`: {}", clean_line(why, 300)))
    })
}

impl Provider {
    /// Stores why the run that is about to start has this model.
    pub fn because(&mut self, model: &str, why: String) {
        self.why = Some((model.to_owned(), why));
    }

    /// Learns from a past event.
    pub fn recall(&mut self, event: &Event) {
        match event {
            Event::RunStarted(started) => self.model.clone_from(&started.model),
            Event::ModelFailed(failed) => self.fall_back(failed),
            _ => {}
        }
    }

    fn fall_back(&mut self, failed: &ModelFailed) {
        if let Some(Remedy::Fallback { model, .. }) = &failed.remedy {
            self.model.clone_from(model);
        }
    }

    /// The model in use, for people.
    pub fn model(&self) -> String {
        clean_line(&self.model, 80)
    }

    /// The first line about a run, and a note about the built-in model if it is used.
    pub fn started(&mut self, run: RunId, started: &RunStarted) -> String {
        self.model.clone_from(&started.model);
        let agent = clean_line(started.agent.name.as_str(), 64);
        // A run that was found by its key may have another model.
        let why = self.why.take().filter(|(model, _)| *model == started.model);
        let why = why.map_or_else(String::new, |(_, why)| format!(" ({})", clean_line(&why, 120)));
        let above = started.parent.as_ref();
        let above = above.map(|parent| format!(" · below run {}", parent.run.short()));
        let above = above.unwrap_or_default();
        let notice = if is_offline(&self.model) { OFFLINE } else { "" };
        format!("{agent} · {}{why} · run {}{above}{notice}", self.model(), run.short())
    }

    /// What happens after a failed model call, in one line; `None` if the run gives up.
    pub fn failed(&mut self, failed: &ModelFailed) -> Option<String> {
        let remedy = failed.remedy.as_ref()?;
        let why = match self.trouble == failed.reason {
            true if failed.reason.starts_with("cannot reach") => "still unreachable".to_owned(),
            true => "the same failure again".to_owned(),
            false => clean_line(&failed.reason, 300),
        };
        self.trouble.clone_from(&failed.reason);
        self.fall_back(failed);
        Some(format!("◇ {why}; {}", told(remedy)))
    }

    /// Clears the failure, because the model has answered.
    pub fn answered(&mut self) {
        self.trouble.clear();
    }
}

/// The remedy for a failed call, for people.
fn told(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Fallback { model, .. } => format!("continuing with {}", clean_line(model, 80)),
        Remedy::Retry { after_ms, attempt, of, .. } => {
            let when = match after_ms {
                0..1_000 => "now".to_owned(),
                _ => format!("in {} s", after_ms.div_ceil(1_000)),
            };
            let count = if *of > 0 { format!(" ({attempt} of {of})") } else { String::new() };
            format!("retrying {when}{count}")
        }
    }
}
