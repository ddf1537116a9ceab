//! What every user interface shows of runs: one run, a tree with its sums, the spending. Their JSON
//! is stable: fields may be added, but none changes its meaning.

mod run;
mod spending;
mod tree;
mod worktree;

pub use run::{GuidanceView, RunView, TodoView};
pub use spending::{BudgetView, Spending, SumView};
pub use tree::{Tree, is_empty_chat, took};
pub use worktree::{Left, RepositoryView, WorktreeView};
