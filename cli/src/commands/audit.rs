//! `posse audit`: what agents did, who allowed it, and whether the audit log is complete.

use super::runs::verify::Findings;
use super::{Common, folder};
use crate::args::{AuditFilters, AuditVerb};
use crate::clean::{clean, clean_line};
use crate::exit::{Code, Failure};
use crate::table::{Column, Table};
use crate::{format, print};
use posse::audit::{AuditEntry, AuditExport, AuditKind, verify_export};
use posse::{RunRow, Runtime};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::path::Path;

/// The default number of entries for people.
const LIMIT: usize = 100;

pub async fn run(common: Common, verb: AuditVerb) -> Result<Code, Failure> {
    if let AuditVerb::Verify { file: Some(file) } = &verb {
        return verify_file(&common, file);
    }
    // Audits work in any folder, so read only the user's settings.
    let config = common.user_config()?;
    let runtime = match common.has_database()? {
        true => Some(common.runtime(&config, common.agents(&folder(None)?, &[])?).await?),
        // A read-only command must not create a database.
        false => None,
    };
    let result = match &verb {
        AuditVerb::List { filters, limit } => {
            let usual = if common.global.json { usize::MAX } else { LIMIT };
            let limit = limit.map_or(usual, |limit| limit as usize);
            list(&common, runtime.as_ref(), filters, limit).await
        }
        AuditVerb::Export { filters, output } => {
            export(&common, runtime.as_ref(), filters, output.as_deref()).await
        }
        AuditVerb::Verify { .. } => verify(&common, runtime.as_ref()).await,
    };
    if let Some(runtime) = runtime {
        runtime.shutdown().await;
    }
    result
}

/// The selected entries, in the order of time.
async fn entries(
    common: &Common,
    runtime: Option<&Runtime>,
    filters: &AuditFilters,
) -> Result<Vec<AuditEntry>, Failure> {
    let mut found = Vec::new();
    let fits = |entry: &AuditEntry| {
        let is = |wanted: &Option<String>, value: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(value))
        };
        let agent = entry.agent.as_ref().map_or("", |agent| agent.as_str());
        let asked_for = is(&filters.agent, agent)
            && is(&filters.tool, &entry.tool)
            && (filters.decision.is_empty() || filters.decision.contains(&entry.kind))
            && filters.since.is_none_or(|since| entry.at >= since);
        // The content of an unreadable entry is unknown, so always show it.
        asked_for || entry.kind == AuditKind::Unreadable
    };
    if let Some(runtime) = runtime {
        let rows: Vec<RunRow> = match &filters.run {
            Some(run) => vec![runtime.find(run).await?],
            None => runtime.audited_runs().await?,
        };
        // Skip runs without events since then.
        let since = filters.since.unwrap_or_default();
        for row in rows.iter().filter(|row| row.updated_at >= since) {
            found.extend(runtime.audit(row).await?.into_iter().filter(fits));
        }
    }
    if filters.run.is_none()
        && let Ok(log) = common.trust_log()
    {
        let decisions = log.decisions()?;
        found.extend(decisions.iter().map(AuditEntry::of_trust).filter(fits));
    }
    found.sort_by_key(|entry| (entry.at, entry.run, entry.record));
    Ok(found)
}

/// The number of logs that cannot be read to their end.
fn unreadable(found: &[AuditEntry]) -> usize {
    found.iter().filter(|entry| entry.kind == AuditKind::Unreadable).count()
}

/// The final error, if there are unreadable logs.
fn conclude(unreadable: usize) -> Result<Code, Failure> {
    if unreadable == 0 {
        return Ok(Code::Done);
    }
    let logs = format::count(unreadable as u64, "log");
    let message = format!("{logs} cannot be read from where the audit says `unreadable`");
    let hint = Some("`posse audit verify` tells what is wrong with each run".to_owned());
    Err(Failure { code: Code::Store, message, hint })
}

async fn list(
    common: &Common,
    runtime: Option<&Runtime>,
    filters: &AuditFilters,
    limit: usize,
) -> Result<Code, Failure> {
    let mut found = entries(common, runtime, filters).await?;
    let unreadable = unreadable(&found);
    let older = found.len().saturating_sub(limit);
    if older > 0 && !common.global.quiet && !common.global.json {
        print::note(format!("{older} older entries are left out; --limit shows more"));
    }
    found.drain(..older);
    if common.global.json {
        print::json_pretty(&found)?;
        return conclude(unreadable);
    }
    Table { columns: COLUMNS, rows: found.iter().map(line).collect() }.print(common)?;
    if found.is_empty() && !common.global.quiet {
        print::note("no such entries");
    }
    conclude(unreadable)
}

const COLUMNS: [Column; 7] = [
    Column::text("TIME"),
    Column::text("RUN"),
    Column::figures("EVENT").leaves(1),
    Column::text("WHAT"),
    Column::text("AGENT").cut(16, 8).leaves(2),
    Column::text("TOOL"),
    Column::text("DETAILS").cut(20, 8).leaves(3),
];

/// An entry as one line for people.
fn line(entry: &AuditEntry) -> [String; 7] {
    let AuditEntry { at, kind, run, record, agent, tool, by, detail, .. } = entry;
    let by = if by.is_empty() { String::new() } else { format!("by {}", format::decider(by)) };
    let details = [by, in_words(detail)].join(" ");
    [
        format::timestamp(*at),
        run.map_or_else(|| "trust".to_owned(), |run| run.short()),
        record.to_string(),
        kind.as_str().to_owned(),
        clean_line(agent.as_ref().map_or("", |agent| agent.as_str()), 64),
        clean_line(tool, 64),
        clean_line(details.trim(), 600),
    ]
}

/// `detail` as text without the punctuation of JSON, and without hashes, which are for programs.
fn in_words(detail: &Value) -> String {
    match detail {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(in_words).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let told = fields.iter().filter(|(key, value)| *key != "digest" && !is_empty(value));
            let told = told.map(|(key, value)| format!("{key}: {}", in_words(value)));
            told.collect::<Vec<_>>().join("; ")
        }
        other => other.to_string(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// JSON with every invisible character escaped.
fn escaped(json: &str) -> String {
    let spell = |text: &mut String, character: char| match clean(character.encode_utf8(&mut [0; 4]))
    {
        kept if kept.chars().eq([character]) => text.push(character),
        _ => {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    };
    json.chars().fold(String::new(), |mut text, character| {
        spell(&mut text, character);
        text
    })
}

async fn export(
    common: &Common,
    runtime: Option<&Runtime>,
    filters: &AuditFilters,
    output: Option<&Path>,
) -> Result<Code, Failure> {
    let found = entries(common, runtime, filters).await?;
    let not_json = |error: serde_json::Error| Failure::internal(format!("cannot write: {error}"));
    let (mut writer, first) = AuditExport::begin().map_err(not_json)?;
    let mut lines = vec![first];
    let (count, unreadable) = (found.len() as u64, unreadable(&found));
    for entry in found {
        lines.push(writer.entry(entry).map_err(not_json)?);
    }
    lines.push(writer.end().map_err(not_json)?);
    let Some(path) = output else {
        // At a terminal, print the same JSON without characters that the terminal would obey.
        let at_terminal = std::io::stdout().is_terminal();
        for line in lines {
            print::line(if at_terminal { escaped(&line) } else { line })?;
        }
        return conclude(unreadable);
    };
    let write = || {
        let mut file = print::private_file(path)?;
        file.write_all((lines.join("\n") + "\n").as_bytes())?;
        file.sync_all()
    };
    write()
        .map_err(|error| Failure::internal(format!("cannot write {}: {error}", path.display())))?;
    if common.global.json {
        print::json(&json!({"entries": count, "file": path}))?;
    } else if !common.global.quiet {
        print::note(format!("{count} entries written to {}", path.display()));
    }
    conclude(unreadable)
}

async fn verify(common: &Common, runtime: Option<&Runtime>) -> Result<Code, Failure> {
    let mut findings = Findings::default();
    if let Some(runtime) = runtime {
        findings.check_all(runtime).await?;
    }
    findings.tell(common)?;
    let trust = match common.trust_log() {
        Ok(log) => log.decisions().map(|decisions| decisions.len()),
        Err(_) => Ok(0),
    };
    match trust {
        Err(error) => return Err(error.into()),
        Ok(count) if !common.global.quiet && !common.global.json => {
            let decisions = format::count(count as u64, "decision");
            print::note(format!("{decisions} about trust checked"));
        }
        Ok(_) => {}
    }
    Ok(if findings.is_sound() { Code::Done } else { Code::Store })
}

fn verify_file(common: &Common, file: &Path) -> Result<Code, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))?;
    match verify_export(text.lines()) {
        Ok(entries) if common.global.json => {
            print::json_pretty(&json!({"entries": entries, "damage": null}))?;
            Ok(Code::Done)
        }
        Ok(entries) => {
            if !common.global.quiet {
                print::note(format!("{entries} entries, each as it was written"));
            }
            Ok(Code::Done)
        }
        Err(damage) => {
            let message = format!("{}: {damage}", file.display());
            Err(Failure { code: Code::Store, message, hint: None })
        }
    }
}
