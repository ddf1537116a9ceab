//! Which variables a script has certainly set at a point: on every path that leads there. The value
//! of any other variable comes from the environment and is unknown.

use std::collections::HashSet;

/// What is certain at a point.
#[derive(Clone)]
pub(super) struct Scope {
    /// Nested commands, outermost first.
    levels: Vec<Level>,
}

#[derive(Clone, Default)]
struct Level {
    /// Set for the rest of the level.
    certain: HashSet<String>,
    /// The variable of a loop, in the loop.
    held: HashSet<String>,
    /// Set in the current list of `&&` and `||`; true if the assignment comes before all of them.
    chain: Vec<(String, bool)>,
    /// The length of the chain at the beginning of its last pipeline.
    before: usize,
    piped: bool,
    /// The list had an `||` before: `a || b && c` runs `c` without `b`.
    after_or: bool,
    /// Only the first command of the list was parsed.
    first: bool,
    /// For `if`: the variables that all finished branches set.
    branches: Option<HashSet<String>>,
    has_else: bool,
}

/// The token between two commands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Between {
    End,
    And,
    Or,
    Pipe,
    Background,
}

impl Scope {
    pub(super) fn new() -> Self {
        Scope { levels: vec![Level { first: true, ..Level::default() }] }
    }

    /// Opens a compound command or a subshell.
    pub(super) fn open(&mut self) {
        self.levels.push(Level { first: true, ..Level::default() });
    }

    /// Handles `then`: assignments in the condition do not count.
    pub(super) fn begin_branch(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            *level = Level { first: true, branches: level.branches.take(), ..Level::default() };
        }
    }

    /// Handles `elif`, `else` and `fi`: a branch has ended.
    fn end_branch(&mut self) {
        let Some(level) = self.levels.last_mut() else { return };
        let set = std::mem::take(&mut level.certain);
        level.branches = Some(match level.branches.take() {
            Some(others) => others.intersection(&set).cloned().collect(),
            None => set,
        });
    }

    pub(super) fn another_branch(&mut self) {
        self.end_branch();
        self.begin_branch();
    }

    pub(super) fn last_branch(&mut self) {
        self.another_branch();
        if let Some(level) = self.levels.last_mut() {
            level.has_else = true;
        }
    }

    /// Closes the innermost level. Variables that every branch of an `if` sets are set after it.
    pub(super) fn close(&mut self) {
        if self.levels.len() < 2 {
            return;
        }
        self.end_branch();
        let level = self.levels.pop().unwrap_or_default();
        if level.has_else {
            for name in level.branches.into_iter().flatten() {
                self.set(&name);
            }
        }
    }

    /// Notes that a command of its own sets the variable.
    pub(super) fn set(&mut self, name: &str) {
        if let Some(level) = self.levels.last_mut().filter(|level| !level.piped && !level.after_or)
        {
            level.chain.push((name.to_owned(), level.first));
        }
    }

    /// Forgets all assignments; the variable of a loop stays set in it.
    pub(super) fn forget(&mut self) {
        for level in &mut self.levels {
            level.certain.clear();
            level.chain.clear();
            level.before = 0;
            if let Some(branches) = &mut level.branches {
                branches.clear();
            }
        }
    }

    /// Notes that the variable is set for the rest of the level, like the variable of a loop.
    pub(super) fn hold(&mut self, name: &str) {
        if let Some(level) = self.levels.last_mut() {
            level.held.insert(name.to_owned());
        }
    }

    pub(super) fn between(&mut self, between: Between) {
        let Some(level) = self.levels.last_mut() else { return };
        match between {
            Between::End | Between::Background => {
                let kept = level.chain.drain(..).filter(|(_, first)| *first);
                match between {
                    Between::End => level.certain.extend(kept.map(|(name, _)| name)),
                    _ => drop(kept),
                }
            }
            Between::Or => level.chain.retain(|(_, first)| *first),
            Between::Pipe => level.chain.truncate(level.before),
            Between::And => {}
        }
        level.before = if between == Between::Pipe { level.before } else { level.chain.len() };
        level.piped = between == Between::Pipe;
        level.after_or = match between {
            Between::Or => true,
            Between::End | Between::Background => false,
            Between::And | Between::Pipe => level.after_or,
        };
        level.first = matches!(between, Between::End | Between::Background);
    }

    /// True when the variable is certainly set here.
    pub(super) fn has(&self, name: &str) -> bool {
        let in_chain = |level: &Level| level.chain.iter().any(|(known, _)| known == name);
        let holds = |level: &Level| level.certain.contains(name) || level.held.contains(name);
        self.levels.iter().any(|level| holds(level) || in_chain(level))
    }
}
