//! The audit: what was decided and done, from the logs of runs and the log of trust. Its exports are hash chains, which
//! show whether a line was changed, removed or moved.

use crate::chain;
use crate::error::Error;
use crate::runtime::Runtime;
use crate::trust::{Act, Decision};
use posse_protocol::{
    AgentName, Approval, CallId, Ending, Event, Grant, Record, RunId, RunStarted, Seq, ToolFinished,
};
use posse_store::{Filter, RunRow, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;

/// How many events are read at once.
const PAGE: usize = 1_000;
/// The name of the chain of an export.
const CHAIN: &str = "posse audit";
/// How many characters of a call's input an entry contains.
const LONGEST_INPUT: usize = 1_000;
/// The version of the export format.
const FORM: u32 = 1;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    /// A run started, with this grant.
    Granted,
    /// A call was allowed, and started.
    Allowed,
    /// A person was asked about a call.
    Asked,
    /// A person answered.
    Answered,
    /// A call was refused.
    Denied,
    /// A call that had started has its result.
    Finished,
    /// The log of a run was removed.
    Removed,
    /// The log of a run was changed, has gaps, or comes from a newer version. Its events from there on are not listed.
    Unreadable,
    /// A folder was trusted.
    Trusted,
    /// A folder is no longer trusted.
    Distrusted,
}

impl AuditKind {
    /// All kinds.
    pub const ALL: [AuditKind; 10] = [
        AuditKind::Granted,
        AuditKind::Allowed,
        AuditKind::Asked,
        AuditKind::Answered,
        AuditKind::Denied,
        AuditKind::Finished,
        AuditKind::Removed,
        AuditKind::Unreadable,
        AuditKind::Trusted,
        AuditKind::Distrusted,
    ];

    /// The name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            AuditKind::Granted => "granted",
            AuditKind::Allowed => "allowed",
            AuditKind::Asked => "asked",
            AuditKind::Answered => "answered",
            AuditKind::Denied => "denied",
            AuditKind::Finished => "finished",
            AuditKind::Removed => "removed",
            AuditKind::Unreadable => "unreadable",
            AuditKind::Trusted => "trusted",
            AuditKind::Distrusted => "distrusted",
        }
    }
}

/// One decision or action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When it happened, in milliseconds since 1970.
    pub at: u64,
    /// The kind of the entry.
    pub kind: AuditKind,
    /// The run; `None` for a decision about trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The position in the log.
    pub record: u64,
    /// The hash that links the record to all records before it; empty if the record is unreadable.
    pub hash: String,
    /// The agent of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// The tool that was called.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// What made the decision: a rule, the mode, the grant, a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Details, which depend on the kind.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub detail: Value,
}

impl AuditEntry {
    /// A decision about trust.
    pub fn of_trust(decision: &Decision) -> Self {
        AuditEntry {
            at: decision.at,
            kind: match decision.act {
                Act::Trusted => AuditKind::Trusted,
                Act::Removed => AuditKind::Distrusted,
            },
            run: None,
            record: decision.seq,
            hash: decision.hash.clone(),
            agent: None,
            tool: String::new(),
            call: None,
            by: "user".to_owned(),
            detail: json!({
                "folder": decision.folder, "digest": decision.digest, "brought": decision.brought,
            }),
        }
    }
}

impl AuditEntry {
    /// The entry of a run whose log was removed: it says where the log ended.
    fn of_removal(row: &RunRow) -> Self {
        AuditEntry {
            at: row.updated_at,
            kind: AuditKind::Removed,
            run: Some(row.id),
            record: row.log.last_seq.0,
            hash: row.log.last_hash.clone(),
            agent: row.about.agent.parse().ok(),
            tool: String::new(),
            call: None,
            by: String::new(),
            detail: json!({
                "events": row.log.last_seq, "tool_calls": row.spending.tool_calls, "outcome": row.state.outcome,
                "parent": row.family.parent,
            }),
        }
    }

    /// The entry of a run whose log is unreadable from event `seq` on.
    fn of_unreadable(row: &RunRow, seq: Seq, reason: &StoreError) -> Self {
        let detail = json!({"reason": reason.to_string(), "events": row.log.last_seq});
        let (kind, hash) = (AuditKind::Unreadable, String::new());
        AuditEntry { kind, record: seq.0, hash, detail, ..AuditEntry::of_removal(row) }
    }
}

impl Runtime {
    /// The audit entries of a run, in order, each with the hash of its record. A run whose log was removed has one
    /// entry that says so. If a log cannot be read to its end, the last entry says so.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn audit(&self, row: &RunRow) -> Result<Vec<AuditEntry>, Error> {
        let mut reading = Reading::default();
        if row.log.erased {
            return Ok(vec![AuditEntry::of_removal(row)]);
        }
        let (mut seen, mut limit) = (Seq::ZERO, PAGE);
        loop {
            let records = match self.read(row.id, seen, limit).await {
                Err(Error::Store(StoreError::Erased(_))) => {
                    return Ok(vec![AuditEntry::of_removal(row)]);
                }
                // Reading one by one shows which event is damaged.
                Err(Error::Store(StoreError::Damaged { .. } | StoreError::Newer(_)))
                    if limit > 1 =>
                {
                    limit = 1;
                    continue;
                }
                Err(Error::Store(why @ (StoreError::Damaged { .. } | StoreError::Newer(_)))) => {
                    reading.entries.push(AuditEntry::of_unreadable(row, seen.next(), &why));
                    break;
                }
                read => read?,
            };
            let Some(last) = records.last() else { break };
            let hashes = self.inner.store.hashes(row.id, seen, records.len()).await?;
            seen = last.seq;
            for (record, hash) in records.iter().zip(hashes) {
                reading.take(record, hash);
            }
        }
        Ok(reading.entries)
    }

    /// The rows of all runs, the oldest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn audited_runs(&self) -> Result<Vec<RunRow>, Error> {
        let mut rows: Vec<RunRow> = Vec::new();
        loop {
            let before = rows.last().map(|row| row.id);
            let page = self.list(&Filter { before, limit: PAGE, ..Filter::default() }).await?;
            if page.is_empty() {
                rows.reverse();
                return Ok(rows);
            }
            rows.extend(page);
        }
    }
}

/// The state while a log is read.
#[derive(Default)]
struct Reading {
    agent: Option<AgentName>,
    /// The tool of each call.
    tools: HashMap<CallId, String>,
    /// The inputs of calls that have not started.
    inputs: HashMap<CallId, Value>,
    entries: Vec<AuditEntry>,
}

impl Reading {
    fn take(&mut self, record: &Record, hash: String) {
        let (kind, call, by, detail) = match &record.event {
            Event::RunStarted(started) => {
                self.agent = Some(started.agent.name.clone());
                (AuditKind::Granted, None, granted_by(started), granted(&started.grant))
            }
            Event::ModelReplied(reply) => {
                for call in reply.message.tool_calls() {
                    self.tools.insert(call.id.clone(), call.name.clone());
                    self.inputs.insert(call.id.clone(), beginning(&call.input));
                }
                return;
            }
            Event::ToolStarted(started) => {
                self.tools.insert(started.call.clone(), started.tool.clone());
                let detail = json!({"input": self.inputs.remove(&started.call)});
                (AuditKind::Allowed, Some(&started.call), started.by.clone(), detail)
            }
            Event::ApprovalAsked(asked) => {
                self.tools.insert(asked.call.clone(), asked.tool.clone());
                let detail = json!({"shown": asked.shown, "digest": asked.digest});
                (AuditKind::Asked, Some(&asked.call), asked.by.clone(), detail)
            }
            Event::ApprovalGiven(given) => {
                let detail = json!({"answer": answer(&given.answer), "digest": given.digest});
                (AuditKind::Answered, Some(&given.call), given.by.clone(), detail)
            }
            Event::ToolFinished(finished) => {
                let mut detail = result(finished);
                // For a call that started, the entry of its start has the input.
                if let Some(input) = self.inputs.remove(&finished.call) {
                    detail["input"] = input;
                }
                (ended(finished), Some(&finished.call), finished.by.clone(), detail)
            }
            _ => return,
        };
        self.entries.push(AuditEntry {
            at: record.at,
            kind,
            run: Some(record.run),
            record: record.seq.0,
            hash,
            agent: self.agent.clone(),
            tool: call.and_then(|call| self.tools.get(call)).cloned().unwrap_or_default(),
            call: call.cloned(),
            by,
            detail,
        });
    }
}

/// The input of a call, cut if it is long.
fn beginning(input: &Value) -> Value {
    let text = input.to_string();
    match text.char_indices().nth(LONGEST_INPUT) {
        None => input.clone(),
        Some((end, _)) => json!(format!("{}…", &text[..end])),
    }
}

fn granted_by(started: &RunStarted) -> String {
    match (&started.parent, &started.project) {
        (Some(parent), _) => format!("run {}", parent.run),
        (None, Some(folder)) => format!("user, trusting {folder}"),
        (None, None) => "user".to_owned(),
    }
}

fn granted(grant: &Grant) -> Value {
    json!({
        "tools": grant.tools, "workspace": grant.workspace, "profile": grant.profile(),
        "reach": grant.reach, "mode": grant.mode, "network": grant.network,
        "scopes": grant.scopes, "permissions": grant.permissions, "attended": grant.attended,
    })
}

fn answer(answer: &Approval) -> Value {
    serde_json::to_value(answer).unwrap_or_default()
}

fn ended(finished: &ToolFinished) -> AuditKind {
    match finished.ending {
        Ending::Refused | Ending::OverLimit => AuditKind::Denied,
        Ending::Returned | Ending::Stopped | Ending::Interrupted => AuditKind::Finished,
    }
}

fn result(finished: &ToolFinished) -> Value {
    let mut detail = json!({
        "ending": finished.ending, "is_error": finished.output.is_error, "took_ms": finished.took_ms,
    });
    if let Some(backend) = &finished.output.confined_by {
        detail["confined_by"] = json!(backend);
    }
    detail
}

/// One line of an export.
#[derive(Serialize, Deserialize)]
struct Line {
    seq: u64,
    #[serde(flatten)]
    content: Content,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Content {
    Begin { form: u32 },
    Entry(Box<AuditEntry>),
    End { entries: u64 },
}

/// Writes an export, line by line.
pub struct AuditExport {
    seq: u64,
    hash: String,
}

impl AuditExport {
    /// Starts an export, and returns its first line.
    ///
    /// # Errors
    /// When the line cannot be written as JSON, which does not happen in practice.
    pub fn begin() -> Result<(Self, String), serde_json::Error> {
        let mut export = AuditExport { seq: 0, hash: chain::seed(CHAIN) };
        let line = export.line(Content::Begin { form: FORM })?;
        Ok((export, line))
    }

    /// The line of an entry.
    ///
    /// # Errors
    /// As [`AuditExport::begin`].
    pub fn entry(&mut self, entry: AuditEntry) -> Result<String, serde_json::Error> {
        self.line(Content::Entry(Box::new(entry)))
    }

    /// The last line. An export without it, or with lines after it, is damaged.
    ///
    /// # Errors
    /// As [`AuditExport::begin`].
    pub fn end(mut self) -> Result<String, serde_json::Error> {
        let entries = self.seq - 1;
        self.line(Content::End { entries })
    }

    fn line(&mut self, content: Content) -> Result<String, serde_json::Error> {
        self.seq += 1;
        let body = serde_json::to_string(&Line { seq: self.seq, content })?;
        let (line, hash) = chain::seal(&self.hash, &body);
        self.hash = hash;
        Ok(line)
    }
}

/// The damage of an export.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} {what}{}", about(.entry))]
pub struct ExportDamage {
    /// The number of the first damaged line.
    pub line: u64,
    /// What is wrong with it.
    pub what: &'static str,
    /// The run and position that the line claims to be about, if it is readable.
    pub entry: Option<(String, u64)>,
}

fn about(entry: &Option<(String, u64)>) -> String {
    match entry {
        Some((run, record)) => format!(" (it says: run {run}, event {record})"),
        None => String::new(),
    }
}

/// Checks an export, and returns how many entries it has.
///
/// # Errors
/// The first line that was changed, left out, moved or added.
pub fn verify_export<'l>(lines: impl IntoIterator<Item = &'l str>) -> Result<u64, ExportDamage> {
    let mut before = chain::seed(CHAIN);
    let mut number = 0;
    let mut ended = None;
    for line in lines {
        number += 1;
        let damaged = |what| ExportDamage { line: number, what, entry: claimed(line) };
        if ended.is_some() {
            return Err(damaged("was added after the end"));
        }
        let opened = chain::open(&before, line);
        let (body, hash) = opened.ok_or_else(|| damaged(chain::fault(line, number)))?;
        let read = serde_json::from_str::<Line>(body).map_err(|_| damaged("was changed"))?;
        match read.content {
            Content::Begin { form } if number != 1 || form > FORM => {
                return Err(damaged("is of a form that this version does not know"));
            }
            Content::End { entries } => ended = Some(entries),
            Content::Begin { .. } | Content::Entry(_) => {}
        }
        before = hash.to_owned();
    }
    ended.ok_or(ExportDamage { line: number + 1, what: "is missing", entry: None })
}

fn claimed(line: &str) -> Option<(String, u64)> {
    let (body, _) = chain::apart(line)?;
    let value: Value = serde_json::from_str(body).ok()?;
    let entry = value.get("entry")?;
    Some((entry.get("run")?.as_str()?.to_owned(), entry.get("record")?.as_u64()?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn exported(count: u64) -> Vec<String> {
        let (mut export, first) = AuditExport::begin().unwrap();
        let mut lines = vec![first];
        for seq in 1..=count {
            let decision = Decision {
                seq,
                at: seq,
                act: Act::Trusted,
                folder: PathBuf::from("/x"),
                digest: "d".to_owned(),
                files: std::collections::BTreeMap::new(),
                brought: Vec::new(),
                hash: "h".to_owned(),
            };
            lines.push(export.entry(AuditEntry::of_trust(&decision)).unwrap());
        }
        lines.push(export.end().unwrap());
        lines
    }

    fn check(lines: &[String]) -> Result<u64, u64> {
        verify_export(lines.iter().map(String::as_str)).map_err(|damage| damage.line)
    }

    #[test]
    fn the_first_line_is_named_that_was_changed_left_out_moved_or_added() {
        let lines = exported(3);
        assert_eq!(check(&lines), Ok(3));
        for line in 0..lines.len() {
            let mut changed = lines.clone();
            changed[line] = changed[line].replacen("\"seq\":", "\"seq\": ", 1);
            assert_eq!(check(&changed), Err(line as u64 + 1));
            let mut less = lines.clone();
            less.remove(line);
            assert_eq!(check(&less), Err(line as u64 + 1));
        }
        let mut moved = lines.clone();
        moved.swap(2, 3);
        assert_eq!(check(&moved), Err(3));
        let mut more = lines.clone();
        more.push(lines[1].clone());
        assert_eq!(check(&more), Err(6));
        assert_eq!(check(&[]), Err(1));
        assert_eq!(check(&exported(0)), Ok(0));
    }
}
