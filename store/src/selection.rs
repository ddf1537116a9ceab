//! Translates a [`Filter`] to a statement and the values that it binds. As portable as `sql`.

use crate::filter::{Background, Filter, Kin, Label, Unfinished};
use crate::sql::{RUN_COLUMNS, placeholders};
use posse_protocol::{RunId, Status};

/// The default length of a list.
const LIST: usize = 100;

/// A root, or a run whose root has ended.
const HEADS: &str = "(depth = 0 OR EXISTS (SELECT 1 FROM runs AS top \
     WHERE top.id = runs.root AND top.outcome IS NOT NULL))";

/// A statement that lists runs.
pub(crate) struct Selection {
    pub(crate) statement: String,
    /// The values that it binds, in order.
    pub(crate) texts: Vec<String>,
    /// The value that it binds last.
    pub(crate) limit: u64,
}

/// Returns the statement that selects the runs of `filter`, given the living workers.
pub(crate) fn select(filter: &Filter, living: &[String]) -> Selection {
    let mut conditions = Conditions::default();
    conditions.is("id", filter.id.map(|id| id.to_string()));
    conditions.is("workspace", filter.workspace.clone());
    match filter.kin {
        Kin::All => {}
        Kin::Roots => conditions.hold("depth = 0"),
        Kin::Heads => conditions.hold(HEADS),
        Kin::ChildrenOf(run) => conditions.is("parent", Some(run.to_string())),
        Kin::TreeOf(run) => conditions.is("root", Some(run.to_string())),
    }
    conditions.is("agent", filter.agent.clone());
    conditions.is("model", filter.model.clone());
    match &filter.label {
        None => {}
        // This condition lets the engine use the partial index.
        Some(Label::Is(label)) => {
            conditions.hold("label > ''");
            conditions.is("label", Some(label.clone()));
        }
        Some(Label::Begins(beginning)) => {
            conditions.hold("label > ''");
            conditions.compare("label >=", beginning.clone());
            conditions.compare("label <", format!("{beginning}{}", char::MAX));
        }
    }
    conditions.is("outcome", filter.outcome.clone());
    match filter.background {
        Background::All => {}
        Background::Only => conditions.hold("background = 1"),
        Background::Not => conditions.hold("background = 0"),
    }
    let first_at = |at: u64| RunId::first_at(at).to_string();
    if let Some(since) = filter.since {
        conditions.compare("id >=", first_at(since));
    }
    if let Some(until) = filter.until {
        conditions.compare("id <", first_at(until));
    }
    if let Some(before) = filter.before {
        conditions.compare("id <", before.to_string());
    }
    if let Some(after) = filter.after {
        conditions.compare("id >", after.to_string());
    }
    let ended =
        |status: &Status| matches!(status, Status::Finished | Status::Archived | Status::Damaged);
    let open = !filter.status.is_empty() && !filter.status.iter().any(ended);
    if filter.unfinished == Unfinished::Only || open {
        conditions.hold("outcome IS NULL");
    }
    if filter.unfinished == Unfinished::Gathering {
        conditions.hold("gathered_at > 0");
    }
    if filter.unfinished == Unfinished::Asking {
        conditions.hold("asks > 0");
    }
    conditions.stand(&filter.status, living);
    let order = if filter.after.is_some() { "id" } else { "id DESC" };
    conditions.finish(order, if filter.limit == 0 { LIST } else { filter.limit })
}

/// Conditions that must all hold, and the values that they bind.
#[derive(Default)]
struct Conditions {
    conditions: Vec<String>,
    texts: Vec<String>,
}

impl Conditions {
    fn hold(&mut self, condition: &str) {
        self.conditions.push(condition.to_owned());
    }

    fn compare(&mut self, comparison: &str, text: String) {
        self.texts.push(text);
        self.conditions.push(format!("{comparison} ${}", self.texts.len()));
    }

    fn is(&mut self, column: &str, text: Option<String>) {
        if let Some(text) = text {
            self.compare(&format!("{column} ="), text);
        }
    }

    /// Adds the condition that the run has one of `statuses`: `RunRow::status_given` in SQL.
    fn stand(&mut self, statuses: &[Status], living: &[String]) {
        if statuses.is_empty() {
            return;
        }
        let mut any = Vec::new();
        for status in statuses {
            let owned = matches!(
                status,
                Status::Running | Status::Paused | Status::Interrupted | Status::Crashed
            );
            let alive = if owned { self.alive(living) } else { String::new() };
            any.push(standing(*status, &alive));
        }
        self.conditions.push(format!("({})", any.join(" OR ")));
    }

    /// Returns the condition that the owner is one of `living`. Each call binds them again.
    fn alive(&mut self, living: &[String]) -> String {
        if living.is_empty() {
            return "1 = 0".to_owned();
        }
        let workers = placeholders(self.texts.len() + 1, living.len());
        self.texts.extend(living.iter().cloned());
        format!("owner IS NOT NULL AND owner IN {workers}")
    }

    fn finish(self, order: &str, limit: usize) -> Selection {
        let filter = match self.conditions.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", self.conditions.join(" AND ")),
        };
        let last = self.texts.len() + 1;
        let statement =
            format!("SELECT {RUN_COLUMNS} FROM runs{filter} ORDER BY {order} LIMIT ${last}");
        Selection { statement, texts: self.texts, limit: limit as u64 }
    }
}

/// Returns the condition for a status. `alive` is the condition that the owner is alive.
fn standing(status: Status, alive: &str) -> String {
    let open = "damaged IS NULL AND archived = 0 AND outcome IS NULL";
    let at_rest = format!("{open} AND paused = 0 AND owner IS NULL");
    let condition = match status {
        Status::Damaged => "damaged IS NOT NULL".to_owned(),
        Status::Archived => "damaged IS NULL AND archived = 1".to_owned(),
        Status::Finished => "damaged IS NULL AND archived = 0 AND outcome IS NOT NULL".to_owned(),
        Status::Running => format!("{open} AND {alive}"),
        Status::Paused => format!("{open} AND paused = 1 AND NOT ({alive})"),
        Status::Interrupted => format!("{open} AND paused = 2 AND NOT ({alive})"),
        Status::Crashed => {
            format!("{open} AND paused = 0 AND owner IS NOT NULL AND NOT ({alive})")
        }
        Status::Queued => format!("{at_rest} AND runnable = 1"),
        Status::Waiting => format!("{at_rest} AND runnable = 0"),
    };
    format!("({condition})")
}

/// A statement for each condition, and some for several conditions.
#[cfg(test)]
pub(crate) fn samples() -> Vec<String> {
    let run = RunId::from_u128(1);
    let all = Filter {
        id: Some(run),
        workspace: Some("/w".to_owned()),
        kin: Kin::TreeOf(run),
        unfinished: Unfinished::Only,
        agent: Some("a".to_owned()),
        model: Some("m".to_owned()),
        label: Some(Label::Begins("l".to_owned())),
        status: ALL.to_vec(),
        outcome: Some("failed".to_owned()),
        background: Background::Only,
        since: Some(1),
        until: Some(2),
        before: Some(run),
        after: Some(run),
        limit: 5,
    };
    let some = |change: fn(&mut Filter)| {
        let mut filter = Filter::default();
        change(&mut filter);
        filter
    };
    let mut filters = vec![
        all,
        Filter::default(),
        Filter { kin: Kin::ChildrenOf(run), ..Filter::default() },
        some(|filter| filter.kin = Kin::Roots),
        some(|filter| filter.kin = Kin::Heads),
        some(|filter| filter.label = Some(Label::Is("l".to_owned()))),
        some(|filter| filter.background = Background::Not),
        some(|filter| filter.unfinished = Unfinished::Gathering),
        some(|filter| filter.unfinished = Unfinished::Asking),
    ];
    filters.extend(ALL.map(|status| Filter { status: vec![status], ..Filter::default() }));
    let living = vec!["w".to_owned(); 3];
    let statements = |filter: &Filter| [select(filter, &living), select(filter, &[])];
    filters.iter().flat_map(statements).map(|selection| selection.statement).collect()
}

#[cfg(test)]
const ALL: [Status; 9] = [
    Status::Queued,
    Status::Running,
    Status::Crashed,
    Status::Waiting,
    Status::Paused,
    Status::Interrupted,
    Status::Finished,
    Status::Archived,
    Status::Damaged,
];

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use sqlx::{AssertSqlSafe, Connection, Executor, Row, SqliteConnection};

    #[tokio::test]
    async fn what_few_runs_have_is_found_without_looking_at_all_of_them() {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        connection.execute(AssertSqlSafe(crate::sql::SCHEMA.whole())).await.unwrap();
        let text = |text: &str| Some(text.to_owned());
        let table = [
            (Filter { agent: text("a"), ..Filter::default() }, "runs_by_agent (agent=?"),
            (
                Filter { label: text("l").map(Label::Is), ..Filter::default() },
                "runs_by_label (label=?",
            ),
            (
                Filter { label: text("l").map(Label::Begins), ..Filter::default() },
                "runs_by_label (label>",
            ),
            (Filter { outcome: text("failed"), ..Filter::default() }, "runs_by_outcome (outcome=?"),
            (Filter { status: vec![Status::Paused], ..Filter::default() }, "runs_unfinished"),
            (Filter { since: Some(1), ..Filter::default() }, "(id>"),
        ];
        for (filter, expected) in table {
            let statement = format!("EXPLAIN QUERY PLAN {}", select(&filter, &[]).statement);
            let plan = sqlx::query(AssertSqlSafe(statement)).fetch_all(&mut connection).await;
            let plan: Vec<String> = plan.unwrap().iter().map(|row| row.get("detail")).collect();
            assert!(plan[0].contains(expected), "{filter:?}: {plan:?}");
        }
    }
}
