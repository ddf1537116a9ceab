//! The grid: behaviours × faults × wires, through the real binary.
//!
//! Each cell is one `posse run` against a fake model whose replies go wrong in one way. What a
//! cell must come to is said by the fault itself, the same for every wire but for what a wire
//! does not have. Each wire prints its counts, once for people and once for programs.

mod behaviour;
mod cell;
mod verdict;

use behaviour::Behaviour;
use cell::{Cell, Hit};
use futures_util::StreamExt;
use posse_testkit::{Fault, Needs, Wire};
use std::time::Instant;

/// Runs at once. Most of their time they wait, for a provider that stalls or says when to return.
const AT_ONCE: usize = 10;

/// The cells of a wire: each fault hits the first request of a run with a tool call, and every
/// request; and, one after the other, the first or last request of a run of each other kind.
fn cells(wire: Wire) -> Vec<Cell> {
    let mut cells = Vec::new();
    let faults = Fault::all().filter(|fault| fault.concerns(wire));
    for (number, fault) in faults.enumerate() {
        let cell = |behaviour, hit| Cell { wire, fault, behaviour, hit };
        let least = match fault.needs() {
            Needs::TwoCalls => Behaviour::SeveralCalls,
            _ => Behaviour::OneCall,
        };
        cells.push(cell(least, Hit::First));
        let every = match fault.needs() {
            Needs::Nothing | Needs::Text => Behaviour::Text,
            _ => least,
        };
        cells.push(cell(every, Hit::Every));
        let calls = matches!(fault.needs(), Needs::Call | Needs::TwoCalls);
        let other = match number % 4 {
            0 if !calls => (Behaviour::Text, Hit::First),
            // A fault that comes before the request is read cannot tell the last one.
            1 if !calls && !fault.is_unread() => (Behaviour::OneCall, Hit::Last),
            2 => (Behaviour::SeveralCalls, Hit::First),
            _ if fault.needs() != Needs::TwoCalls => (Behaviour::Thinking, Hit::First),
            _ => (Behaviour::SeveralCalls, Hit::Every),
        };
        cells.push(cell(other.0, other.1));
    }
    // What waits for long begins first, so that the rest is done meanwhile.
    cells.sort_by_key(|cell| !cell.is_slow());
    cells
}

#[expect(clippy::print_stdout, reason = "the counts are what a grid is for")]
async fn check(wire: Wire) {
    let began = Instant::now();
    let cells = cells(wire);
    let total = cells.len();
    let outcomes = futures_util::stream::iter(cells)
        .map(|cell| async move { (cell.name(), cell.play().await) })
        .buffer_unordered(AT_ONCE);
    let outcomes: Vec<(String, Result<(), String>)> = outcomes.collect().await;
    let failed: Vec<String> = outcomes
        .into_iter()
        .filter_map(|(name, outcome)| Some(format!("{name}: {}", outcome.err()?)))
        .collect();
    let (name, seconds) = (wire.name(), began.elapsed().as_secs_f64());
    let passed = total - failed.len();
    println!("grid of {name}: {passed} of {total} cells passed in {seconds:.1} s");
    println!(
        "{}",
        serde_json::json!({"grid": name, "passed": passed, "total": total, "seconds": seconds})
    );
    assert!(failed.is_empty(), "{} cells failed:\n{}", failed.len(), failed.join("\n"));
}

/// Makes a test of each wire, so that they can be run at the same time.
macro_rules! grids {
    ($($test:ident: $wire:ident;)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                check(Wire::$wire).await;
            }
        )+

        #[test]
        fn every_wire_has_a_grid() {
            let tested = [$(Wire::$wire),+];
            let left = Wire::ALL.into_iter().find(|wire| !tested.contains(wire));
            assert!(left.is_none(), "{left:?} has no grid");
        }
    };
}

grids! {
    anthropic_survives_every_fault: Anthropic;
    openai_chat_survives_every_fault: OpenAiChat;
    openai_responses_survives_every_fault: OpenAiResponses;
    gemini_survives_every_fault: Gemini;
}
