//! The todo list of a run, from the last accepted call in its log.

use super::line::Look;
use crate::clean::clean_line;
use crate::terminal::fitted;
use posse::protocol::{CallId, Event};
use posse::todo::{self, Status, Todo};

/// The most lines of a list.
const ROWS: usize = 12;

#[derive(Debug, Default)]
pub struct Todos {
    list: Vec<Todo>,
    /// The lists in open calls.
    asked: Vec<(CallId, Vec<Todo>)>,
}

/// Whether an event changed the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    Yes,
    No,
}

impl Todos {
    pub fn observe(&mut self, event: &Event) -> Changed {
        match event {
            Event::ModelReplied(replied) => {
                let lists = replied.message.tool_calls().filter_map(|call| {
                    let names_it = todo::NAMES.contains(&call.name.as_str());
                    let list = names_it.then(|| todo::todos(&call.input)).flatten()?;
                    Some((call.id.clone(), list))
                });
                self.asked = lists.collect();
                Changed::No
            }
            Event::ToolFinished(finished) => {
                let asked = self.asked.iter().position(|(call, _)| *call == finished.call);
                let Some(position) = asked else { return Changed::No };
                let (_, list) = self.asked.remove(position);
                if finished.output.is_error || list == self.list {
                    return Changed::No;
                }
                self.list = list;
                Changed::Yes
            }
            _ => Changed::No,
        }
    }

    pub fn list(&self) -> &[Todo] {
        &self.list
    }

    /// The numbers of completed and of all items; `None` without a list.
    pub fn progress(&self) -> Option<(usize, usize)> {
        let done = self.list.iter().filter(|todo| todo.status == Status::Completed).count();
        (!self.list.is_empty()).then_some((done, self.list.len()))
    }

    /// The list as permanent lines.
    pub fn told(&self, look: Look) -> String {
        let room = look.columns.saturating_sub(2);
        let line = |line: &String| format!("  {}", fitted(&clean_line(line, 200), room));
        let (done, all) = self.progress().unwrap_or_default();
        let head = format!("{} {done} of {all} done", look.paint.green("●"));
        let lines = self.lines(ROWS);
        std::iter::once(head).chain(lines.iter().map(line)).collect::<Vec<_>>().join("\n")
    }

    /// The list in at most `rows` lines. Completed items are left out first, then the last ones.
    fn lines(&self, rows: usize) -> Vec<String> {
        let all = self.list.len();
        let first = self.list.iter().position(|todo| todo.status != Status::Completed);
        let first = first.unwrap_or(all);
        // Two lines may be needed for the number of omitted items.
        let room = if all <= rows { all } else { rows.saturating_sub(2).max(1) };
        let from = first.min(all.saturating_sub(room));
        let shown = &self.list[from..(from + room).min(all)];
        let left_out = |count: usize, what: &str| (count > 0).then(|| format!("… {count} {what}"));
        let done = self.list[..from].iter().filter(|todo| todo.status == Status::Completed);
        left_out(done.count(), "done")
            .into_iter()
            .chain(shown.iter().map(Todo::to_string))
            .chain(left_out(all - from - shown.len(), "more"))
            .collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn list(statuses: &[Status]) -> Todos {
        let todo = |(index, status): (usize, &Status)| Todo {
            content: format!("t{index}"),
            status: *status,
            active_form: None,
        };
        let list = statuses.iter().enumerate().map(todo).collect();
        Todos { list, asked: Vec::new() }
    }

    #[test]
    fn a_long_list_is_shown_around_what_is_being_done() {
        use Status::{Completed, InProgress, Pending};
        let short = list(&[Completed, InProgress, Pending]);
        assert_eq!(short.lines(5), ["[x] t0", "[>] t1", "[ ] t2"]);
        assert_eq!(short.progress(), Some((1, 3)));
        let mut statuses = vec![Completed; 6];
        statuses.push(InProgress);
        statuses.extend([Pending; 6]);
        let long = list(&statuses);
        assert_eq!(long.lines(5), ["… 6 done", "[>] t6", "[ ] t7", "[ ] t8", "… 4 more"]);
        let over = list(&[Completed; 9]);
        assert_eq!(over.lines(5), ["… 6 done", "[x] t6", "[x] t7", "[x] t8"]);
        assert_eq!(list(&[]).lines(5), Vec::<String>::new());
    }
}
