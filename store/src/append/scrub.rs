//! What must not be stored, taken out on its way in.

use super::Append;
use crate::error::StoreError;
use posse_protocol::Event;
use std::cell::RefCell;
use std::sync::Arc;

/// Knows what must not be stored: the values of keys. Told of everything that is appended, just
/// before it is.
pub trait Scrub: Send + Sync {
    /// `text` without it; nothing if it is not in there.
    fn text(&self, text: &str) -> Option<String>;

    /// `event`, which is written as `body`, without it; nothing if it is not in there.
    ///
    /// # Errors
    /// When nothing would be left of the event: then it is not stored.
    fn event(&self, event: &Event, body: &str) -> Result<Option<Event>, String>;
}

/// The events of `append` with their bodies, and what it tells the outside, without what `scrub`
/// takes out.
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

/// Memory for drafts of events that are longer is not kept.
const LONG: usize = 64 << 10;

/// `event` as it is stored.
pub(super) fn written(event: &Event) -> Result<Arc<str>, StoreError> {
    thread_local! {
        /// Where events are written until it is known how long they are.
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
