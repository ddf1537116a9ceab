//! Webhooks, according to settings files. Only the user's file can have them: a project's file must
//! not make runs send requests.

use super::Setting;
use super::table::{Effective, Layer, Layered, Row};
use crate::limits::parse_duration;
use crate::webhooks::{AddressPolicy, EventKind, HookError, Runs, SigningKey, Webhook};
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

/// A webhook of a settings file, without the secrets that are in the environment.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    webhook: Webhook,
    variables: Vec<String>,
}

/// The longest timeout of an attempt.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(120);
/// The most waits between attempts.
const MOST_WAITS: usize = 50;

impl WebhookSettings {
    /// The name of the webhook.
    pub fn name(&self) -> &str {
        self.webhook.name()
    }

    /// The URL, without its path and query, which may be secret.
    pub fn shown_address(&self) -> String {
        self.webhook.shown_address()
    }

    /// The webhook, with the secrets that `lookup` finds in the variables that it names. A variable
    /// that is not set is noted. Without any secret, nothing is sent.
    ///
    /// # Errors
    /// When the value of a variable is not a valid secret.
    pub fn webhook(
        &self,
        mut lookup: impl FnMut(&str) -> Option<String>,
    ) -> Result<Webhook, HookError> {
        let mut webhook = self.webhook.clone();
        for variable in &self.variables {
            match lookup(variable) {
                None => webhook.add_unset(variable),
                Some(text) => {
                    let key = SigningKey::parse(&text).map_err(|source| HookError::Secret {
                        name: self.name().to_owned(),
                        place: format!("what the environment variable {variable} holds"),
                        source,
                    })?;
                    webhook.add_key(key);
                }
            }
        }
        Ok(webhook)
    }

    fn read(file: FileWebhook) -> Result<Self, String> {
        let reach = if file.allow_private { AddressPolicy::Private } else { AddressPolicy::Public };
        let mut webhook = Webhook::new(&file.name, &file.url, reach).map_err(|e| e.to_string())?;
        let name = file.name;
        let wrong = |what: String| format!("webhook `{name}`: {what}");
        for secret in file.secret.list() {
            webhook = webhook.with_secret(&secret).map_err(|_| {
                let source = crate::webhooks::InvalidSecret;
                wrong(format!("`secret` is no secret: {source}"))
            })?;
        }
        let variables = file.secret_env.list();
        if let Some(at) = variables.iter().position(|variable| !is_variable(variable)) {
            // The entry is not shown: it may be a secret that was put in the wrong place.
            return Err(wrong(format!(
                "entry {} of `secret_env` is no name of an environment variable",
                at + 1
            )));
        }
        if webhook.secrets() == 0 && variables.is_empty() {
            return Err(wrong(
                "it has no secret; give it a `secret`, or a `secret_env` that names the \
                 environment variable it is in"
                    .to_owned(),
            ));
        }
        for event in &file.events {
            let known = EventKind::ALL.into_iter().find(|kind| kind.name() == event);
            match (known, event.as_str()) {
                (Some(kind), _) => webhook.events.push(kind),
                (None, FINISHED) => webhook.events.extend(EventKind::ALL),
                (None, _) => {
                    let known: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
                    let known = known.join(", ");
                    return Err(wrong(format!(
                        "`{event}` is no event; there are {FINISHED} (any of them), {known}"
                    )));
                }
            }
        }
        webhook.runs = file.runs.into();
        (webhook.agents, webhook.labels) = (file.agents, file.labels);
        if let Some(timeout) = file.timeout {
            webhook.timeout = duration(&timeout).map_err(&wrong)?;
            if webhook.timeout > LONGEST_TIMEOUT {
                let most = LONGEST_TIMEOUT.as_secs();
                return Err(wrong(format!("`timeout` is {timeout}: it can be {most}s at most")));
            }
        }
        if let Some(schedule) = file.schedule {
            let waits: Result<_, _> = schedule.iter().map(|wait| duration(wait)).collect();
            webhook.schedule = waits.map_err(&wrong)?;
            if webhook.schedule.len() > MOST_WAITS {
                return Err(wrong(format!("`schedule` has more than {MOST_WAITS} waits")));
            }
        }
        Ok(WebhookSettings { webhook, variables })
    }
}

impl Layered for Vec<Setting<WebhookSettings>> {
    type Written = Vec<FileWebhook>;

    const FORM: &'static str = "[[{}]]";

    fn overlay(&mut self, written: Self::Written, layer: &mut Layer<'_>) -> Result<(), String> {
        for webhook in written {
            let value = WebhookSettings::read(webhook)?;
            let name = value.name();
            if self.iter().any(|known| known.value.name() == name) {
                return Err(format!(
                    "there are two webhooks `{name}`; give one of them another name"
                ));
            }
            self.push(layer.set(value));
        }
        Ok(())
    }

    fn show(&self, row: &Row, shown: &mut Vec<Effective>) {
        shown.extend(self.iter().map(|Setting { value, origin }| {
            origin.effective(format!("{}.{}", row.key, value.name()), json!(value.shown_address()))
        }));
    }

    fn is_set(written: &Self::Written) -> bool {
        !written.is_empty()
    }
}

/// Every end of a run.
const FINISHED: &str = "run.finished";

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map(Duration::from_millis)
}

fn is_variable(name: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty()
        && !name.starts_with("whsec_")
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(fine)
}

/// `[[webhooks]]` as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileWebhook {
    name: String,
    url: String,
    #[serde(default)]
    secret: OneOrMore,
    #[serde(default)]
    secret_env: OneOrMore,
    #[serde(default)]
    events: Vec<String>,
    #[serde(default)]
    runs: RunsWord,
    #[serde(default)]
    agents: Vec<String>,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    allow_private: bool,
    timeout: Option<String>,
    schedule: Option<Vec<String>>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RunsWord {
    #[default]
    Roots,
    All,
}

impl From<RunsWord> for Runs {
    fn from(word: RunsWord) -> Self {
        match word {
            RunsWord::Roots => Runs::Roots,
            RunsWord::All => Runs::All,
        }
    }
}

/// A text or a list of texts. Errors do not show any other value.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl Default for OneOrMore {
    fn default() -> Self {
        OneOrMore::More(Vec::new())
    }
}

impl OneOrMore {
    fn list(self) -> Vec<String> {
        match self {
            OneOrMore::One(one) => vec![one],
            OneOrMore::More(more) => more,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{Config, ConfigError, Sources};
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn load(user: &str, project: &str) -> Result<Config, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            Some(path)
        };
        Config::load(&Sources {
            user: write("config.toml", user),
            project: write("posse.toml", project),
            ..Sources::default()
        })
    }

    fn table(rest: &str) -> String {
        format!("[[webhooks]]\nname = \"ci\"\nurl = \"https://example.com/hook\"\n{rest}")
    }

    #[test]
    fn a_webhook_is_read_whole() {
        let text = table(&format!(
            "secret = \"{SECRET}\"\nsecret_env = [\"NEW\", \"NEXT\"]\nruns = \"all\"\n\
             events = [\"run.failed\", \"run.timed_out\"]\nagents = [\"explore\"]\n\
             labels = [\"audit *\"]\ntimeout = \"3s\"\nschedule = [\"1s\", \"2m\"]"
        ));
        let config = load(&text, "").unwrap();
        let settings = &config.webhooks[0].value;
        assert_eq!(
            (settings.name(), settings.shown_address().as_str()),
            ("ci", "https://example.com/…")
        );
        let hook = settings.webhook(|name| (name == "NEW").then(|| SECRET.to_owned())).unwrap();
        assert_eq!((hook.secrets(), hook.unset()), (2, &["NEXT".to_owned()][..]));
        assert_eq!(hook.events, [EventKind::Failed, EventKind::TimedOut]);
        assert_eq!((hook.runs, hook.timeout), (Runs::All, Duration::from_secs(3)));
        assert_eq!(hook.schedule, [Duration::from_secs(1), Duration::from_secs(120)]);
        assert!(!format!("{config:?}").contains("MfKQ"));
        let error = settings.webhook(|_| Some("hunter2".to_owned())).unwrap_err().to_string();
        assert!(error.contains("NEW") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn a_project_cannot_make_runs_call_out() {
        let error = load("", &table("secret_env = \"X\"")).unwrap_err().to_string();
        assert!(error.contains("a project may not set `webhooks`"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_said_and_no_secret_is_shown() {
        let known = format!("secret = \"{SECRET}\"\n");
        for (rest, says) in [
            (String::new(), "it has no secret"),
            ("secret = \"whsec_MfKQ9\"".to_owned(), "`secret` is no secret"),
            (format!("secret_env = \"{SECRET}\""), "entry 1 of `secret_env` is no name"),
            ("secret_env = \"MfKQ 9\"".to_owned(), "entry 1 of `secret_env` is no name"),
            (format!("{known}events = [\"run.started\"]"), "`run.started` is no event"),
            (format!("{known}timeout = \"1h\""), "`timeout` is 1h"),
            (format!("{known}schedule = [\"soon\"]"), "`soon` is not a duration"),
            (format!("{known}colour = 1"), "unknown key `colour`"),
            (format!("secret = \"{SECRET}"), "config.toml"),
            (format!("secret = {SECRET}"), "config.toml"),
            (format!("secret = [\"{SECRET}\", 5]"), "expected a text or a list of texts"),
            (format!("{known}runs = \"{SECRET}\""), "unknown variant"),
        ] {
            let error = load(&table(&rest), "").unwrap_err().to_string();
            assert!(error.contains(says), "{rest}: {error}");
            assert!(!error.contains("MfKQ"), "{error}");
        }
        let twice = format!("{}\n{}", table(&known), table(&known));
        assert!(load(&twice, "").unwrap_err().to_string().contains("two webhooks `ci`"));
        let inside = table(&known).replace("example.com", "10.0.0.1");
        let error = load(&inside, "").unwrap_err().to_string();
        assert!(error.contains("is in a private network") && error.contains("allow_private"));
        assert!(load(&format!("{inside}allow_private = true"), "").is_ok());
    }
}
