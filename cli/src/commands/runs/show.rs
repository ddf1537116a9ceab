//! `posse runs show`.

use super::super::Common;
use crate::clean::{clean, clean_line};
use crate::exit::{Code, Failure};
use crate::print;
use crate::view::{self, RunView};
use posse::{RunRow, Runtime};

pub async fn run(common: &Common, runtime: &Runtime, run: &str) -> Result<Code, Failure> {
    let row = runtime.find(run).await?;
    let ended = row.outcome.is_some() && row.damaged.is_none();
    let outcome = match ended {
        true => Some(runtime.handle(row.id).outcome().await?),
        false => None,
    };
    let text = outcome.as_ref().map_or("", |outcome| outcome.text());
    if common.global.json {
        let view = RunView::of(&row);
        print::json_pretty(&if ended { view.with_text(text) } else { view })?;
        return Ok(Code::Done);
    }
    for (name, value) in facts(&row) {
        print::line(format!("{name:11} {value}"))?;
    }
    if !text.is_empty() {
        print::line(format!("\n{}", clean(text)))?;
    }
    Ok(Code::Done)
}

fn facts(row: &RunRow) -> Vec<(&'static str, String)> {
    let status = match (&row.outcome, &row.damaged) {
        (Some(_), None) => clean_line(&row.note, 400),
        (None, None) if !row.note.is_empty() => {
            format!("{}: {}", row.status, clean_line(&row.note, 400))
        }
        _ => row.status.to_string(),
    };
    let spent = format!(
        "{}, {}, {} tokens in, {} out, {}",
        view::count(row.turns, "turn"),
        view::count(row.tool_calls, "tool call"),
        view::tokens(row.spent.input_tokens + row.reserved.input_tokens),
        view::tokens(row.spent.output_tokens + row.reserved.output_tokens),
        row.cost()
    );
    let last = format!("{} (event {})", view::timestamp(row.updated_at), row.last_seq);
    let mut facts = vec![
        ("run", row.id.to_string()),
        ("status", status),
        ("agent", clean_line(&row.agent, 80)),
        ("model", clean_line(&row.model, 80)),
        ("folder", clean_line(&row.workspace, 400)),
        ("started", view::timestamp(row.created_at)),
        ("last event", last),
        ("spent", spent),
        ("task", clean_line(&row.title, 200)),
    ];
    if let Some(damage) = &row.damaged {
        facts.push(("damaged", clean_line(damage, 400)));
    }
    facts
}
