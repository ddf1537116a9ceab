//! The checker of trees must be able to fail: every promise about parents and children, broken.

use crate::tree::{Log, block, called, cancel, check, finished, root_started, started};
use posse_crash::Promise;
use serde_json::{Value, json};

fn said() -> Value {
    json!({"type": "message_received", "from": "user", "message": {"parts": []}})
}

fn said_by(run: &str, call: &str) -> Value {
    let from = json!({"run": {"run": run, "call": call}});
    json!({"type": "message_received", "from": from, "message": {"parts": []}})
}

/// A reply that has seen everything, and calls `Task` by these ids.
fn replied(calls: &[&str]) -> Value {
    let call = |id: &&str| json!({"type": "tool_call", "id": id, "name": "Task", "input": {}});
    let parts: Vec<Value> = calls.iter().map(call).collect();
    json!({"type": "model_replied", "seen": 99, "message": {"parts": parts}})
}

fn task_started(call: &str) -> Value {
    json!({"type": "tool_started", "call": call, "tool": "Task", "repeatable": true})
}

fn child(run: &str, call: &str) -> Value {
    json!({"type": "child_started", "run": run, "call": call})
}

fn child_again(run: &str, call: &str) -> Value {
    json!({"type": "child_started", "run": run, "call": call, "resumed": true})
}

fn told(call: &str, run: &str, outcome: &str) -> Value {
    let output = json!({"parts": [{"type": "text", "text": block(run, outcome)}]});
    json!({"type": "tool_finished", "call": call, "ending": "returned", "output": output})
}

fn stopped(call: &str) -> Value {
    let output = json!({"parts": [{"type": "text", "text": "cancelled"}], "is_error": true});
    json!({"type": "tool_finished", "call": call, "ending": "stopped", "output": output})
}

/// Three runs that completed; each parent waits for its child.
struct Tree {
    root: Log,
    lead: Log,
    leaf: Log,
}

impl Tree {
    fn good() -> Self {
        Tree {
            root: vec![
                (1, root_started()),
                (1, said()),
                (2, called()),
                (3, replied(&["c1"])),
                (3, task_started("c1")),
                (4, child("lead", "c1")),
                (40, told("c1", "lead", "completed")),
                (41, called()),
                (42, replied(&[])),
                (43, finished("completed")),
            ],
            lead: vec![
                (4, started("root", ("call", "c1"), &["root"])),
                (4, said()),
                (4, called()),
                (5, replied(&["c1"])),
                (5, task_started("c1")),
                (6, child("leaf", "c1")),
                (20, told("c1", "leaf", "completed")),
                (21, called()),
                (22, replied(&[])),
                (40, finished("completed")),
            ],
            leaf: vec![
                (6, started("lead", ("call", "c1"), &["root", "lead"])),
                (6, said()),
                (6, called()),
                (7, replied(&[])),
                (20, finished("completed")),
            ],
        }
    }

    /// The same, but the root is cancelled at 10, and the runs below it then too.
    fn cancelled() -> Self {
        let mut tree = Tree::good();
        tree.root.truncate(6);
        tree.root.extend([(10, cancel()), (14, stopped("c1")), (14, finished("cancelled"))]);
        tree.lead.truncate(6);
        tree.lead.extend([(11, cancel()), (13, stopped("c1")), (15, finished("cancelled"))]);
        tree.leaf.truncate(3);
        tree.leaf.extend([(12, cancel()), (16, finished("cancelled"))]);
        tree
    }

    /// The same as the first, but the root resumes `lead` after its end.
    fn resumed() -> Self {
        let mut tree = Tree::good();
        tree.root.truncate(8);
        tree.root.extend([
            (42, replied(&["c2"])),
            (42, task_started("c2")),
            (50, child_again("lead", "c2")),
            (53, told("c2", "lead", "completed")),
            (54, called()),
            (55, replied(&[])),
            (56, finished("completed")),
        ]);
        tree.lead.extend([
            (50, said_by("root", "c2")),
            (51, called()),
            (52, replied(&[])),
            (53, finished("completed")),
        ]);
        tree
    }

    #[track_caller]
    fn check(self, expected: &[Promise]) {
        check([self.root, self.lead, self.leaf], Vec::new(), expected);
    }
}

#[test]
fn good_trees_break_no_promise() {
    Tree::good().check(&[]);
    Tree::cancelled().check(&[]);
    Tree::resumed().check(&[]);
}

#[test]
fn a_call_that_is_made_again_finds_its_child_even_if_that_has_ended_meanwhile() {
    let mut tree = Tree::good();
    tree.root.insert(6, (7, task_started("c1")));
    tree.lead.insert(7, (20, task_started("c1")));
    tree.check(&[]);
    let mut tree = Tree::good();
    tree.root.remove(4);
    tree.root.insert(6, (40, task_started("c1")));
    tree.check(&[Promise::IntentFirst, Promise::AnsweredOnce]);
}

#[test]
fn a_child_that_is_gone_is_found() {
    let mut tree = Tree::good();
    tree.leaf.clear();
    tree.check(&[Promise::KinAgree, Promise::ToldOnce]);
}

#[test]
fn a_child_that_its_parent_does_not_know_is_found() {
    let mut tree = Tree::good();
    tree.lead.remove(5);
    tree.check(&[Promise::KinAgree]);
}

#[test]
fn a_child_of_another_parent_is_found() {
    let mut tree = Tree::good();
    tree.leaf[0].1["parent"]["run"] = "root".into();
    // Neither parent knows it, and its ancestors are not those of a child of the root.
    tree.check(&[Promise::KinAgree, Promise::ToldOnce, Promise::KinAgree, Promise::KinAgree]);
}

#[test]
fn a_child_of_another_call_is_found() {
    let mut tree = Tree::good();
    tree.leaf[0].1["parent"]["call"] = "c9".into();
    tree.check(&[Promise::KinAgree, Promise::ToldOnce, Promise::KinAgree]);
}

#[test]
fn a_child_below_the_wrong_runs_is_found() {
    let mut tree = Tree::good();
    tree.leaf[0].1["parent"]["ancestors"] = json!(["lead"]);
    tree.check(&[Promise::KinAgree]);
}

#[test]
fn two_children_of_one_call_are_found() {
    let mut tree = Tree::good();
    tree.lead.insert(6, (6, child("leaf", "c1")));
    tree.check(&[Promise::KinAgree, Promise::KinAgree]);
}

#[test]
fn a_child_that_was_set_to_work_twice_by_one_call_is_found() {
    let mut tree = Tree::resumed();
    tree.root.insert(11, (50, child_again("lead", "c2")));
    tree.check(&[Promise::KinAgree, Promise::KinAgree]);
}

#[test]
fn a_child_that_was_set_to_work_without_a_note_is_found() {
    let mut tree = Tree::resumed();
    tree.root.remove(10);
    tree.check(&[Promise::KinAgree]);
}

#[test]
fn a_note_of_a_child_that_was_not_set_to_work_is_found() {
    let mut tree = Tree::resumed();
    tree.lead.truncate(10);
    tree.check(&[Promise::KinAgree, Promise::ToldOnce]);
}

#[test]
fn a_result_that_never_came_is_a_stuck_parent() {
    let mut tree = Tree::good();
    tree.root.truncate(6);
    tree.check(&[Promise::NoRunStuck, Promise::AnsweredOnce, Promise::ToldOnce]);
}

#[test]
fn a_result_that_came_twice_is_found() {
    let mut tree = Tree::good();
    tree.root.insert(7, (40, told("c1", "lead", "completed")));
    tree.check(&[Promise::AnsweredOnce, Promise::ToldOnce]);
}

#[test]
fn an_end_that_is_told_neither_to_a_parent_that_waits_nor_by_its_own_name_is_found() {
    let mut tree = Tree::good();
    tree.lead[6].1 = stopped("c1");
    tree.check(&[Promise::ToldOnce]);
    let mut tree = Tree::good();
    tree.lead[6].1 = told("c1", "lead", "completed");
    tree.check(&[Promise::ToldOnce, Promise::ToldOnce]);
}

#[test]
fn an_end_that_was_told_otherwise_than_it_came_is_found() {
    let mut tree = Tree::good();
    tree.lead[6].1 = told("c1", "leaf", "failed");
    tree.check(&[Promise::ToldOnce]);
}

#[test]
fn an_end_that_was_told_before_it_came_is_found() {
    let mut tree = Tree::good();
    tree.leaf[4].0 = 21;
    tree.check(&[Promise::ToldOnce]);
}

#[test]
fn the_second_end_of_a_run_is_told_to_the_second_call() {
    let mut tree = Tree::resumed();
    tree.root[11].1 = stopped("c2");
    tree.check(&[Promise::ToldOnce]);
    let mut tree = Tree::resumed();
    tree.root[11].1 = told("c2", "leaf", "completed");
    tree.check(&[Promise::ToldOnce, Promise::ToldOnce]);
}

#[test]
fn a_parent_that_was_cancelled_is_told_or_not_but_not_twice() {
    let mut tree = Tree::cancelled();
    tree.lead[7] = (13, told("c1", "leaf", "cancelled"));
    tree.leaf[4].0 = 13;
    tree.check(&[]);
    let mut tree = Tree::cancelled();
    tree.lead.insert(7, (13, told("c1", "leaf", "cancelled")));
    tree.leaf[4].0 = 13;
    tree.check(&[Promise::AnsweredOnce]);
}

#[test]
fn a_child_that_starts_after_its_parent_was_told_to_stop_is_found() {
    let mut tree = Tree::cancelled();
    tree.root.swap(5, 6);
    tree.root[5].0 = 3;
    tree.check(&[Promise::StopsBelow, Promise::StopsBelow, Promise::StopsBelow]);
}

#[test]
fn what_starts_below_a_run_that_was_told_to_stop_is_found() {
    let mut tree = Tree::cancelled();
    tree.root[6].0 = 5;
    tree.check(&[Promise::StopsBelow]);
}

#[test]
fn what_runs_on_below_a_run_that_was_cancelled_is_found() {
    let mut tree = Tree::cancelled();
    tree.leaf.truncate(3);
    tree.leaf.extend([(100, replied(&[])), (400, finished("completed"))]);
    // Neither the root's end nor its parent's was heard of.
    tree.check(&[Promise::StopsBelow, Promise::StopsBelow]);
    let mut tree = Tree::cancelled();
    tree.leaf.truncate(3);
    tree.leaf.extend([(11, replied(&[])), (12, finished("completed"))]);
    tree.check(&[]);
}

#[test]
fn a_run_that_goes_on_although_it_was_told_to_stop_is_found() {
    let mut tree = Tree::cancelled();
    tree.leaf.insert(4, (13, called()));
    tree.leaf.insert(5, (14, called()));
    tree.check(&[Promise::StopsBelow]);
}

#[test]
fn a_run_that_never_heard_of_its_end_is_found() {
    let mut tree = Tree::cancelled();
    tree.leaf.truncate(3);
    tree.check(&[Promise::NoRunStuck]);
}
