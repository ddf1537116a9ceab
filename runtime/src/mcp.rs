//! The MCP servers that runs may use: those of the user, and those of projects that the user trusts.
//!
//! A server is a tool source. Posse reads the files each time it needs a server, so that trust counts as it is now. A
//! server whose definitions differ from those that were accepted offers nothing. Nothing here starts a process.

mod accepted;
mod source;

pub use accepted::{Accepted, Standing};
pub(crate) use source::McpSource;

use crate::config::Setting;
use crate::mcp_settings::{Lookup, MCP_JSON, ServerSettings, read_json};
use crate::trust::{TrustStatus, TrustedFolders, repository};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The servers of the user, and what is needed to use those of projects.
#[derive(Clone, Default)]
pub struct McpServers {
    /// The user's own, and the file that each is in.
    pub own: Vec<Setting<ServerSettings>>,
    /// The folders whose servers may start.
    pub trust: TrustedFolders,
    /// The values of variables in the settings of servers. Without it, no variable is set.
    pub lookup: Option<Lookup>,
    /// Variables that no project may use: the keys of models.
    pub refused: Vec<String>,
    /// The log of the definitions that the user has accepted, which need not exist.
    pub accepted: Option<PathBuf>,
}

impl fmt::Debug for McpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServers").field("own", &self.own).finish_non_exhaustive()
    }
}

/// A server around a folder.
#[derive(Clone, Debug)]
pub struct FoundServer {
    /// Its settings.
    pub settings: ServerSettings,
    /// The file that describes it.
    pub file: PathBuf,
    /// Whether it may start. The user's own may.
    pub trust: TrustStatus,
    /// The file with the server of the same name that takes precedence, if there is one.
    pub shadowed_by: Option<PathBuf>,
    /// True if a project describes it.
    pub is_of_project: bool,
}

impl FoundServer {
    /// True when runs may use it.
    pub fn is_usable(&self) -> bool {
        self.trust.is_trusted() && self.shadowed_by.is_none()
    }
}

/// The servers around a folder, and what cannot be used.
#[derive(Clone, Debug, Default)]
pub struct FoundServers {
    /// The user's own servers first, then those of the nearest folder.
    pub servers: Vec<FoundServer>,
    /// What is wrong with files or servers.
    pub problems: Vec<String>,
}

impl McpServers {
    /// True when a run in any folder may have servers.
    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.trust == TrustedFolders::default()
    }

    /// Returns the servers for runs in `folder`: the user's own, those of `.mcp.json` there, and those of such files in
    /// the folders above it in its repository. Starts nothing.
    pub fn around(&self, folder: &Path) -> FoundServers {
        let mut found = FoundServers::default();
        for own in &self.own {
            found.add(own.value.clone(), own.file(), TrustStatus::Trusted, false);
        }
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        for folder in repository(&folder) {
            self.of_project(&folder, &mut found);
        }
        found
    }

    fn of_project(&self, folder: &Path, found: &mut FoundServers) {
        let file = folder.join(MCP_JSON);
        let servers = match read_json(&file) {
            Ok(servers) => servers,
            Err(why) => return found.problems.push(why),
        };
        if servers.is_empty() {
            return;
        }
        let trust = self.trust.verdict(folder).of_settings();
        for server in servers {
            match server {
                Ok(server) => found.add(server, file.clone(), trust.clone(), true),
                Err(why) => found.problems.push(why),
            }
        }
    }

    /// Returns the sources for a run in `folder` that begins.
    pub(crate) fn sources(&self, folder: &Path) -> Vec<Arc<McpSource>> {
        let servers = self.around(folder).servers.into_iter();
        servers.filter(FoundServer::is_usable).map(|server| self.source(server)).collect()
    }

    /// Returns the source `name` of `file` for a run that began with it.
    ///
    /// # Errors
    /// When it is gone, or not trusted any more.
    pub(crate) fn again(&self, name: &str, file: &Path) -> Result<Arc<McpSource>, String> {
        let mut found = FoundServers::default();
        for own in self.own.iter().filter(|own| own.file() == file) {
            found.add(own.value.clone(), own.file(), TrustStatus::Trusted, false);
        }
        if found.servers.is_empty()
            && file.file_name().is_some_and(|name| name == MCP_JSON)
            && let Some(folder) = file.parent()
        {
            self.of_project(folder, &mut found);
        }
        let server = found.servers.into_iter().find(|server| server.settings.name == name);
        let Some(server) = server else {
            return Err(format!("{} has no MCP server `{name}` any more", file.display()));
        };
        match &server.trust {
            TrustStatus::Trusted => Ok(self.source(server)),
            trust => Err(format!("the folder of {} is {trust}", file.display())),
        }
    }

    /// Returns `server` as a source.
    pub(crate) fn source(&self, server: FoundServer) -> Arc<McpSource> {
        Arc::new(McpSource::new(server, self))
    }
}

impl FoundServers {
    fn add(
        &mut self,
        settings: ServerSettings,
        file: PathBuf,
        trust: TrustStatus,
        is_of_project: bool,
    ) {
        let same = |known: &&FoundServer| known.settings.name == settings.name;
        let shadowed_by = self.servers.iter().find(same).map(|known| known.file.clone());
        self.servers.push(FoundServer { settings, file, trust, shadowed_by, is_of_project });
    }
}

impl Setting<ServerSettings> {
    /// The file that the server is in.
    fn file(&self) -> PathBuf {
        PathBuf::from(self.origin.to_string())
    }
}
