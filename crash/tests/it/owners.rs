//! The checker of owners must be able to fail.

use posse_crash::{Promise, Taken, Write, check_owners};

fn write(kind: &str, by: &str, owner: Option<&str>) -> Write {
    Write {
        run: "run-1".to_owned(),
        seq: 3,
        kind: kind.to_owned(),
        by: format!("posse {by}"),
        is_new: false,
        owner: owner.map(str::to_owned),
    }
}

fn taken(by: &str, was: Option<&str>, becomes: Option<&str>, epochs: (i64, i64)) -> Taken {
    Taken {
        run: "run-1".to_owned(),
        by: format!("posse {by}"),
        was: was.map(str::to_owned),
        becomes: becomes.map(str::to_owned),
        epochs,
        lives: false,
    }
}

#[track_caller]
fn check(writes: &[Write], taken: &[Taken], expected: usize) {
    let found = check_owners(writes, taken);
    assert_eq!(found.len(), expected, "{found:?}");
    assert!(found.iter().all(|violation| violation.promise == Promise::OwnersAlone));
}

#[test]
fn a_step_of_somebody_else_is_found() {
    check(&[write("tool_started", "a", Some("a"))], &[], 0);
    for kind in ["model_called", "model_replied", "tool_started", "run_finished"] {
        check(&[write(kind, "a", Some("b"))], &[], 1);
        check(&[write(kind, "a", None)], &[], 1);
    }
    // Anybody may send a message, and a child tells its result.
    check(&[write("message_received", "a", Some("b"))], &[], 0);
    check(&[write("tool_finished", "a", None)], &[], 0);
    // A new run begins with its first step.
    check(&[Write { is_new: true, ..write("model_called", "a", None) }], &[], 0);
}

#[test]
fn a_run_that_is_taken_from_a_living_owner_is_found() {
    let given_back = taken("a", Some("a"), None, (1, 1));
    let claimed = taken("b", None, Some("b"), (1, 2));
    check(&[], &[given_back.clone(), claimed], 0);
    // Of a dead owner, anybody may take it.
    check(&[], &[taken("b", Some("a"), None, (1, 1))], 0);
    check(&[], &[Taken { lives: true, ..taken("b", Some("a"), None, (1, 1)) }], 1);
    check(&[], &[Taken { lives: true, ..given_back }], 0);
}

#[test]
fn a_claim_without_a_new_epoch_or_for_somebody_else_is_found() {
    check(&[], &[taken("b", None, Some("b"), (2, 2))], 1);
    check(&[], &[taken("b", None, Some("c"), (2, 3))], 1);
    check(&[], &[taken("b", Some("b"), None, (3, 2))], 1);
}
