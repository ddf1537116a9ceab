//! Faults, seen from outside: a client on a plain socket gets these bytes and this end.

mod bytes;
mod edits;
mod names;
mod redirects;
mod refusals;
mod stream;
mod unread;
mod wires;
