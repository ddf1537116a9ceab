//! A webhook: a URL, its secrets, and the events that it gets.

use super::backoff::SCHEDULE;
use super::secret::{InvalidSecret, SigningKey};
use crate::tool_facts::filter::matches;
use posse_protocol::Outcome;
use posse_tools::egress::{self, AddressPolicy, EgressError};
use std::time::Duration;
use url::Url;

/// A URL to notify when runs end.
///
/// The URL may be as confidential as the secret: Posse shows only its host.
#[derive(Clone)]
pub struct Webhook {
    name: String,
    pub(super) url: Url,
    pub(super) keys: Vec<SigningKey>,
    unset: Vec<String>,
    /// The events that it gets; empty means all.
    pub events: Vec<EventKind>,
    /// The runs that it gets events of.
    pub runs: Runs,
    /// Only events of these agents; empty means all. `*` in a name is any text.
    pub agents: Vec<String>,
    /// Only events of runs with one of these labels; empty means all. `*` in a label is any text.
    pub labels: Vec<String>,
    /// Which addresses its URL may resolve to.
    pub reach: AddressPolicy,
    /// How long an attempt may take.
    pub timeout: Duration,
    /// The waits between attempts; there is one more attempt than waits.
    pub schedule: Vec<Duration>,
}

/// How long an attempt may take by default.
pub const TIMEOUT: Duration = Duration::from_secs(15);

/// The longest name, in characters.
const LONGEST_NAME: usize = 64;

/// The runs that a webhook gets events of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runs {
    /// Only roots.
    #[default]
    Roots,
    /// All runs.
    All,
}

/// The events: how a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The agent gave its answer.
    Completed,
    /// It could not continue.
    Failed,
    /// A person or program cancelled it.
    Cancelled,
    /// It reached its time limit.
    TimedOut,
    /// It reached another limit.
    Stopped,
    /// A budget was used up.
    OutOfBudget,
}

impl EventKind {
    /// All of them.
    pub const ALL: [EventKind; 6] = [
        EventKind::Completed,
        EventKind::Failed,
        EventKind::Cancelled,
        EventKind::TimedOut,
        EventKind::Stopped,
        EventKind::OutOfBudget,
    ];

    /// Returns its name in settings and in requests.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Completed => "run.completed",
            EventKind::Failed => "run.failed",
            EventKind::Cancelled => "run.cancelled",
            EventKind::TimedOut => "run.timed_out",
            EventKind::Stopped => "run.stopped",
            EventKind::OutOfBudget => "run.out_of_budget",
        }
    }

    /// Returns the event for this outcome.
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Completed { .. } => EventKind::Completed,
            Outcome::Failed { .. } => EventKind::Failed,
            Outcome::Cancelled { .. } => EventKind::Cancelled,
            Outcome::TimedOut { .. } => EventKind::TimedOut,
            Outcome::Stopped { .. } => EventKind::Stopped,
            Outcome::OutOfBudget { .. } => EventKind::OutOfBudget,
        }
    }
}

/// Why a webhook is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// Its name is invalid.
    #[error("a webhook's name is 1 to 64 letters, digits, `-`, `_` or `.`")]
    Name,
    /// Its URL is invalid, or not allowed.
    #[error("webhook `{name}`: {reason}; {hint}")]
    Address {
        /// The webhook.
        name: String,
        /// What is wrong with it.
        reason: String,
        /// What to do.
        hint: &'static str,
    },
    /// Its secret is invalid.
    #[error("webhook `{name}`: {place} is no secret: {source}")]
    Secret {
        /// The webhook.
        name: String,
        /// Where the secret is set.
        place: String,
        /// What is wrong with it.
        source: InvalidSecret,
    },
}

/// What to do about an invalid URL.
const WRITE_IT: &str = "write it like https://example.com/posse";
const ALLOW_IT: &str = "give it an https address of the public internet, or set `allow_private` if \
                        it is meant to be this machine or a private network";
const NOT_AT_ALL: &str = "give it another address";

impl Webhook {
    /// Returns the webhook `name` at `url`, which may resolve to the addresses that `reach` allows.
    /// It gets the ends of all roots. Posse sends nothing until it has a secret.
    ///
    /// # Errors
    /// When the name or the URL is invalid.
    pub fn new(name: &str, url: &str, reach: AddressPolicy) -> Result<Self, HookError> {
        let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(fine) {
            return Err(HookError::Name);
        }
        let wrong = |reason: String, hint: &'static str| HookError::Address {
            name: name.to_owned(),
            reason,
            hint,
        };
        let url = Url::parse(url)
            .map_err(|error| wrong(format!("its `url` is no address: {error}"), WRITE_IT))?;
        egress::judge(&url, reach).map_err(|error| {
            let hint = match (&error, reach) {
                (EgressError::Unusable(_), AddressPolicy::Public) if url.scheme() == "http" => {
                    ALLOW_IT
                }
                (EgressError::Unusable(_), _) => WRITE_IT,
                (_, AddressPolicy::Public) => ALLOW_IT,
                (_, AddressPolicy::Private) => NOT_AT_ALL,
            };
            wrong(error.to_string(), hint)
        })?;
        Ok(Webhook {
            name: name.to_owned(),
            url,
            keys: Vec::new(),
            unset: Vec::new(),
            events: Vec::new(),
            runs: Runs::Roots,
            agents: Vec::new(),
            labels: Vec::new(),
            reach,
            timeout: TIMEOUT,
            schedule: SCHEDULE.to_vec(),
        })
    }

    /// Adds a secret. Each request has a signature of every secret.
    ///
    /// # Errors
    /// When the text is not a valid secret.
    pub fn with_secret(mut self, secret: &str) -> Result<Self, HookError> {
        let key = SigningKey::parse(secret).map_err(|source| HookError::Secret {
            name: self.name.clone(),
            place: "what was given".to_owned(),
            source,
        })?;
        self.keys.push(key);
        Ok(self)
    }

    pub(crate) fn add_key(&mut self, key: SigningKey) {
        self.keys.push(key);
    }

    pub(crate) fn add_unset(&mut self, variable: &str) {
        self.unset.push(variable.to_owned());
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the part of its URL that may be shown: the path and the query may be confidential.
    pub fn shown_address(&self) -> String {
        let origin = self.url.origin().ascii_serialization();
        let is_bare = matches!(self.url.path(), "" | "/") && self.url.query().is_none();
        if is_bare { origin } else { format!("{origin}/…") }
    }

    /// Returns how many secrets sign each request. Without any, deliveries wait for a process that
    /// has one.
    pub fn secrets(&self) -> usize {
        self.keys.len()
    }

    /// Returns the keys that sign.
    pub(crate) fn signing_keys(&self) -> &[SigningKey] {
        &self.keys
    }

    /// Returns the environment variables that should hold a secret and do not.
    pub fn unset(&self) -> &[String] {
        &self.unset
    }

    /// True when it gets this event.
    pub(super) fn wants(&self, kind: EventKind, end: &End<'_>) -> bool {
        let among = |patterns: &[String], name: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, name))
        };
        (self.events.is_empty() || self.events.contains(&kind))
            && (self.runs == Runs::All || end.is_root)
            && among(&self.agents, end.agent)
            && among(&self.labels, end.label)
    }
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook")
            .field("name", &self.name)
            .field("address", &self.shown_address())
            .field("secrets", &self.keys.len())
            .finish_non_exhaustive()
    }
}

/// The facts that decide whether a webhook gets an event.
pub(super) struct End<'a> {
    pub(super) is_root: bool,
    pub(super) agent: &'a str,
    pub(super) label: &'a str,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn hook() -> Webhook {
        Webhook::new("ci", "https://example.com/x?token=y", AddressPolicy::Public).unwrap()
    }

    #[test]
    fn a_webhook_shows_neither_its_secret_nor_its_path() {
        let hook = hook().with_secret(SECRET).unwrap();
        let shown = format!("{hook:?} {}", hook.shown_address());
        assert!(shown.contains("https://example.com/…") && shown.contains("secrets: 1"), "{shown}");
        assert!(!shown.contains("token") && !shown.contains("MfKQ"), "{shown}");
        let error = self::hook().with_secret("whsec_short").unwrap_err().to_string();
        assert!(error.contains("webhook `ci`") && !error.contains("whsec_short"), "{error}");
    }

    #[test]
    fn an_address_that_leads_inside_is_refused_with_a_way_out() {
        for url in ["http://example.com/", "https://127.0.0.1/", "https://[::ffff:10.0.0.1]/"] {
            let error = Webhook::new("ci", url, AddressPolicy::Public).unwrap_err().to_string();
            assert!(error.starts_with("webhook `ci`: ") && error.contains("https"), "{error}");
        }
        let here = "http://127.0.0.1:8080/";
        let error = Webhook::new("ci", here, AddressPolicy::Public).unwrap_err().to_string();
        assert!(error.contains("`allow_private`"), "{error}");
        assert!(Webhook::new("ci", here, AddressPolicy::Private).is_ok());
        assert!(Webhook::new("ci", "https://169.254.169.254/", AddressPolicy::Private).is_err());
        for name in ["", "a b", "ä", &"x".repeat(65)] {
            let error =
                Webhook::new(name, "https://example.com", AddressPolicy::Public).unwrap_err();
            assert_eq!(error, HookError::Name);
        }
    }

    #[test]
    fn a_webhook_hears_of_what_it_asked_for() {
        let root = End { is_root: true, agent: "explore", label: "audit 3" };
        let child = End { is_root: false, ..root };
        let any = hook();
        assert!(any.wants(EventKind::Completed, &root) && !any.wants(EventKind::Failed, &child));
        let all = Webhook { runs: Runs::All, ..hook() };
        assert!(all.wants(EventKind::Completed, &child));
        let failures = Webhook { events: vec![EventKind::Failed], ..hook() };
        assert!(failures.wants(EventKind::Failed, &root));
        assert!(!failures.wants(EventKind::Completed, &root));
        let of = |agents: &[&str], labels: &[&str]| {
            let list = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect();
            Webhook { agents: list(agents), labels: list(labels), ..hook() }
                .wants(EventKind::Completed, &root)
        };
        assert!(of(&["plan", "explore"], &[]) && of(&[], &["audit *"]));
        assert!(!of(&["plan"], &[]) && !of(&["explore"], &["audit"]));
    }
}
