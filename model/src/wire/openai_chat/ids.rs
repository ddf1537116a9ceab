//! Ids of tool calls: replaces those that a provider does not accept, and adds missing ones.
//!
//! An id depends only on its input, so that a call and its result always agree.

use crate::wire::CallIds;
use crate::wire::hash::hash;
use crate::wire::turns::Origin;
use std::borrow::Cow;

/// The longest id that OpenAI takes. Its own and those of most vendors are shorter.
const MAX_LENGTH: usize = 40;

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The form of `id` for a provider that accepts `ids`. A provider of this wire accepts its own ids
/// of any length.
pub(super) fn wire_id(id: &str, origin: Origin, ids: CallIds) -> Cow<'_, str> {
    let fits = match ids {
        CallIds::NineAlphanumeric => {
            id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
        }
        CallIds::Any => !id.is_empty() && (origin == Origin::Here || id.len() <= MAX_LENGTH),
    };
    match ids {
        _ if fits => Cow::Borrowed(id),
        CallIds::NineAlphanumeric => Cow::Owned(digits(hash([id]), 9)),
        CallIds::Any => Cow::Owned(made_id([id])),
    }
}

/// An id for a call that came without one, from what tells it from other calls.
pub(super) fn made_id<'a>(marks: impl IntoIterator<Item = &'a str>) -> String {
    format!("call_{}", digits(hash(marks), 11))
}

fn digits(mut number: u64, count: usize) -> String {
    let mut text = String::with_capacity(count);
    for _ in 0..count {
        text.push(char::from(DIGITS[(number % 62) as usize]));
        number /= 62;
    }
    text
}
