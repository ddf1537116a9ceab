//! A run, as interfaces show it.

use super::spending::{BudgetView, Spending, SumView};
use super::worktree::{Left, RepositoryView, WorktreeView};
use crate::moment::timestamp;
use posse_protocol::{GuidanceFile, RunId, Status};
use posse_store::RunRow;
use posse_tools::todo::{self, Todo};
use serde::Serialize;

/// A run. Its JSON is stable: fields may be added, but none changes its meaning.
#[derive(Serialize)]
pub struct RunView {
    pub run: String,
    pub status: Status,
    /// Its place in the queue; 1 is next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    pub outcome: Option<String>,
    pub outcome_line: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    pub agent: String,
    pub model: String,
    pub title: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The beginning of its first message if it has a label; otherwise that is its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    pub workspace: String,
    /// The repository on which it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryView>,
    /// What its agent was told last about its checkout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkout_news: Option<String>,
    /// The machine to which it is bound.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// The label that its worker must have.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub needs: String,
    /// The machine that executes it now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    pub session: bool,
    pub created: String,
    pub updated: String,
    pub events: u64,
    pub turns: u64,
    pub tool_calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Known cost.
    pub cost_usd: f64,
    /// False if it used a model with an unknown price: then `cost_usd` says nothing.
    pub cost_known: bool,
    /// The most that interrupted calls may have cost in addition.
    pub uncertain_cost_usd: f64,
    /// The budget of the run and all its subagents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Vec<BudgetView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damaged: Option<String>,
    /// Its log was removed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub erased: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    pub root: RunId,
    pub depth: u32,
    /// Its parent does not wait for it: Posse announces its end.
    pub background: bool,
    /// How many children have not ended, if it waits for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_on: Option<u64>,
    /// How many subagents it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<RunId>>,
    /// The sum of the run and all its subagents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtree: Option<SumView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub todos: Option<Vec<TodoView>>,
    /// What it left in its worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Left>,
    /// The guidance files with which it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guidance: Option<Vec<GuidanceView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A guidance file of a run, as JSON.
#[derive(Clone, Serialize)]
pub struct GuidanceView {
    pub path: String,
    /// SHA-256 of the whole file; empty if it was not read.
    pub hash: String,
    /// How many bytes the agent got.
    pub bytes: usize,
    /// What the agent did not get, and why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl GuidanceView {
    pub fn of(file: &GuidanceFile) -> Self {
        let GuidanceFile { path, hash, text, note, .. } = file.clone();
        GuidanceView { path, hash, bytes: text.len(), note }
    }
}

/// An item of the to-do list of an agent, as JSON.
#[derive(Serialize)]
pub struct TodoView {
    content: String,
    status: &'static str,
}

impl TodoView {
    pub fn of(todo: &Todo) -> Self {
        let status = match todo.status {
            todo::Status::Pending => "pending",
            todo::Status::InProgress => "in_progress",
            todo::Status::Completed => "completed",
        };
        TodoView { content: todo.content.clone(), status }
    }
}

impl RunView {
    pub fn of(row: &RunRow) -> Self {
        let ended = row.state.outcome.is_some();
        let spending = Spending::of(row);
        let waits_for = row.waits_for();
        RunView {
            run: row.id.to_string(),
            status: row.status,
            position: None,
            outcome: row.state.outcome.clone(),
            outcome_line: ended.then(|| row.state.note.clone()),
            waits_for: (!ended && !waits_for.is_empty()).then_some(waits_for),
            agent: row.about.agent.clone(),
            model: row.about.model.clone(),
            title: row.about.title.clone(),
            label: row.about.label.clone(),
            task: None,
            workspace: row.about.workspace.clone(),
            repository: None,
            checkout_news: None,
            host: row.work.host.clone(),
            needs: row.work.needs.clone(),
            machine: None,
            session: row.about.session,
            created: timestamp(row.created_at),
            updated: timestamp(row.updated_at),
            events: row.log.last_seq.0,
            turns: row.spending.turns,
            tool_calls: row.spending.tool_calls,
            input_tokens: spending.input_tokens(),
            output_tokens: spending.output_tokens(),
            cost_usd: spending.cost().dollars(),
            cost_known: true,
            uncertain_cost_usd: spending.uncertain_cost().dollars(),
            budget: BudgetView::of(row),
            damaged: row.log.damaged.clone(),
            erased: row.log.erased,
            parent: row.family.parent,
            root: row.family.root,
            depth: row.family.depth,
            background: row.family.background,
            waiting_on: None,
            below: None,
            children: None,
            subtree: None,
            todos: None,
            worktree: None,
            guidance: None,
            text: None,
        }
    }

    pub fn with_below(self, below: u64) -> Self {
        RunView { below: Some(below), ..self }
    }

    pub fn with_machine(self, machine: Option<String>) -> Self {
        RunView { machine, ..self }
    }

    /// Says what the run waits for, if nothing else is known.
    pub fn or_waits_for(self, why: Option<String>) -> Self {
        RunView { waits_for: self.waits_for.clone().or(why), ..self }
    }

    pub fn with_task(self, task: Option<String>) -> Self {
        RunView { task, ..self }
    }

    pub fn waiting_on(self, children: u64) -> Self {
        RunView { waiting_on: (children > 0).then_some(children), ..self }
    }

    pub fn with_worktree(self, worktree: &WorktreeView) -> Self {
        RunView {
            worktree: worktree.left().cloned(),
            repository: worktree.repository().cloned(),
            checkout_news: worktree.news().map(str::to_owned),
            ..self
        }
    }

    pub fn with_guidance(self, files: Vec<GuidanceView>) -> Self {
        RunView { guidance: (!files.is_empty()).then_some(files), ..self }
    }

    pub fn with_repository(self, repository: Option<RepositoryView>) -> Self {
        RunView { repository, ..self }
    }

    pub fn with_text(self, text: &str) -> Self {
        RunView { text: Some(text.to_owned()), ..self }
    }
}
