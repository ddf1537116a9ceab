//! Code that the database engines share: conversion between rows and types, requests to the writer,
//! and notification of watchers.
//!
//! This module executes no statements. An engine has rows that implement [`Cells`] and statements
//! that implement [`Bind`]. This module does the rest.

mod cells;
mod codec;
mod deliveries;
mod hub;
mod introduction;
mod lease;
mod looks;
mod reads;
mod recent;
mod staged;
mod work;

pub(crate) use cells::{Bind, BoundText, Cells, number, to_sql};
pub(crate) use codec::{
    bind_call, bind_event, bind_head, bind_moving, bind_nothing, bind_part, bind_run, bundle_row,
    event_row, head_row, is_erased, ledger_row, queued_row, run_row, spending_row, tail_row,
};
pub(crate) use deliveries::{
    Change, Changed, bind_condemned, bind_delivery, bind_saved, delivery_row, listed, listing,
};
pub(crate) use hub::Hub;
pub(crate) use introduction::{Introduction, introduced};
pub(crate) use lease::Lease;
pub(crate) use looks::{MOST, bind_ahead, bind_ids, bind_of_each_root, cut, room_for};
pub(crate) use reads::{
    FOUND, LIST, as_they_stand, bind_leftovers, bind_selection, bind_spending, ending, follow,
    found, is_a_piece, name_days,
};
pub(crate) use staged::{Removal, show};
pub(crate) use work::{Answers, Claims, Reply, Request, Staging, Work};
