//! The checker of announcements must be able to fail: every promise about them, broken.

use posse_crash::{Asked, Evidence, Promise, RunLog, check as find_violations};
use serde_json::{Value, json};

/// Events with the times at which they were stored.
type Log = Vec<(u64, Value)>;

fn started(parent: Option<(&str, &str)>, ancestors: &[&str]) -> Value {
    match parent {
        None => json!({"type": "run_started"}),
        Some((run, announce)) => {
            let parent = json!({"run": run, "announce": announce, "ancestors": ancestors});
            json!({"type": "run_started", "parent": parent})
        }
    }
}

fn said(text: &str) -> Value {
    let message = json!({"parts": [{"type": "text", "text": text}]});
    json!({"type": "message_received", "from": "user", "message": message})
}

fn called() -> Value {
    json!({"type": "model_called"})
}

/// A reply that has seen everything.
fn replied() -> Value {
    json!({"type": "model_replied", "seen": 99, "message": {"parts": []}})
}

fn child(run: &str, announce: &str) -> Value {
    json!({"type": "child_started", "run": run, "announce": announce})
}

fn block(run: &str, outcome: &str) -> String {
    format!("<task_result id=\"x\" run=\"{run}\" agent=\"a\" outcome=\"{outcome}\">\nI")
}

fn told(run: &str, announce: &str, outcome: &str) -> Value {
    let message = json!({"parts": [{"type": "text", "text": block(run, outcome)}]});
    let from = json!({"child": {"run": run, "announce": announce}});
    json!({"type": "message_received", "from": from, "message": message})
}

fn marked(mut told: Value, mark: &str) -> Value {
    told["from"]["child"][mark] = true.into();
    told
}

fn cancel() -> Value {
    json!({"type": "cancel_requested", "scope": "run"})
}

fn finished(outcome: &str) -> Value {
    json!({"type": "run_finished", "outcome": {"kind": outcome}})
}

/// A root, a child of it in the background, and a child of that, each of which ended well.
struct Tree {
    root: Log,
    lead: Log,
    leaf: Log,
    asked: Vec<Asked>,
}

impl Tree {
    fn good() -> Self {
        Tree {
            root: vec![
                (1, started(None, &[])),
                (1, said("top")),
                (2, called()),
                (3, replied()),
                (4, child("lead", "steer")),
                (40, told("lead", "steer", "completed")),
                (41, called()),
                (42, replied()),
                (43, finished("completed")),
            ],
            lead: vec![
                (4, started(Some(("root", "steer")), &["root"])),
                (4, said("middle")),
                (4, called()),
                (5, replied()),
                (6, child("leaf", "collect")),
                (20, told("leaf", "collect", "completed")),
                (21, called()),
                (22, replied()),
                (40, finished("completed")),
            ],
            leaf: vec![
                (6, started(Some(("lead", "collect")), &["root", "lead"])),
                (6, said("bottom")),
                (6, called()),
                (7, replied()),
                (20, finished("completed")),
            ],
            asked: vec![
                asked("top", &[]),
                asked("middle", &[]),
                asked("bottom", &[]),
                asked("middle", &["leaf"]),
                asked("top", &["lead"]),
            ],
        }
    }

    /// The same, but nobody is to be told of the leaf.
    fn silent() -> Self {
        let mut tree = Tree::good();
        tree.lead[4].1 = child("leaf", "silent");
        tree.lead.remove(5);
        tree.lead.push((50, told("leaf", "silent", "completed")));
        tree.leaf[0].1 = started(Some(("lead", "silent")), &["root", "lead"]);
        tree.leaf[4].0 = 50;
        tree.asked[3].told.clear();
        tree
    }

    /// The same as the first, but the middle one fails before the leaf has ended.
    fn broken() -> Self {
        let mut tree = Tree::good();
        tree.lead.truncate(5);
        tree.lead[1].1 = said("middle, which cannot be done");
        tree.lead.extend([(21, called()), (22, replied()), (30, finished("failed"))]);
        tree.leaf[4].0 = 35;
        tree.root[5] = (30, told("lead", "steer", "failed"));
        let inherited = marked(told("leaf", "followup", "completed"), "inherited");
        tree.root.insert(6, (35, inherited));
        tree.asked = vec![asked("top", &["lead", "leaf"])];
        tree
    }

    #[track_caller]
    fn check(self, expected: &[Promise]) {
        let logs = [("root", self.root), ("lead", self.lead), ("leaf", self.leaf)];
        let logs = logs
            .into_iter()
            .map(|(run, log)| RunLog { run: run.to_owned(), records: records(run, log) })
            .collect();
        let found = find_violations(&Evidence {
            printed: Vec::new(),
            expected_runs: 3..=3,
            logs,
            effects: Vec::new(),
            messages: Vec::new(),
            requests: 0,
            asked: self.asked,
        });
        let promises: Vec<Promise> = found.iter().map(|violation| violation.promise).collect();
        assert_eq!(promises, expected, "{found:#?}");
    }
}

/// A request of whom this was said to, which tells of these ends.
fn asked(prompt: &str, told: &[&str]) -> Asked {
    let texts = [prompt.to_owned(), told.iter().map(|run| block(run, "completed")).collect()];
    Asked::of(prompt.to_owned(), &texts)
}

fn records(run: &str, log: Log) -> Vec<Value> {
    let numbered = log.into_iter().zip(1..);
    numbered
        .map(|((at, event), seq)| json!({"run": run, "seq": seq, "at": at, "event": event}))
        .collect()
}

#[test]
fn good_announcements_break_no_promise() {
    Tree::good().check(&[]);
    Tree::silent().check(&[]);
    Tree::broken().check(&[]);
}

#[test]
fn an_end_that_was_never_announced_is_found() {
    let mut tree = Tree::silent();
    tree.lead.pop();
    tree.check(&[Promise::AnnouncedOnce]);
    // Whoever waits for it is stuck besides.
    let mut tree = Tree::good();
    tree.root.truncate(5);
    tree.check(&[Promise::NoRunStuck, Promise::NoRunStuck, Promise::AnnouncedOnce]);
}

#[test]
fn an_end_that_was_announced_twice_is_found() {
    let mut tree = Tree::good();
    tree.root.insert(6, (40, told("lead", "steer", "completed")));
    tree.asked[4].told.push("lead".to_owned());
    tree.check(&[Promise::AnnouncedOnce]);
    // In another log too.
    let mut tree = Tree::good();
    let inherited = marked(told("leaf", "followup", "completed"), "inherited");
    tree.root.insert(5, (20, inherited));
    tree.asked[4].told.push("leaf".to_owned());
    tree.check(&[Promise::AnnouncedOnce]);
}

#[test]
fn an_announcement_of_what_has_not_ended_is_found() {
    let mut tree = Tree::silent();
    tree.leaf.pop();
    tree.check(&[Promise::NoRunStuck, Promise::AnnouncedOnce]);
}

#[test]
fn an_announcement_that_was_not_stored_with_the_end_is_found() {
    let mut tree = Tree::good();
    tree.root[5].0 = 41;
    tree.check(&[Promise::AnnouncedOnce]);
}

#[test]
fn an_announcement_in_another_way_than_asked_for_is_found() {
    let mut tree = Tree::good();
    tree.root[5].1 = told("lead", "followup", "completed");
    tree.check(&[Promise::AnnouncedOnce]);
    let mut tree = Tree::good();
    tree.root[5].1 = told("lead", "steer", "failed");
    tree.check(&[Promise::AnnouncedOnce]);
}

#[test]
fn an_announcement_to_the_wrong_one_is_found() {
    // To the one above, though the parent was there.
    let mut tree = Tree::broken();
    tree.lead.last_mut().unwrap().0 = 36;
    tree.root[5].0 = 36;
    tree.root.swap(5, 6);
    tree.check(&[Promise::AnnouncedOnce]);
    // Kept, though one above was there.
    let mut tree = Tree::broken();
    tree.root.remove(6);
    tree.lead.push((35, marked(told("leaf", "collect", "completed"), "kept")));
    tree.asked[0].told.pop();
    tree.check(&[Promise::AnnouncedOnce]);
    // What was stopped with its parent is kept there.
    let mut tree = Tree::broken();
    tree.root.remove(6);
    tree.lead.push((35, marked(told("leaf", "collect", "cancelled"), "kept")));
    tree.leaf.insert(4, (30, cancel()));
    tree.leaf[5].1 = finished("cancelled");
    tree.asked[0].told.pop();
    tree.check(&[]);
}

#[test]
fn what_is_told_to_a_run_that_has_ended_is_found() {
    let mut tree = Tree::broken();
    tree.root.remove(6);
    tree.lead.push((35, told("leaf", "collect", "completed")));
    tree.asked[0].told.pop();
    tree.check(&[Promise::NothingAfterEnd, Promise::NoRunStuck]);
}

#[test]
fn a_run_that_is_done_before_those_it_waits_for_is_found() {
    let mut tree = Tree::good();
    let announcement = tree.lead.remove(5);
    tree.lead.push((announcement.0, marked(announcement.1, "kept")));
    tree.lead[7].0 = 15;
    tree.root[5].0 = 15;
    tree.asked[3].told.clear();
    // And what was kept could have been told to the one above.
    tree.check(&[Promise::AwaitsAll, Promise::AnnouncedOnce]);
}

#[test]
fn what_the_model_was_never_told_or_twice_is_found() {
    let mut tree = Tree::good();
    tree.asked[4].told.clear();
    tree.check(&[Promise::KnownOnce]);
    let mut tree = Tree::good();
    tree.asked[4].told.push("lead".to_owned());
    tree.check(&[Promise::KnownOnce]);
    let mut tree = Tree::silent();
    tree.asked[3].told.push("leaf".to_owned());
    tree.check(&[Promise::KnownOnce]);
}
