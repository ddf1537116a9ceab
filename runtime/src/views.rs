//! What every face shows of runs: one run, a tree with its sums, what was spent. Their JSON is
//! stable: fields are added, and none changes its meaning.

mod run;
mod spending;
mod tree;
mod worktree;

pub use run::{RunView, TodoView};
pub use spending::{BudgetView, Spending, SumView};
pub use tree::{Tree, is_empty_chat, took};
pub use worktree::{Left, WorktreeView};
