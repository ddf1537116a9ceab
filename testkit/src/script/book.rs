//! A script in use: chooses the reply to a request, and explains when there is none.

use super::{Answers, Block, CacheSetting, Entry, KeyCheck, Reading, Reply, Script};
use crate::ask::{Ask, Role, Said};
use crate::cache::PromptCache;
use crate::issued::Issued;
use crate::script::fault::{Ending, Fault};
use crate::turnstile::Turnstile;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many characters of a text, and how many rules, an explanation shows.
const SHOWN_CHARACTERS: usize = 160;
const SHOWN_RULES: usize = 12;

/// The name of the model if the script names none.
const MODEL: &str = "fake-1";
/// Members of raw blocks that are signatures.
const SIGNATURES: [&str; 4] =
    ["signature", "encrypted_content", "thoughtSignature", "thought_signature"];

/// The rules of a script, how often each was used, and what the server remembers.
#[derive(Debug)]
pub(crate) struct Book {
    pages: Vec<Page>,
    models: Vec<String>,
    keys: KeyCheck,
    reading: Reading,
    cache: Option<Arc<PromptCache>>,
    turnstile: Arc<Turnstile>,
    /// None if no reply has reasoning.
    issued: Option<Issued>,
    signatures: HashSet<String>,
    /// Some connection may have to end before its request is read.
    unread: bool,
    faults: bool,
}

#[derive(Debug)]
struct Page {
    entry: Entry,
    used: AtomicU64,
}

impl Book {
    /// Refuses a script that could not be played, and says why.
    pub(crate) fn open(mut script: Script) -> Result<Self, String> {
        let (mut faults, mut unread) = (false, false);
        for entry in &mut script.entries {
            if let Some(problem) = entry.problem(script.reading) {
                return Err(format!("{}: {problem}", entry.label));
            }
            for reply in entry.replies_mut() {
                if let Some(fault) = reply.faulty() {
                    fault.spoil_words(&mut reply.body);
                    faults = true;
                    unread |= fault.is_unread();
                }
            }
        }
        let page = |entry| Page { entry, used: AtomicU64::new(0) };
        let reasons = blocks(&script).any(may_reason);
        Ok(Book {
            models: models(&script),
            keys: script.keys,
            reading: script.reading,
            cache: match script.cache {
                CacheSetting::From(minimum) => Some(Arc::new(PromptCache::new(minimum))),
                CacheSetting::Off => None,
            },
            turnstile: Arc::new(Turnstile::new(script.capacity)),
            issued: reasons.then(Issued::new),
            signatures: signatures(&script),
            pages: script.entries.into_iter().map(page).collect(),
            unread,
            faults,
        })
    }

    /// The models that the server lists.
    pub(crate) fn models(&self) -> &[String] {
        &self.models
    }

    pub(crate) fn keys(&self) -> KeyCheck {
        self.keys
    }

    /// How much of a request is to be read.
    pub(crate) fn reading(&self) -> Reading {
        self.reading
    }

    pub(crate) fn cache(&self) -> Option<&Arc<PromptCache>> {
        self.cache.as_ref()
    }

    /// Limits the requests.
    pub(crate) fn turnstile(&self) -> &Arc<Turnstile> {
        &self.turnstile
    }

    pub(crate) fn issued(&self) -> Option<&Issued> {
        self.issued.as_ref()
    }

    /// Whether the script itself has this signature.
    pub(crate) fn has_signature(&self, signature: &str) -> bool {
        self.signatures.contains(signature)
    }

    /// Whether some reply has a fault.
    pub(crate) fn has_faults(&self) -> bool {
        self.faults
    }

    /// Whether some connection may have to end before its request is read.
    pub(crate) fn may_leave_unread(&self) -> bool {
        self.unread
    }

    /// How the connection ends before its request is read, if the first entry that is not spent
    /// is a rule that says so.
    pub(crate) fn leaves_unread(&self) -> Option<Ending> {
        self.pages.iter().find(|page| !page.is_spent())?.take_unread()
    }

    /// The reply of the first rule that fits and is not spent, or why there is none.
    pub(crate) fn choose(&self, ask: &Ask<'_>) -> Result<&Reply, String> {
        let fitting = self.pages.iter().filter(|page| page.entry.when.unmet(ask).is_none());
        fitting.filter_map(|page| page.take(ask.turn)).next().ok_or_else(|| self.explain(ask))
    }

    fn explain(&self, ask: &Ask<'_>) -> String {
        let mut out = format!(
            "the script has no reply to this request. It is turn {} (the number of assistant \
             messages so far), model {:?}; the last message is {}.",
            ask.turn,
            ask.model,
            ask.messages.last().map_or_else(|| "missing".to_owned(), describe),
        );
        if self.pages.is_empty() {
            out.push_str(" The script has no rules at all.");
        }
        for page in self.pages.iter().take(SHOWN_RULES) {
            out.push_str(&format!(" {}: {}.", page.entry.label, page.why_not(ask)));
        }
        if self.pages.len() > SHOWN_RULES {
            out.push_str(&format!(" And {} more.", self.pages.len() - SHOWN_RULES));
        }
        out.push_str(" Add a rule that fits, or loosen one of these.");
        out
    }
}

impl Page {
    fn is_spent(&self) -> bool {
        match &self.entry.answers {
            Answers::ByTurn(_) => false,
            Answers::InOrder { times, .. } => {
                times.is_some_and(|times| self.used.load(Ordering::SeqCst) >= times)
            }
        }
    }

    /// What the next reply does before the request is read. Counts as a use of the rule.
    fn take_unread(&self) -> Option<Ending> {
        let Answers::InOrder { replies, times } = &self.entry.answers else { return None };
        let ending = |used: u64| {
            let due = replies.get(usize::try_from(used).unwrap_or(usize::MAX)).or(replies.last());
            due.and_then(Reply::faulty).and_then(Fault::unread)
        };
        let next = |used: u64| {
            let within = times.is_none_or(|times| used < times);
            (within && ending(used).is_some()).then_some(used + 1)
        };
        let used = self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).ok()?;
        ending(used)
    }

    /// The next reply. Counts as a use of the rule.
    fn take(&self, turn: usize) -> Option<&Reply> {
        match &self.entry.answers {
            Answers::ByTurn(replies) => replies.get(turn),
            Answers::InOrder { replies, times } => {
                let within = |used: u64| times.is_none_or(|times| used < times).then_some(used + 1);
                let used =
                    self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, within).ok()?;
                replies.get(usize::try_from(used).unwrap_or(usize::MAX)).or(replies.last())
            }
        }
    }

    fn why_not(&self, ask: &Ask<'_>) -> String {
        if let Some(condition) = self.entry.when.unmet(ask) {
            return format!("{condition} does not hold");
        }
        match &self.entry.answers {
            Answers::ByTurn(replies) => {
                format!("fits, but has replies only for turns 0 to {}", replies.len() - 1)
            }
            Answers::InOrder { times, .. } => {
                format!("fits, but is spent after {} uses", times.unwrap_or_default())
            }
        }
    }
}

/// The models that the script lists and those its rules ask for, each once.
fn models(script: &Script) -> Vec<String> {
    let asked_for = script.entries.iter().filter_map(|entry| entry.when.named_model());
    let mut models: Vec<String> = Vec::new();
    for name in script.models.iter().map(String::as_str).chain(asked_for) {
        if !models.iter().any(|known| known == name) {
            models.push(name.to_owned());
        }
    }
    if models.is_empty() {
        models.push(MODEL.to_owned());
    }
    models
}

fn blocks(script: &Script) -> impl Iterator<Item = &Block> {
    script.entries.iter().flat_map(Entry::replies).flat_map(Reply::blocks)
}

fn may_reason(block: &Block) -> bool {
    matches!(block, Block::Thinking { .. } | Block::Raw(_))
}

fn signatures(script: &Script) -> HashSet<String> {
    let mut found = HashSet::new();
    for block in blocks(script) {
        match block {
            Block::Thinking { signature: Some(signature), .. } => {
                found.insert(signature.clone());
            }
            Block::Raw(Value::Object(members)) => {
                let signed = SIGNATURES.iter().filter_map(|key| members.get(*key)?.as_str());
                found.extend(signed.map(str::to_owned));
            }
            _ => {}
        }
    }
    found
}

fn describe(said: &Said<'_>) -> String {
    let role = match said.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    match (said.texts.is_empty(), said.results.last()) {
        (true, Some(result)) => {
            format!("a tool result: {:?}", shortened(&crate::ask::joined(result)))
        }
        _ => format!("of role {role}: {:?}", shortened(&said.text())),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
