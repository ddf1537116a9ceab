//! Removes secrets from events before they are stored.

use super::Append;
use crate::error::StoreError;
use posse_protocol::Event;
use std::cell::RefCell;
use std::sync::Arc;

/// Removes the values of API keys. A store passes everything that it appends to this trait first.
pub trait Scrub: Send + Sync {
    /// Returns `text` without secrets, or `None` if it contains none.
    fn text(&self, text: &str) -> Option<String>;

    /// Returns `event` without secrets, or `None` if it contains none. `body` is its JSON.
    ///
    /// # Errors
    /// When nothing else would be left of the event. The store then refuses it.
    fn event(&self, event: &Event, body: &str) -> Result<Option<Event>, String>;
}

/// Removes secrets from the events of `append`, their bodies and its notices.
pub(super) fn scrubbed(
    append: Append,
    mut bodies: Vec<Arc<str>>,
    scrub: &dyn Scrub,
) -> Result<(Append, Vec<Arc<str>>), StoreError> {
    let mut append = append;
    let mut events: Option<Vec<Event>> = None;
    for (index, body) in bodies.iter_mut().enumerate() {
        let refused = |_| StoreError::Misplaced("an event that consists of a key");
        let Some(clean) = scrub.event(&append.events[index], body).map_err(refused)? else {
            continue;
        };
        *body = written(&clean)?;
        events.get_or_insert_with(|| append.events.to_vec())[index] = clean;
    }
    if let Some(events) = events {
        append.events = events.into();
    }
    for notice in &mut append.outbox {
        if let Some(clean) = scrub.text(&notice.data) {
            notice.data = clean.into();
        }
    }
    Ok((append, bodies))
}

/// The largest buffer that a thread keeps for the next event.
const LONG: usize = 64 << 10;

/// Serializes `event` as it is stored.
pub(super) fn written(event: &Event) -> Result<Arc<str>, StoreError> {
    thread_local! {
        /// A buffer for events, whose length is not known in advance.
        static DRAFT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    let unwritable = StoreError::Misplaced("an event that cannot be written as JSON");
    DRAFT.with_borrow_mut(|draft| {
        draft.clear();
        let written = serde_json::to_writer(&mut *draft, event).ok();
        let body = written.and_then(|()| std::str::from_utf8(draft).ok()).map(Arc::from);
        if draft.capacity() > LONG {
            *draft = Vec::new();
        }
        body.ok_or(unwritable)
    })
}
