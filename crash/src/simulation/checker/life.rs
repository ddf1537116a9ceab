//! One log, read as JSON.

use super::{Breach, Law, breach};
use crate::log::{ancestors, is_only_recorded, kind, message_text};
use posse_store::StoredEvent;
use serde_json::Value;
use std::collections::BTreeMap;

/// A run as its log has it.
#[derive(Debug, Default)]
pub(super) struct Life {
    /// Its number in the plan.
    pub(super) number: usize,
    pub(super) key: String,
    pub(super) parent: Option<String>,
    /// The call of the parent that waits for its end.
    pub(super) call: Option<String>,
    pub(super) ancestors: Vec<String>,
    pub(super) calls: BTreeMap<String, Call>,
    pub(super) children: Vec<Child>,
    /// The announcements that it received.
    pub(super) told: Vec<Told>,
    /// The messages of hosts.
    pub(super) heard: Vec<String>,
    /// When it ended.
    pub(super) ends: Vec<u64>,
    pub(super) outcome: String,
    pub(super) is_open: bool,
    /// The kind of its last event.
    pub(super) last: String,
    /// The marks of all its events.
    pub(super) marks: Vec<String>,
    /// Who wrote the events that only an owner may write.
    pub(super) owners: Vec<Owner>,
}

#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) started: u32,
    pub(super) repeatable: bool,
    /// It has an effect outside of the store.
    pub(super) acts: bool,
    pub(super) answers: u32,
    /// It returned without an error.
    pub(super) is_certain: bool,
}

#[derive(Debug)]
pub(super) struct Child {
    pub(super) run: String,
    pub(super) call: Option<String>,
    /// The parent may not complete before it has heard of its end.
    pub(super) is_expected: bool,
}

#[derive(Debug)]
pub(super) struct Told {
    pub(super) child: String,
    pub(super) at: u64,
    pub(super) inherited: bool,
    pub(super) kept: bool,
}

#[derive(Debug)]
pub(super) struct Owner {
    pub(super) worker: u32,
    pub(super) epoch: u64,
    pub(super) seq: u64,
}

impl Life {
    pub(super) fn of(log: &[StoredEvent], found: &mut Vec<Breach>) -> Self {
        let mut life = Life { is_open: true, ..Life::default() };
        for (index, stored) in log.iter().enumerate() {
            let seq = index as u64 + 1;
            let event: Value = serde_json::from_str(&stored.body).unwrap_or_default();
            let starts = kind(&event) == "run_started";
            let may_follow = match kind(&event) {
                "message_received" => event["from"]["child"].is_null() || is_only_recorded(&event),
                _ => false,
            };
            if stored.seq.0 != seq || starts != (seq == 1) || !life.is_open && !may_follow {
                let detail = format!("event {seq} of run {} is {}", stored.run, kind(&event));
                found.push(breach(Law::Ordered, detail));
            }
            life.read(&event, seq, stored.at);
        }
        life
    }

    /// True if the run had ended at this time or before.
    pub(super) fn had_ended_by(&self, at: u64) -> bool {
        self.ends.iter().any(|end| *end <= at)
    }

    fn read(&mut self, event: &Value, seq: u64, at: u64) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.last = kind(event).to_owned();
        match kind(event) {
            "run_started" => {
                self.number = event["label"].as_str().and_then(|it| it.parse().ok()).unwrap_or(0);
                self.key = text(&event["key"]);
                self.parent = event["parent"]["run"].as_str().map(str::to_owned);
                self.call = event["parent"]["call"].as_str().map(str::to_owned);
                self.ancestors = ancestors(event).into_iter().map(str::to_owned).collect();
            }
            "message_received" => {
                let told = &event["from"]["child"];
                if let Some(child) = told["run"].as_str() {
                    self.marks.push(message_text(event).to_owned());
                    self.told.push(Told {
                        child: child.to_owned(),
                        at,
                        inherited: told["inherited"] == true,
                        kept: told["kept"] == true,
                    });
                } else {
                    self.heard.push(message_text(event).to_owned());
                }
                self.is_open |= !is_only_recorded(event);
            }
            "tool_started" => {
                let call = self.calls.entry(text(&event["call"])).or_default();
                call.started += 1;
                call.repeatable = event["repeatable"] == true;
                call.acts = event["tool"] == "Bash";
                self.owner(text(&event["by"]), seq);
            }
            "tool_finished" => {
                let call = self.calls.entry(text(&event["call"])).or_default();
                let is_error = event["output"]["is_error"] == true;
                let returned = event["ending"].as_str().unwrap_or("returned") == "returned";
                call.answers += 1;
                call.is_certain = returned && !is_error;
                let name = text(&event["call"]);
                let by_child = self.children.iter().any(|it| it.call.as_ref() == Some(&name));
                match by_child && returned {
                    // The worker of the child wrote it.
                    true => self.marks.push(text(&event["by"])),
                    false => self.owner(text(&event["by"]), seq),
                }
            }
            "child_started" => {
                let announce = event["announce"].as_str();
                self.marks.push(text(&event["label"]));
                self.children.push(Child {
                    run: text(&event["run"]),
                    call: event["call"].as_str().map(str::to_owned),
                    is_expected: announce.is_some_and(|announce| announce != "silent"),
                });
            }
            "cancel_requested" => self.marks.push(text(&event["by"])),
            "run_finished" => {
                self.ends.push(at);
                self.is_open = false;
                let outcome = &event["outcome"];
                self.outcome = text(&outcome["kind"]);
                let said = outcome["output"].as_str().or(outcome["partial"].as_str());
                self.owner(said.unwrap_or_default().to_owned(), seq);
            }
            _ => {}
        }
    }

    /// Notes who wrote an event: its mark says so.
    fn owner(&mut self, mark: String, seq: u64) {
        let mut parts = mark.trim_start_matches("mark:").split('/');
        let mut number = || parts.next().and_then(|part| part.parse().ok());
        if let (Some(worker), Some(epoch)) = (number(), number()) {
            self.owners.push(Owner { worker: worker as u32, epoch, seq });
        }
        self.marks.push(mark);
    }
}
