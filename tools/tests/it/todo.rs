//! TodoWrite.

use crate::fixture::Fixture;
use posse_tools::todo::{Status, Todo, todos};
use serde_json::{Value, json};

#[track_caller]
fn check(list: Value, expected: &str) {
    let input = json!({"todos": list});
    assert_eq!(Fixture::new().ok("TodoWrite", input.clone()), expected);
    let lines: Vec<String> = todos(&input).unwrap().iter().map(Todo::to_string).collect();
    assert_eq!(lines, expected.lines().filter(|line| is_item(line)).collect::<Vec<_>>());
}

fn is_item(line: &str) -> bool {
    ["[ ] ", "[>] ", "[x] "].iter().any(|mark| line.starts_with(mark))
}

/// Expects an error that holds each of `parts`, and that nobody takes the input for a list.
#[track_caller]
fn check_refused(input: Value, parts: &[&str]) {
    assert_eq!(todos(&input), None);
    Fixture::new().refused("TodoWrite", input, parts);
}

fn item(content: &str, status: &str) -> Value {
    json!({"content": content, "status": status})
}

#[test]
fn the_list_comes_back_with_marks_and_a_count() {
    check(
        json!([item("look", "completed"), item("change", "in_progress"), item("test", "pending")]),
        "1 of 3 completed:\n[x] look\n[>] change\n[ ] test\n",
    );
    check(json!([]), "The todo list is empty.\n");
}

#[test]
fn other_spellings_of_a_status_are_understood() {
    let spelled = ["done", "in progress", "In-Progress", " Pending ", "COMPLETED"];
    let list: Vec<Value> = spelled.iter().map(|status| item("a", status)).collect();
    check(
        json!(list),
        "2 of 5 completed:\n[x] a\n[>] a\n[>] a\n[ ] a\n[x] a\n\
         [2 are in progress; better finish one before the next]\n",
    );
}

#[test]
fn what_else_a_model_says_of_an_item_does_no_harm() {
    let list = json!([{
        "id": "1", "priority": "high", "content": "run tests", "status": "in_progress",
        "activeForm": "Running tests",
    }]);
    check(list.clone(), "0 of 1 completed:\n[>] run tests\n");
    let expected = Todo {
        content: "run tests".to_owned(),
        status: Status::InProgress,
        active_form: Some("Running tests".to_owned()),
    };
    assert_eq!(todos(&json!({"todos": list})), Some(vec![expected]));
}

#[test]
fn an_item_cannot_pass_for_several() {
    let list = json!([item(" first\n[x] second\r\n\t third ", "pending")]);
    check(list, "0 of 1 completed:\n[ ] first [x] second third\n");
}

#[test]
fn what_is_wrong_is_named_with_its_item() {
    let with = |item: Value| json!({"todos": [{"content": "fine", "status": "done"}, item]});
    let stays = "The list stays as it was.";
    check_refused(with(json!("write")), &["item 2 must be an object with `content`", stays]);
    check_refused(with(json!({"status": "done"})), &["item 2 needs `content`", stays]);
    check_refused(with(item("  ", "done")), &["item 2 needs `content`"]);
    check_refused(with(json!({"content": "a"})), &["item 2 needs `status`"]);
    check_refused(with(json!({"content": 7, "status": "done"})), &["`content` of item 2 must be"]);
    check_refused(with(item("a", "blocked")), &["item 2", "\"blocked\"", "pending, in_progress"]);
    let active = json!({"content": "a", "status": "done", "activeForm": []});
    check_refused(with(active), &["`activeForm` of item 2 must be a text"]);
    check_refused(json!({}), &["TodoWrite needs the argument `todos`: a list"]);
    check_refused(json!({"todos": "a, b"}), &["`todos` must be a list, not the text \"a, b\""]);
}

#[test]
fn a_list_has_its_limits() {
    let items = |count: usize| vec![item("a", "pending"); count];
    assert_eq!(todos(&json!({"todos": items(50)})).unwrap().len(), 50);
    check_refused(json!({"todos": items(51)}), &["51 items are too many", "50"]);
    let long = |count: usize| json!({"todos": [item(&"é".repeat(count), "pending")]});
    assert_eq!(todos(&long(500)).unwrap().len(), 1);
    check_refused(long(501), &["`content` of item 1 has 501 characters", "500"]);
}
