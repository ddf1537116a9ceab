//! A main agent and its children, each of which reads three files, one a turn, and answers.

use crate::bench::cluster::Place;
use crate::bench::load::{completed, open_with, spec};
use crate::bench::meter::Cost;
use crate::bench::part::ready;
use crate::bench::server::{FILES, LEAD, Pace, Play, Server};
use crate::bench::{Part, Result};
use posse::store::Kin;
use posse::{TreeEvents, Update};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Executes a main agent that calls many children at once.
#[derive(Clone, Serialize, Deserialize)]
pub struct Tree {
    pub url: String,
    /// The folder with the files.
    pub workspace: PathBuf,
    pub children: usize,
    /// How many runs are executed at a time.
    pub slots: usize,
    pub watcher: Watcher,
    /// Where the runs are stored, if not in a new file.
    pub place: Option<Place>,
}

/// Whether a watcher follows the tree.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Watcher {
    Nobody,
    Someone,
}

/// What a tree came to.
#[derive(Serialize, Deserialize)]
pub struct Grown {
    pub cost: Cost,
    /// Updates that were delivered to a watcher.
    pub updates: usize,
}

/// Requests of a main agent with so many children.
pub fn requests(children: usize) -> usize {
    2 + children * (FILES.len() + 1)
}

impl Tree {
    /// A tree with slots for all runs, which nobody watches.
    pub fn at_once(workspace: &Path, children: usize) -> Self {
        let (url, workspace) = (String::new(), workspace.to_owned());
        Tree {
            url,
            workspace,
            children,
            slots: children + 1,
            watcher: Watcher::Nobody,
            place: None,
        }
    }

    /// With the model at `url`.
    pub fn part(&self, url: String) -> Part {
        Part::Tree(Tree { url, ..self.clone() })
    }

    /// Executes it against a new fake model.
    pub fn grow(&self, pace: Pace) -> Result<Grown> {
        let (play, requests) = (Play::Tree(self.children), requests(self.children));
        Server::round(play, pace, requests, |url| self.part(url))
    }

    pub async fn run(self) -> Result<Grown> {
        let place = |config: &mut _| Place::set(self.place.as_ref(), config);
        let (runtime, _folder) = open_with(&self.url, self.slots, place).await?;
        let spec = spec(LEAD, &self.workspace)?;
        let meter = ready().await?;
        let mut updates = 0;
        let run = if self.watcher == Watcher::Someone {
            let (begun, events) = runtime.start_and_watch(spec).await?;
            let run = runtime.handle(begun.run());
            let mut tree = TreeEvents::new(run.clone(), events);
            while let Some(update) = tree.next().await {
                let (_, Update::Event(_) | Update::Delta(_)) = update?;
                updates += 1;
            }
            run
        } else {
            runtime.start(spec).await?
        };
        let outcome = run.outcome().await?;
        let cost = meter.read();
        let (ended, children) =
            (completed(&runtime, Kin::ChildrenOf(run.id())).await?, self.children);
        runtime.shutdown().await;
        if !outcome.is_completed() || ended != children {
            return Err(format!("main agent: {outcome}; {ended} of {children} completed").into());
        }
        Ok(Grown { cost, updates })
    }
}
