//! The back ends that can confine commands on this machine, and the choice among them.
//!
//! Posse finds out whether a back end works by using it, once for each launcher and only when needed.
//! An installed program does not show what a kernel or a container allows.

use posse_protocol::{Network, Profile};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The mechanism that confines a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// Namespaces and mounts of bubblewrap, and a filter of system calls. For every profile.
    Bubblewrap,
    /// Landlock and a filter of system calls, without network. Only for the read-only profile.
    Landlock,
    /// No confinement, as the profile full demands.
    None,
}

impl Backend {
    /// All back ends that confine, the best first.
    pub const ALL: [Backend; 2] = [Backend::Bubblewrap, Backend::Landlock];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Backend::Bubblewrap => "bubblewrap",
            Backend::Landlock => "landlock",
            Backend::None => "none",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why no command can run with a confinement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// No back end on this machine can provide it.
    #[error("no {profile} shell: {reasons}")]
    NoBackend {
        /// The profile that was requested.
        profile: Profile,
        /// Why each suitable back end does not work.
        reasons: String,
    },
}

/// Which back ends may be used, and which of them work. Clones share the results.
#[derive(Clone, Debug)]
pub(crate) struct Backends {
    usable: [bool; 2],
    found: Arc<[OnceLock<Result<(), String>>; 2]>,
}

impl Default for Backends {
    fn default() -> Self {
        Backends { usable: [true; 2], found: Arc::default() }
    }
}

impl Backends {
    /// Restricts the choice to these back ends.
    pub(crate) fn only(&self, backends: &[Backend]) -> Backends {
        let usable = Backend::ALL.map(|backend| backends.contains(&backend));
        Backends { usable, found: self.found.clone() }
    }

    /// Returns true if `backend` may be used.
    pub(crate) fn allows(&self, backend: Backend) -> bool {
        Backend::ALL.iter().zip(self.usable).any(|(it, usable)| *it == backend && usable)
    }

    /// Checks whether `backend` works here. Runs `trial` unless the result is known.
    pub(crate) fn check(
        &self,
        backend: Backend,
        trial: impl Fn(Backend) -> Result<(), String>,
    ) -> Result<(), String> {
        let Some(index) = Backend::ALL.iter().position(|it| *it == backend) else { return Ok(()) };
        if !self.usable[index] {
            return Err(format!("{backend} is not to be used"));
        }
        self.found[index].get_or_init(|| trial(backend)).clone()
    }

    /// The result for `backend`, if it has been tried.
    pub(crate) fn known(&self, backend: Backend) -> Option<Result<(), String>> {
        let index = Backend::ALL.iter().position(|it| *it == backend)?;
        self.found[index].get().cloned()
    }

    /// Returns the best back end that provides this profile and network.
    pub(crate) fn choose(
        &self,
        profile: Profile,
        network: &Network,
        trial: impl Fn(Backend) -> Result<(), String>,
    ) -> Result<Backend, Unavailable> {
        if profile == Profile::Full {
            return Ok(Backend::None);
        }
        let mut reasons = Vec::new();
        for backend in Backend::ALL {
            if backend == Backend::Landlock && profile != Profile::ReadOnly {
                reasons.push("landlock cannot protect what is inside of a writable folder".into());
                continue;
            }
            if backend == Backend::Landlock && !network.is_off() {
                reasons.push("landlock serves without network only".into());
                continue;
            }
            match self.check(backend, &trial) {
                Ok(()) => return Ok(backend),
                Err(reason) => reasons.push(reason),
            }
        }
        Err(Unavailable::NoBackend { profile, reasons: reasons.join("; ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(works: &[Backend], profile: Profile, network: Network) -> Result<Backend, String> {
        let trial = |backend| match works.contains(&backend) {
            true => Ok(()),
            false => Err(format!("{backend} does not work")),
        };
        Backends::default().choose(profile, &network, trial).map_err(|error| error.to_string())
    }

    #[test]
    fn a_profile_is_served_by_what_can_keep_it_or_not_at_all() {
        use Backend::{Bubblewrap, Landlock};
        use Profile::{Full, ReadOnly, WorkspaceWrite};
        let both = [Bubblewrap, Landlock];
        let off = || Network::Off;
        assert_eq!(choose(&both, ReadOnly, off()), Ok(Bubblewrap));
        assert_eq!(choose(&both, WorkspaceWrite, Network::Open), Ok(Bubblewrap));
        assert_eq!(choose(&[Landlock], ReadOnly, off()), Ok(Landlock));
        assert_eq!(choose(&[], Full, Network::Open), Ok(Backend::None));
        let none = choose(&[Landlock], WorkspaceWrite, off()).unwrap_err();
        assert!(none.contains("bubblewrap does not work") && none.contains("landlock"), "{none}");
        assert!(choose(&[Landlock], ReadOnly, Network::Open).is_err());
        assert!(choose(&[], ReadOnly, off()).is_err());
        let some_hosts = Network::Hosts(vec!["example.org".into()]);
        assert_eq!(choose(&both, ReadOnly, some_hosts.clone()), Ok(Bubblewrap));
        assert!(choose(&[Landlock], ReadOnly, some_hosts).is_err());
        assert_eq!(choose(&both, ReadOnly, Network::Hosts(Vec::new())), Ok(Bubblewrap));
    }

    #[test]
    fn a_trial_is_made_once_for_all_clones_and_only_of_what_may_be_used() {
        let made = std::cell::Cell::new(0);
        let trial = |_| {
            made.set(made.get() + 1);
            Ok(())
        };
        let backends = Backends::default();
        for _ in 0..3 {
            assert_eq!(backends.clone().check(Backend::Bubblewrap, trial), Ok(()));
        }
        assert_eq!(made.get(), 1);
        let landlock = backends.only(&[Backend::Landlock]);
        assert!(landlock.check(Backend::Bubblewrap, trial).is_err());
        assert_eq!((landlock.check(Backend::Landlock, trial), made.get()), (Ok(()), 2));
    }
}
