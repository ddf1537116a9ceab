//! Permission modes, sandbox profiles, network access and rules about calls.

use crate::Extra;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How Posse decides about a call that no rule matches, the strictest mode first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Allow only reads.
    Plan,
    /// Deny calls that `Ask` would ask about.
    #[serde(alias = "dontAsk")]
    DontAsk,
    /// Ask a person about every call that changes something.
    #[serde(alias = "default")]
    Ask,
    /// Allow calls that can change only the workspace, and ask a person about the others.
    #[default]
    #[serde(alias = "acceptEdits")]
    AcceptEdits,
    /// Allow every call that no rule denies. Only the command line or the host program can set this.
    #[serde(alias = "bypassPermissions")]
    Bypass,
}

impl Mode {
    /// All modes, the strictest first.
    pub const ALL: [Mode; 5] =
        [Mode::Plan, Mode::DontAsk, Mode::Ask, Mode::AcceptEdits, Mode::Bypass];

    /// The name of the mode.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Plan => "plan",
            Mode::DontAsk => "dont-ask",
            Mode::Ask => "ask",
            Mode::AcceptEdits => "accept-edits",
            Mode::Bypass => "bypass",
        }
    }

    /// The mode with the name `word`.
    pub fn of(word: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.as_str() == word)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the processes of a run may do on the machine, the strictest first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// They change nothing.
    #[default]
    ReadOnly,
    /// They change only the workspace, except the files in it that are executed or followed, such as hooks.
    WorkspaceWrite,
    /// They are not confined. Only the command line can set this.
    Full,
}

impl Profile {
    /// The name of the profile.
    pub fn as_str(self) -> &'static str {
        match self {
            Profile::ReadOnly => "read-only",
            Profile::WorkspaceWrite => "workspace-write",
            Profile::Full => "full",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The hosts that the processes of a run may connect to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub enum Network {
    /// None, and no other process on this machine either.
    #[default]
    Off,
    /// The hosts with these names: `example.org`, `*.example.org` for all hosts below it, or `*`
    /// for the public internet.
    Hosts(Vec<String>),
    /// All hosts.
    Open,
}

/// How a network is stored: `off`, `open`, or a list of hosts.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Word(String),
    Hosts(Vec<String>),
}

impl From<Stored> for Network {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Hosts(hosts) => Network::Hosts(hosts),
            Stored::Word(word) if word == "open" => Network::Open,
            // An unknown word, from a later version, allows nothing here.
            Stored::Word(_) => Network::Off,
        }
    }
}

impl From<Network> for Stored {
    fn from(network: Network) -> Self {
        match network {
            Network::Off => Stored::Word("off".to_owned()),
            Network::Open => Stored::Word("open".to_owned()),
            Network::Hosts(hosts) => Stored::Hosts(hosts),
        }
    }
}

impl Network {
    /// Parses `off`, `open`, or names of hosts separated by commas.
    ///
    /// # Errors
    /// What is wrong with `text`, and what to write instead.
    pub fn of(text: &str) -> Result<Network, String> {
        match text.trim() {
            "off" => return Ok(Network::Off),
            "open" => return Ok(Network::Open),
            // These are not names of hosts in practice.
            word @ ("on" | "yes" | "true" | "all" | "any") => {
                return Err(format!(
                    "`{word}` would be the name of a host; write `open` for all there is, `*` for the \
                     public internet, or hosts such as example.org"
                ));
            }
            word @ ("no" | "false" | "none") => {
                return Err(format!("`{word}` would be the name of a host; write `off` for none"));
            }
            _ => {}
        }
        let hosts: Result<Vec<String>, String> = text.split(',').map(host).collect();
        hosts.map(Network::Hosts)
    }

    /// True when no host can be reached.
    pub fn is_off(&self) -> bool {
        match self {
            Network::Off => true,
            Network::Hosts(hosts) => hosts.is_empty(),
            Network::Open => false,
        }
    }

    /// The hosts that both allow. A host in one list is kept if a pattern of the other covers it.
    #[must_use]
    pub fn meet(&self, other: &Network) -> Network {
        match (self, other) {
            (Network::Open, narrower) | (narrower, Network::Open) => narrower.clone(),
            (Network::Hosts(ours), Network::Hosts(theirs)) => {
                let covered = |host: &String, by: &[String]| by.iter().any(|it| covers(it, host));
                let mut hosts: Vec<String> =
                    ours.iter().filter(|host| covered(host, theirs)).cloned().collect();
                for host in theirs {
                    if covered(host, ours) && !hosts.contains(host) {
                        hosts.push(host.clone());
                    }
                }
                if hosts.is_empty() { Network::Off } else { Network::Hosts(hosts) }
            }
            (Network::Off, _) | (_, Network::Off) => Network::Off,
        }
    }

    /// True when processes may connect to `host`, which is in lower case and without a dot at its end.
    pub fn allows(&self, host: &str) -> bool {
        match self {
            Network::Off => false,
            Network::Hosts(hosts) => hosts.iter().any(|pattern| covers(pattern, host)),
            Network::Open => true,
        }
    }
}

/// The pattern that matches every name.
const ALL: &str = "*";

/// The normal form of a host name or a pattern.
fn host(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text == ALL {
        return Ok(text.to_owned());
    }
    let (star, name) = match text.strip_prefix("*.") {
        Some(name) => ("*.", name),
        None => ("", text),
    };
    host_name(name).map(|name| format!("{star}{name}")).ok_or_else(|| {
        format!(
            "`{}` is no name of a host; write example.org, *.example.org, *, off or open",
            text.escape_debug()
        )
    })
}

/// The normal form of a host name: lower case, without a dot at its end. `None` if `text` is not a host name.
pub fn host_name(text: &str) -> Option<String> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let sound = |label: &str| {
        let inside = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        (1..=63).contains(&label.len()) && label.chars().all(inside) && !label.starts_with('-')
    };
    (name.len() <= 253 && name.split('.').all(sound)).then_some(name)
}

/// True when `pattern` matches `name`, or every name that the pattern `name` matches.
fn covers(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix("*.") {
        Some(above) => {
            let below = name.strip_prefix("*.").unwrap_or(name);
            (name.starts_with("*.") && below == above)
                || below.strip_suffix(above).is_some_and(|rest| rest.ends_with('.'))
        }
        // `*` does not match this machine or addresses; rules have to name them.
        None if pattern == ALL => name == ALL || !is_inward(name),
        None => pattern == name,
    }
}

/// True for this machine, and for addresses.
fn is_inward(name: &str) -> bool {
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok()
}

/// Rules about calls: `Bash(git diff:*)`, `Read(src/**)`, `mcp__files__*`. Deny takes precedence
/// over ask, and ask over allow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Permissions {
    /// Calls that run without a question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Calls that need the approval of a person in every mode.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<String>,
    /// Calls that are denied in every mode.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Permissions {
    /// True when there is no rule.
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.ask.is_empty() && self.deny.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_networks_both_allow() {
        let hosts = |names: &[&str]| Network::Hosts(names.iter().map(|it| (*it).into()).collect());
        let check = |a: Network, b: Network, both: Network| {
            assert_eq!(a.meet(&b), both, "{a:?} {b:?}");
            assert_eq!(b.meet(&a), both, "{b:?} {a:?}");
        };
        check(Network::Open, Network::Off, Network::Off);
        check(Network::Open, hosts(&["a.org"]), hosts(&["a.org"]));
        check(hosts(&["a.org"]), hosts(&["b.org"]), Network::Off);
        check(hosts(&["*.a.org"]), hosts(&["x.a.org", "a.org"]), hosts(&["x.a.org"]));
        check(hosts(&["*.a.org"]), hosts(&["*.b.a.org"]), hosts(&["*.b.a.org"]));
        check(hosts(&["*.a.org"]), hosts(&["*.a.org"]), hosts(&["*.a.org"]));
        assert!(!hosts(&["*.a.org"]).allows("eviLa.org"));
        assert!(!hosts(&["a.org"]).allows("a.org.evil.net"));
        assert!(!hosts(&[]).allows("a.org"));
    }

    #[test]
    fn a_stricter_mode_comes_first() {
        assert!(Mode::ALL.is_sorted());
        assert_eq!(Mode::ALL.map(|mode| Mode::of(mode.as_str())), Mode::ALL.map(Some));
    }
}
