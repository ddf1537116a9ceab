//! A worker in a process of its own: it executes runs of others, or its own, until it is told to end.

use super::Place;
use crate::bench::Result;
use crate::bench::load::{config, spec};
use crate::bench::part::{next_order, ready};
use crate::bench::server::FOLLOW;
use posse::Runtime;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Executes runs until the next order.
#[derive(Serialize, Deserialize)]
pub struct Work {
    /// Where the model is.
    pub url: String,
    pub place: Place,
    /// Where this machine keeps the files of runs.
    pub folder: PathBuf,
    pub slots: usize,
    /// Runs that it starts itself, and the folder that they work in.
    pub own: Option<(usize, PathBuf)>,
}

impl Work {
    pub async fn run(self) -> Result<()> {
        let mut config = config(&self.folder.join("runs.db"), &self.url, self.slots);
        Place::set(Some(&self.place), &mut config);
        let runtime = Runtime::open(config).await?;
        ready().await?;
        if let Some((count, workspace)) = &self.own {
            for _ in 0..*count {
                runtime.start(spec(FOLLOW, workspace)?).await?;
            }
        }
        next_order().await?;
        runtime.shutdown().await;
        Ok(())
    }
}
