//! The environment variables of commands. All others stay with the host, above all those with keys.

use crate::confine::{GIT_SETTINGS, NO_TIDYING};
use std::ffi::{OsStr, OsString};

/// The variables of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Sets a variable, and replaces its earlier value.
    pub(crate) fn with(mut self, name: &str, value: &OsStr) -> Self {
        self.0.retain(|(it, _)| it != name);
        self.0.push((name.into(), value.to_owned()));
        self
    }
}

/// Variables that name a path or say how output should look. None of them holds a secret.
const ALLOWED: &str = "PATH HOME USER LOGNAME SHELL LANG LANGUAGE TERM TZ TMPDIR NO_COLOR CI \
     RUSTUP_HOME RUSTUP_TOOLCHAIN CARGO_HOME JAVA_HOME JDK_HOME GRADLE_HOME GRADLE_USER_HOME \
     MAVEN_HOME M2_HOME SDKMAN_DIR ANDROID_HOME GOROOT GOPATH GOTOOLCHAIN VIRTUAL_ENV CONDA_PREFIX \
     PYENV_ROOT PYENV_VERSION RBENV_ROOT RBENV_VERSION GEM_HOME NVM_DIR VOLTA_HOME PNPM_HOME \
     BUN_INSTALL NODE_ENV DOTNET_ROOT NIX_PROFILES NIX_SSL_CERT_FILE SSL_CERT_FILE SSL_CERT_DIR";

/// Variables that every command gets: no person can use its editor, pager or prompt.
const ALWAYS: [(&str, &str); 5] = [
    ("GIT_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("PAGER", "cat"),
    (GIT_SETTINGS, NO_TIDYING),
];

/// Selects from `all` the variables that a command needs to find programs, files, its user and its
/// language, and those that `more` names.
pub fn allowed_environment(
    all: impl Iterator<Item = (OsString, OsString)>,
    more: &[String],
) -> Environment {
    let found = all.filter(|(name, _)| is_allowed(name, more));
    let always = ALWAYS.map(|(name, value)| (name.into(), value.into()));
    Environment(always.into_iter().chain(found).collect())
}

/// Variables that git and ssh of a user need to reach another machine: its keys, proxies, certificates and settings.
const FETCHING: &str = "ALL_PROXY DBUS_SESSION_BUS_ADDRESS GIT_ASKPASS GIT_CONFIG_GLOBAL GIT_SSH \
     GIT_SSH_COMMAND GIT_SSL_CAINFO GIT_SSL_CAPATH GNUPGHOME HTTPS_PROXY HTTP_PROXY KRB5CCNAME NO_PROXY \
     SSH_AGENT_PID SSH_ASKPASS SSH_AUTH_SOCK XDG_CONFIG_HOME XDG_RUNTIME_DIR all_proxy http_proxy \
     https_proxy no_proxy";

/// Selects from `all` the variables for git when it fetches a repository. They are for no command of an agent.
pub fn fetching_environment(all: impl Iterator<Item = (OsString, OsString)>) -> Environment {
    let is_needed = |name: &OsStr| FETCHING.split_whitespace().any(|known| known == name);
    Environment(all.filter(|(name, _)| is_needed(name)).collect())
}

fn is_allowed(name: &OsStr, more: &[String]) -> bool {
    let Some(name) = name.to_str() else { return false };
    ALLOWED.split_whitespace().any(|known| known == name)
        || name.starts_with("LC_")
        || more.iter().any(|more| more == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_variables_pass() {
        let all = [
            "PATH",
            "LC_ALL",
            "TZ",
            "ANTHROPIC_API_KEY",
            "LD_PRELOAD",
            "BASH_ENV",
            "PATHS",
            "MY_SERVICE",
            "JAVA_HOME",
        ];
        let all = all.iter().map(|name| (OsString::from(name), OsString::from("x")));
        let allowed = allowed_environment(all, &["MY_SERVICE".to_owned()]);
        let names: Vec<&OsStr> = allowed.iter().skip(ALWAYS.len()).map(|(name, _)| name).collect();
        assert_eq!(names, ["PATH", "LC_ALL", "TZ", "MY_SERVICE", "JAVA_HOME"]);
    }

    #[test]
    fn only_a_fetch_gets_the_agent_of_ssh() {
        let all = || ["SSH_AUTH_SOCK", "AWS_SECRET"].map(|name| (name.into(), "x".into()));
        assert_eq!(fetching_environment(all().into_iter()).iter().count(), 1);
        assert_eq!(allowed_environment(all().into_iter(), &[]).iter().count(), ALWAYS.len());
    }
}
