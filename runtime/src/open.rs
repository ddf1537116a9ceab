//! Opens a runtime: checks its configuration and builds its parts.

use crate::active::Active;
use crate::archive::Sweeper;
use crate::authority;
use crate::error::Error;
use crate::execute::Executor;
use crate::host_tools;
use crate::runtime::{Inner, Runtime};
use crate::runtime_config::{OpenStore, RuntimeConfig};
use crate::supervisor::Supervisor;
use crate::tool_facts::check_tools;
use crate::tool_sources::{self, Sources};
use crate::toolset::Toolset;
use crate::webhooks::{self, Hooks, Sender, Webhook};
use crate::worktree::{Repositories, Worktrees};
use parking_lot::Mutex;
use posse_agent::Waits;
use posse_model::Models;
use posse_store::{Options, Scrub, SqliteStore, Store};
use std::sync::Arc;
use tokio::sync::{OnceCell, Semaphore};

/// The maximum number of runs that are prepared and stored at the same time. If many runs start
/// together and this were larger, the first run would wait for all others before it calls its
/// model. If it were smaller than a commit can take, commits would be small.
const STARTING: usize = 128;

/// A store that is about to be opened.
enum Opening<D> {
    Database(D),
    Host(Arc<dyn OpenStore>, Option<Arc<dyn Scrub>>),
}

impl Runtime {
    /// Opens the store and starts to execute runs.
    ///
    /// # Errors
    /// When the database cannot be used, two webhooks have one name, a rule cannot be enforced, or
    /// a model, a tool or a tool source of the host has an invalid name.
    pub async fn open(mut config: RuntimeConfig) -> Result<Self, Error> {
        webhooks::check(&config.webhooks)?;
        host_tools::check(&config.tools)?;
        tool_sources::check(&config.tool_sources)?;
        authority::check(&config.permissions.rules, &config.tool_facts())?;
        for rules in &config.delegation.subagents {
            check_tools(&rules.tools, &config.tool_facts()).map_err(Error::InvalidInput)?;
        }
        config.permissions.redactor =
            config.permissions.redactor.and(config.models.keys.secrets(&config.models.catalog));
        let signing = config.webhooks.iter().flat_map(Webhook::signing_keys);
        config.permissions.redactor =
            config.permissions.redactor.and(signing.map(|key| key.text()));
        let scrub: Arc<dyn Scrub> = Arc::new(config.permissions.redactor.clone());
        let scrub = Some(scrub).filter(|_| !config.permissions.redactor.is_empty());
        let durability = config.storage.durability;
        let options =
            Options { durability, scrub, ..Options::new(config.storage.database.clone()) };
        let (catalog, keys) = (config.models.catalog.clone(), config.models.keys.clone());
        let calls =
            posse_model::Options { stall: config.models.stall, pacing: config.models.pacing };
        let models = Models::new(catalog, keys, calls);
        let mut models = config.models.host.iter().cloned().try_fold(models, Models::with)?;
        // Other machines may have other keys. Recorded replies need none.
        if !config.scheduling.worker.host.is_empty() && config.models.cassette.is_none() {
            let vendors = models.catalog().vendors().iter();
            let lacking = vendors.filter(|vendor| models.check(vendor).is_err());
            config.scheduling.worker.lacks = lacking.map(|vendor| vendor.name.clone()).collect();
        }
        // Agents are read while the store opens.
        let opening = match &config.storage.store {
            Some(store) => Opening::Host(store.clone(), options.scrub),
            None => Opening::Database(SqliteStore::start_opening(options)),
        };
        if let Some(cassette) = &config.models.cassette {
            models =
                models.with_cassette_hiding(cassette.clone(), config.permissions.redactor.forms());
            if cassette.replay().is_some() {
                config.models.patience.waits = Waits::Skipped;
            }
        }
        config.definitions.agents.configure(config.tool_facts(), &config.limits, &config.budget);
        config.definitions.agents.current();
        let store: Arc<dyn Store> = match opening {
            Opening::Database(opening) => Arc::new(opening.opened().await?),
            Opening::Host(store, scrub) => store.open(scrub).await?,
        };
        let hooks = Arc::new(Hooks::new(config.webhooks.clone()));
        let active: Arc<Active> = Arc::default();
        let worktrees = Worktrees::new(config.worktrees(), config.launcher.clone());
        let repositories = Repositories::new(config.repositories(), worktrees.clone());
        let (supervisor, assignments) =
            Supervisor::new(store.clone(), active.clone(), repositories.clone(), &config);
        let inner = Inner {
            models,
            tools: Toolset::new(&config),
            sources: Arc::new(Sources::new(config.tool_sources.clone(), config.mcp.clone())),
            worktrees,
            repositories,
            checkouts: Mutex::default(),
            active,
            feed: Arc::default(),
            supervisor,
            sender: Sender::start(store.clone(), hooks.clone()),
            hooks,
            store,
            config,
            starting: Semaphore::new(STARTING),
            choice: OnceCell::new(),
        };
        let runtime = Runtime { inner: Arc::new(inner) };
        let Inner { supervisor, store, config, sources, repositories, .. } = &*runtime.inner;
        supervisor.start(assignments, Executor::new(runtime.clone()), config.delegation.quiet);
        let sweeper = Sweeper::new(store.clone(), repositories.clone(), config);
        supervisor.keep(|stop| sweeper.run(stop));
        if !sources.is_empty() {
            supervisor.keep(|stop| sources.clone().close_rested(stop));
        }
        Ok(runtime)
    }
}
