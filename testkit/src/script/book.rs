//! A script in use: chooses the reply to a request, and explains when there is none.

use super::{Answers, Entry, Reply, Script};
use crate::ask::{Ask, Role, Said};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many characters of a text, and how many rules, an explanation shows.
const SHOWN_CHARACTERS: usize = 160;
const SHOWN_RULES: usize = 12;

/// The rules of a script, and how often each was used.
#[derive(Debug)]
pub(crate) struct Book {
    pages: Vec<Page>,
}

#[derive(Debug)]
struct Page {
    entry: Entry,
    used: AtomicU64,
}

impl Book {
    /// Refuses a script that could not be played, and says why.
    pub(crate) fn open(script: Script) -> Result<Self, String> {
        for entry in &script.entries {
            if let Some(problem) = entry.problem() {
                return Err(format!("{}: {problem}", entry.label));
            }
        }
        let page = |entry| Page { entry, used: AtomicU64::new(0) };
        Ok(Book { pages: script.entries.into_iter().map(page).collect() })
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
    /// The reply that is due, counting the use.
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
