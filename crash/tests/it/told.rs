//! The checker of announcements must be able to fail: every promise about them, broken.

use crate::tree::{Log, block, called, cancel, check, finished, root_started, started};
use posse_crash::{Asked, Promise};
use serde_json::{Value, json};

fn said(text: &str) -> Value {
    let message = json!({"parts": [{"type": "text", "text": text}]});
    json!({"type": "message_received", "from": "user", "message": message})
}

/// A reply that has seen everything.
fn replied() -> Value {
    json!({"type": "model_replied", "seen": 99, "message": {"parts": []}})
}

fn child(run: &str, announce: &str) -> Value {
    json!({"type": "child_started", "run": run, "announce": announce})
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

/// Three runs that completed; the lead and the leaf in the background.
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
                (1, root_started()),
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
                (4, started("root", ("announce", "steer"), &["root"])),
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
                (6, started("lead", ("announce", "collect"), &["root", "lead"])),
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

    /// The same, but the leaf is `silent`.
    fn silent() -> Self {
        let mut tree = Tree::good();
        tree.lead[4].1 = child("leaf", "silent");
        tree.lead.remove(5);
        tree.lead.push((50, told("leaf", "silent", "completed")));
        tree.leaf[0].1 = started("lead", ("announce", "silent"), &["root", "lead"]);
        tree.leaf[4].0 = 50;
        tree.asked[3].told.clear();
        tree
    }

    /// The same as the first, but the lead fails before the leaf has ended.
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
        check([self.root, self.lead, self.leaf], self.asked, expected);
    }
}

/// A request of the run with this prompt, which reports these ends.
fn asked(prompt: &str, told: &[&str]) -> Asked {
    let texts = [prompt.to_owned(), told.iter().map(|run| block(run, "completed")).collect()];
    Asked::of(prompt.to_owned(), &texts)
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
    // The run that waits for it is also stuck.
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
    // To the root, though the parent still worked.
    let mut tree = Tree::broken();
    tree.lead.last_mut().unwrap().0 = 36;
    tree.root[5].0 = 36;
    tree.root.swap(5, 6);
    tree.check(&[Promise::AnnouncedOnce]);
    // Kept, though the root still worked.
    let mut tree = Tree::broken();
    tree.root.remove(6);
    tree.lead.push((35, marked(told("leaf", "collect", "completed"), "kept")));
    tree.asked[0].told.pop();
    tree.check(&[Promise::AnnouncedOnce]);
    // The announcement of a run that was stopped with its parent is kept there.
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
    // And the kept announcement could have gone to the root.
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
