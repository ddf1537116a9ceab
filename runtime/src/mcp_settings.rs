//! MCP servers as settings describe them: tables of the user's settings, and `.mcp.json` files of projects.
//!
//! It reads and checks them. Variables in them stay as they are written until a server starts. It starts nothing.

mod expand;
mod json;

pub use expand::Lookup;
pub(crate) use expand::Variables;
pub use json::{MCP_JSON, read_json};

use crate::limits::parse_duration;
use posse_protocol::Network;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// How long a server may take to start and list its tools, unless the settings say otherwise.
pub(crate) const START: &str = "30s";
/// How long a call may take, unless the settings say otherwise.
pub(crate) const CALL: &str = "10m";
/// The longest name that leaves room for the names of tools.
const LONGEST_NAME: usize = 32;

/// An MCP server, with its variables not yet expanded.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// Its name. Models see its tools as `mcp__NAME__TOOL`.
    pub name: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its variables besides those of every command. The values may be secret.
    pub env: BTreeMap<String, String>,
    /// Hosts that it may reach besides those of the run.
    pub network: Network,
    /// How long it may take to start and list its tools.
    pub start_within: Duration,
    /// How long a call may take.
    pub call_within: Duration,
    /// No run starts without it.
    pub required: bool,
}

/// Prints no values of variables.
impl fmt::Debug for ServerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSettings").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ServerSettings {
    /// The program and its arguments, as they are written.
    pub fn command_line(&self) -> String {
        let words = std::iter::once(&self.command).chain(&self.args);
        let quoted =
            words.map(|word| match word.contains(char::is_whitespace) || word.is_empty() {
                true => format!("'{word}'"),
                false => word.clone(),
            });
        quoted.collect::<Vec<_>>().join(" ")
    }

    /// A server that a person describes: its program, its variables, and the hosts that it may reach.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(
        name: &str,
        command: Vec<String>,
        env: BTreeMap<String, String>,
        network: Network,
    ) -> Result<Self, String> {
        let mut words = command.into_iter();
        let written = FileServer {
            command: words.next(),
            args: words.collect(),
            env,
            ..FileServer::default()
        };
        Ok(ServerSettings { network, ..ServerSettings::read(name, written)? })
    }

    /// The server that `written` describes.
    ///
    /// # Errors
    /// What is wrong with it, without any value.
    pub(crate) fn read(name: &str, written: FileServer) -> Result<Self, String> {
        let wrong = |what: String| format!("MCP server `{name}`: {what}");
        if let Some(fault) = name_fault(name) {
            return Err(wrong(fault));
        }
        let FileServer { command, args, env, network, .. } = written;
        let kind = written.kind.as_deref();
        if written.url.is_some() || !matches!(kind, None | Some("stdio")) {
            return Err(wrong(
                "Posse starts servers with a `command`; it cannot connect to a `url` yet"
                    .to_owned(),
            ));
        }
        let command = command.filter(|it| !it.trim().is_empty());
        let command = command.ok_or_else(|| wrong("it has no `command`".to_owned()))?;
        if let Some(variable) = env.keys().find(|name| !can_be_passed_on(name)) {
            return Err(wrong(format!(
                "its variable `{variable}` cannot be passed on; names have letters, digits and `_`, and do not \
                 begin with LD_ or POSSE_"
            )));
        }
        let network = match network {
            None => Network::Off,
            Some(Hosts::One(word)) => Network::of(&word).map_err(&wrong)?,
            Some(Hosts::More(hosts)) if hosts.is_empty() => Network::Off,
            Some(Hosts::More(hosts)) => Network::of(&hosts.join(",")).map_err(&wrong)?,
        };
        let time = |text: Option<String>, usual: &str| {
            let text = text.as_deref().unwrap_or(usual);
            parse_duration(text).map(Duration::from_millis).map_err(&wrong)
        };
        Ok(ServerSettings {
            name: name.to_owned(),
            command,
            args,
            env,
            network,
            start_within: time(written.startup_timeout, START)?,
            call_within: time(written.timeout, CALL)?,
            required: written.required,
        })
    }
}

/// Returns what is wrong with the name of a tool source, if anything.
pub(crate) fn name_fault(name: &str) -> Option<String> {
    let plain = |char: char| char.is_ascii_alphanumeric() || "_-".contains(char);
    let is_plain = name.chars().all(plain) && !name.contains("__") && !name.ends_with('_');
    (name.is_empty() || name.len() > LONGEST_NAME || !is_plain).then(|| {
        format!("must have a name of 1 to {LONGEST_NAME} letters, digits, `-` and single `_`")
    })
}

/// Returns false for variables that would affect Posse's own processes around a program.
pub(crate) fn can_be_passed_on(name: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_valid = name.bytes().all(is_name) && !name.is_empty();
    is_valid && !["LD_", "POSSE_"].iter().any(|start| name.starts_with(start))
}

/// `[mcp_servers.NAME]` as written. The names are those of other programs.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileServer {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    url: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    network: Option<Hosts>,
    startup_timeout: Option<String>,
    timeout: Option<String>,
    #[serde(default)]
    required: bool,
}

/// A word or a list of hosts.
#[derive(Clone, Deserialize)]
#[serde(untagged, expecting = "expected `off`, `open` or a list of hosts")]
enum Hosts {
    One(String),
    More(Vec<String>),
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Result<ServerSettings, String> {
        ServerSettings::read(name, toml::from_str(text).unwrap())
    }

    #[test]
    fn a_server_is_read_whole_and_shows_no_secret() {
        let text = "command = 'npx'\nargs = ['-y', 'a b']\nenv = { TOKEN = 'hunter2hunter2' }\n\
                    network = ['API.example.org']\ntimeout = '5s'\nrequired = true";
        let server = read("files", text).unwrap();
        assert_eq!(server.command_line(), "npx -y 'a b'");
        assert_eq!(server.network, Network::Hosts(vec!["api.example.org".to_owned()]));
        assert_eq!((server.call_within.as_secs(), server.start_within.as_secs()), (5, 30));
        assert!(server.required && !format!("{server:?}").contains("hunter2"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (name, text, says) in [
            ("a__b", "command = 'x'", "must have a name"),
            ("a", "", "it has no `command`"),
            ("a", "command = ' '", "it has no `command`"),
            ("a", "url = 'https://x.org'", "cannot connect to a `url` yet"),
            ("a", "type = 'sse'\ncommand = 'x'", "cannot connect to a `url` yet"),
            ("a", "command = 'x'\nenv = { LD_PRELOAD = 'y' }", "`LD_PRELOAD` cannot be passed on"),
            ("a", "command = 'x'\nnetwork = 'yes'", "`yes` would be the name of a host"),
            ("a", "command = 'x'\ntimeout = 'soon'", "`soon` is not a duration"),
        ] {
            let error = read(name, text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
