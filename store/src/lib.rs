//! Durable logs of runs.
//!
//! A [`Store`] keeps an append-only log of events for every run, and one row that projects the log.
//! It assigns positions and hashes inside the transaction. It appends a batch over several runs as
//! a whole or not at all. One worker at a time owns a run: the appends of an owner carry the epoch
//! of its claim, and the store checks the epoch in the same transaction.
//!
//! [`SqliteStore`] is the store for one machine, [`PostgresStore`] the store for many. Any other
//! implementation must pass [`conformance`]. A store has no policy: pure functions in
//! [`transaction`] decide which events may follow in a log, and what a transaction changes.

mod admission;
mod append;
mod budget;
mod bundle;
mod chain;
mod clock;
pub mod conformance;
mod copy;
mod cost_check;
mod delivery;
mod engine;
mod error;
mod filter;
mod leftover;
mod memory;
mod postgres;
mod projection;
mod queue;
mod row;
mod selection;
mod spending;
mod sql;
mod sqlite;
mod stage;
mod status;
mod store;
pub mod transaction;
mod transfer;
mod worker;

pub use append::{Append, Appended, Draft, Guard, Ownership, Reserve, Scrub};
pub use budget::shares;
pub use bundle::{Bundle, BundleAbout, BundleHead};
pub use chain::{StoredEvent, Tail, check as check_log};
pub use clock::{Clock, MachineClock};
pub use copy::{Binding, Brought, RunCopy, seal_of};
pub use cost_check::CostCheck;
pub use delivery::{
    Delivery, DeliveryFilter, DeliveryState, Notice, Outbox, Revival, Settled, Settlement,
};
pub use error::StoreError;
pub use filter::{Background, Filter, Kin, Label, Unfinished};
pub use leftover::{Leftover, Leftovers};
pub use memory::{Memory, MemoryStore};
pub use postgres::{Away, Contact, Notifications, PostgresOptions, PostgresStore, ServerIdentity};
pub use projection::Projection;
pub use queue::{Claimed, Look, Passed, Queue, Queued, Wanted};
pub use row::{
    Columns, NO_PROGRESS, OpenCall, RunAbout, RunFamily, RunFunds, RunLog, RunRow, RunSpending,
    RunState, RunWork, Spent, deaths_in_a_row,
};
pub use spending::{By, LedgerRow, ModelCall, Spending, SpendingQuery, date};
pub use sqlite::{Durability, Mended, Opening, Options, SqliteStore, rebuild, restore};
pub use stage::Piece;
pub use status::DatabaseStatus;
pub use store::{Claims, Flaw, Inspection, Logs, Store};
pub use transfer::{Transfer, transfer};
pub use worker::{Worker, WorkerAbout, is_worker_name};
