//! `posse runs export`: the events of a run as lines of JSON.

use super::super::Common;
use super::PAGE;
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use posse::Runtime;
use posse::protocol::Seq;
use serde_json::json;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

pub async fn run(
    common: &Common,
    runtime: &Runtime,
    run: &str,
    output: Option<PathBuf>,
) -> Result<Code, Failure> {
    let row = runtime.find(run).await?;
    let cannot = |error: io::Error| {
        let path = output.as_ref().map_or("standard output".into(), |path| path.to_string_lossy());
        Failure::internal(format!("cannot write {path}: {error}"))
    };
    let mut file = match &output {
        Some(path) => Some(BufWriter::new(print::private_file(path).map_err(cannot)?)),
        None => None,
    };
    let mut after = Seq::ZERO;
    loop {
        let page = runtime.read(row.id, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        for record in &page {
            match &mut file {
                Some(file) => writeln!(file, "{}", print::json_text(record)?).map_err(cannot)?,
                None => print::json(record)?,
            }
        }
    }
    if let Some(file) = &mut file {
        file.flush().map_err(cannot)?;
    }
    match &output {
        Some(path) if common.global.json => {
            print::json(&json!({"run": row.id, "events": after, "file": path}))?;
        }
        Some(path) if !common.global.quiet => {
            print::note(format!(
                "{} written to {}",
                format::count(after.0, "event"),
                path.display()
            ));
        }
        _ => {}
    }
    Ok(Code::Done)
}
