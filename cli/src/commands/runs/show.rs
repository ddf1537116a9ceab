//! `posse runs show`.

use super::super::Common;
use super::super::follow::read;
use super::tree::line;
use crate::clean::{clean, clean_line};
use crate::exit::{Code, Failure};
use crate::family;
use crate::format;
use crate::paint::Paint;
use crate::print;
use crate::screen::line::{Look, label};
use crate::screen::todos::Todos;
use crate::spending;
use crate::terminal;
use posse::protocol::{Event, Seq};
use posse::views::GuidanceView;
use posse::views::Spending;
use posse::views::Tree;
use posse::views::WorktreeView;
use posse::views::{self as view, RunView};
use posse::{Budget, RunRow, Runtime, Status};

pub async fn run(common: &Common, runtime: &Runtime, run: &str) -> Result<Code, Failure> {
    let row = runtime.find(run).await?;
    let family = Tree::of(runtime, &row).await?;
    let sound = row.log.damaged.is_none() && !row.log.erased;
    let outcome = match row.state.outcome.is_some() && sound {
        true => Some(runtime.handle(row.id).outcome().await?),
        false => None,
    };
    let (mut todos, mut worktree) = (Todos::default(), WorktreeView::default());
    let mut guidance = Vec::new();
    if sound {
        read(runtime, &row, |record| {
            todos.observe(&record.event);
            worktree.observe(&record.event);
            if let Event::RunStarted(started) = &record.event {
                guidance.extend(started.guidance.iter().map(GuidanceView::of));
            }
        })
        .await?;
    }
    let text = outcome.as_ref().map(|outcome| outcome.text());
    let task = task(runtime, &row).await?;
    let (waits, machine) = match sound {
        true => (runtime.why_nobody_takes(&row).await?, runtime.machine_of(&row).await?),
        false => (None, None),
    };
    if common.global.json {
        let view = whole(&family, &row, &todos, text).with_worktree(&worktree).with_task(task);
        let view = view.with_guidance(guidance);
        print::json_pretty(&view.with_machine(machine).or_waits_for(waits))?;
        return Ok(Code::Done);
    }
    let other = runtime.other_machine(&row).map(|machine| clean_line(machine, 64));
    let there = other.map_or_else(String::new, |machine| format!(" (on the machine `{machine}`)"));
    for (name, value) in facts(&family, &row, task.as_deref()) {
        let value = if name == "folder" { value + &there } else { value };
        print::line(format!("{name:11} {value}"))?;
    }
    for file in &guidance {
        print::line(format!("{:11} {}", "guidance", in_words(file)))?;
    }
    if let Some(place) = worktree.place() {
        print::line(format!("{:11} {}", "works in", clean_line(place, 400)))?;
    }
    if let Some(news) = worktree.news() {
        let told = clean_line(news, 600);
        print::line(format!("{:11} the agent was told: {told}", "checkout"))?;
    }
    if let Some(machine) = machine {
        print::line(format!("{:11} {}", "machine", clean_line(&machine, 64)))?;
    }
    if let Some(why) = waits {
        print::line(format!("{:11} {why}", "queue"))?;
    }
    if let Some(left) = worktree.left() {
        print::line(format!("{:11} {}{there}", "worktree", crate::worktree::told(left)))?;
    }
    let columns = terminal::table_width();
    let paint = Paint { on: columns.is_some() && !common.environment.no_color };
    let look = Look { paint, columns: columns.unwrap_or(usize::MAX).saturating_sub(2) };
    for child in family.children(row.id) {
        print::line(format!("  {}", line(&family, child, "", look)))?;
    }
    if let Some((done, all)) = todos.progress() {
        print::line(format!("{:11} {done} of {all} done", "todo"))?;
        for todo in todos.list() {
            print::line(format!("  {}", clean_line(&todo.to_string(), 600)))?;
        }
    }
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        print::line(format!("\n{}", clean(text)))?;
    }
    Ok(Code::Done)
}

/// A guidance file, in one line.
fn in_words(file: &GuidanceView) -> String {
    let hash = file.hash.get(..12).unwrap_or("not read");
    let note = match file.note.as_str() {
        "" => String::new(),
        note => format!("; {note}"),
    };
    clean_line(&format!("{} ({hash}, {} bytes{note})", file.path, file.bytes), 600)
}

/// The run as JSON, with its relatives, its todo list and its answer.
fn whole(family: &Tree, row: &RunRow, todos: &Todos, text: Option<&str>) -> RunView {
    let view = RunView {
        children: Some(family.children(row.id).map(|child| child.id).collect()),
        todos: Some(todos.list().iter().map(view::TodoView::of).collect()),
        ..family.view(row)
    };
    match text {
        Some(text) => view.with_text(text),
        None => view,
    }
}

/// The number of events that contain the first message of a run.
const FIRST: usize = 8;

/// The beginning of the task of a run with a label. Other runs have it as their title.
pub async fn task(runtime: &Runtime, row: &RunRow) -> Result<Option<String>, Failure> {
    if row.about.label.is_empty() || row.log.damaged.is_some() || row.log.erased {
        return Ok(None);
    }
    let records = runtime.read(row.id, Seq::ZERO, FIRST).await?;
    let asked = records.iter().find_map(|record| match &record.event {
        Event::MessageReceived(received) => Some(received.message.text()),
        _ => None,
    });
    Ok(asked.map(|text| clean_line(&text, 200)))
}

fn facts(family: &Tree, row: &RunRow, task: Option<&str>) -> Vec<(&'static str, String)> {
    let own = family.spending(row);
    let money = spending::money_in_words(&own);
    let status = match (&row.state.outcome, &row.log.damaged) {
        (Some(_), None) if row.status == Status::Archived => {
            format!("{}; archived", clean_line(&row.state.note, 400))
        }
        (Some(_), None) => clean_line(&row.state.note, 400),
        (None, None) if !row.waits_for().is_empty() => {
            format!("{}: {}", family::word_in(family, row), clean_line(&row.waits_for(), 400))
        }
        _ => family::word_in(family, row),
    };
    let last = format!("{} (event {})", format::timestamp(row.updated_at), row.log.last_seq);
    let mut facts = vec![
        ("run", row.id.to_string()),
        ("status", status),
        ("agent", clean_line(&row.about.agent, 80)),
        ("model", clean_line(&row.about.model, 80)),
        ("folder", clean_line(&row.about.workspace, 400)),
        ("started", format::timestamp(row.created_at)),
        ("last event", last),
        ("spent", spent(&own, &money)),
        ("task", clean_line(task.unwrap_or(&row.about.title), 200)),
    ];
    if task.is_some() {
        facts.push(("label", clean_line(&row.about.label, 200)));
    }
    let budget = spending::of_budget(row, &Budget::DIMENSIONS);
    if !budget.is_empty() {
        facts.push(("budget", budget));
    }
    if let Some(damage) = &row.log.damaged {
        facts.push(("damaged", clean_line(damage, 400)));
    }
    if row.log.erased {
        facts.push(("log", "removed; `posse cost` still counts the run".to_owned()));
    }
    if let Some(parent) = row.family.parent {
        let above = family.find(parent);
        let above = above.map(|row| {
            format!("  [{}] {}", clean_line(&row.about.agent, 64), label(&row.about.title))
        });
        facts.push(("parent", format!("{}{}", parent.short(), above.unwrap_or_default())));
    }
    let below = family.below(row.id).len() as u64;
    if below > 0 {
        let sum = family.sum(row);
        let sum = spent(&sum, &spending::money_in_words(&sum));
        facts.push(("with below", format!("{}: {sum}", format::count(1 + below, "run"))));
        facts.push(("children", family.children(row.id).count().to_string()));
    }
    facts
}

fn spent(spending: &Spending, money: &str) -> String {
    format!(
        "{}, {}, {} tokens in, {} out, {money}",
        format::count(spending.turns, "turn"),
        format::count(spending.tool_calls, "tool call"),
        format::tokens(spending.input_tokens()),
        format::tokens(spending.output_tokens()),
    )
}
