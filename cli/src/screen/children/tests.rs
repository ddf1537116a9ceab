//! Tests of the lines that a person sees of a tree.

use super::*;
use crate::paint::Paint;
use posse::Seq;
use posse::protocol::Extra;
use serde_json::{Value, json};

const TOP: u128 = 1;

struct Bench {
    children: Children,
    /// The permanent lines.
    told: Vec<String>,
    now: u64,
}

fn look(columns: usize) -> Look {
    Look { paint: Paint { on: false }, columns }
}

impl Bench {
    fn new(kind: OutputKind) -> Self {
        let children = Children::of(RunId::from_u128(TOP), kind);
        Bench { children, told: Vec::new(), now: 1_000_000 }
    }

    fn event(&mut self, run: u128, event: Value) {
        let event = serde_json::from_value(event).unwrap();
        let (run, extra) = (RunId::from_u128(run), Extra::default());
        let record = Record { run, seq: Seq(1), at: self.now, version: 1, event, extra };
        self.told.extend(self.children.observe(&record, look(100)));
    }

    fn start(&mut self, parent: u128, run: u128, agent: &str, label: &str) {
        let child = RunId::from_u128(run);
        self.event(
            parent,
            json!({"type": "child_started", "run": child, "call": format!("call_{run}"),
                   "agent": agent, "label": label}),
        );
    }

    fn work(&mut self, run: u128, tools: usize) {
        self.event(run, json!({"type": "model_called", "reserved": {"input_tokens": 9, "output_tokens": 9, "cost": 9}}));
        self.event(
            run,
            json!({"type": "model_replied", "seen": 1, "message": {"role": "assistant", "parts": []},
                   "stop": "tool_use", "usage": {"input_tokens": 1000, "output_tokens": 200, "cost": 1_200_000},
                   "worked_ms": 1}),
        );
        for tool in 0..tools {
            self.event(
                run,
                json!({"type": "tool_started", "call": format!("{tool}"), "tool": "Read"}),
            );
        }
    }

    fn finish(&mut self, run: u128, outcome: Value) {
        self.event(run, json!({"type": "run_finished", "outcome": outcome, "worked_ms": 1}));
    }

    fn complete(&mut self, run: u128) {
        self.finish(run, json!({"kind": "completed", "output": "o"}));
    }

    #[track_caller]
    fn stands(&self, columns: usize, rows: usize, expected: &str) {
        let lines = self.children.lines(self.now, rows, look(columns));
        // The phase of the spinner does not matter here.
        let still = |line: &String| match line.find(['⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'])
        {
            Some(at) => format!("{}⠋{}", &line[..at], &line[at + '⠋'.len_utf8()..]),
            None => line.clone(),
        };
        let shown: Vec<String> = lines.iter().map(still).collect();
        assert_eq!(shown.join("\n"), expected.trim_matches('\n'));
        assert!(lines.iter().all(|line| crate::terminal::columns(line) <= columns), "{lines:#?}");
    }

    #[track_caller]
    fn has_told(&self, expected: &str) {
        assert_eq!(self.told.join("\n"), expected.trim_matches('\n'));
    }
}

#[test]
fn children_stand_with_what_they_take_and_leave_one_line_each() {
    let mut bench = Bench::new(OutputKind::Live);
    assert_eq!(bench.children.status(), None);
    bench.start(TOP, 2, "explore", "find auth files");
    bench.start(TOP, 3, "plan", "plan the change");
    bench.now += 3_250;
    bench.work(2, 5);
    bench.stands(
        100,
        8,
        "
⠋ [explore] find auth files … 5 tools, 3.2s · 1.2k tokens · $0.0012
○ [plan] plan the change … queued, 3.2s",
    );
    let status = bench.children.status().unwrap();
    assert_eq!(status, "1 running, 1 queued · 5 tools, 1.2k tokens, $0.0012");
    bench.complete(2);
    bench.stands(100, 8, "○ [plan] plan the change … queued, 3.2s");
    bench.work(3, 1);
    bench.finish(3, json!({"kind": "failed", "reason": "the model refused to answer"}));
    bench.start(TOP, 4, "code", "do it");
    let long = "the provider says that what was asked of it cannot be done. ".repeat(2);
    bench.finish(4, json!({"kind": "failed", "reason": long}));
    bench.stands(100, 8, "");
    bench.has_told(
        "
✓ [explore] find auth files · 5 tools, 3.2s, 1.2k tokens, $0.0012
✗ [plan] plan the change · 1 tool, 3.2s, 1.2k tokens, $0.0012 · the model refused to answer
✗ [code] do it · 0 tools, 0ms, 0 tokens, $0
  the provider says that what was asked of it cannot be done. the provider says that what was asked…",
    );
    assert_eq!(bench.children.status(), None);
}

#[test]
fn those_below_stand_indented_and_are_counted_when_they_have_ended() {
    let mut bench = Bench::new(OutputKind::Live);
    bench.start(TOP, 2, "lead", "do all of it");
    bench.work(2, 2);
    bench.start(2, 3, "explore", "one half");
    bench.start(2, 4, "explore", "the other half");
    bench.start(2, 5, "explore", "a third half");
    bench.work(3, 1);
    bench.complete(3);
    bench.work(4, 3);
    bench.finish(4, json!({"kind": "stopped", "limit": "turns"}));
    bench.work(5, 0);
    bench.now += 2_000;
    bench.stands(
        100,
        8,
        "
⠋ [lead] do all of it … 2 tools, 2.0s · 2 of 3 below ended · 1.2k tokens · $0.0012
  ✗ [explore] the other half · 3 tools, 0ms, 1.2k tokens, $0.0012 · stopped at its limit of turns
  ⠋ [explore] a third half … 0 tools, 2.0s · 1.2k tokens · $0.0012",
    );
    bench.finish(5, json!({"kind": "cancelled", "by": "me"}));
    bench.has_told("");
    bench.complete(2);
    bench.has_told(
        "✓ [lead] do all of it · 2 tools, 2.0s, 1.2k tokens, $0.0012 (3 below, 1 failed, 1 cancelled)",
    );
}

#[test]
fn what_does_not_fit_is_left_out_and_nothing_is_wider_than_the_terminal() {
    let mut bench = Bench::new(OutputKind::Live);
    bench.start(TOP, 2, "explore", "find all the files about authentication");
    bench.work(2, 12);
    bench.now += 61_000;
    for (columns, expected) in [
        (
            100,
            "⠋ [explore] find all the files about authentication … 12 tools, 1m01s · 1.2k tokens · $0.0012",
        ),
        (70, "⠋ [explore] find all the fi… 12 tools, 1m01s · 1.2k tokens · $0.0012"),
        (50, "⠋ [explore] find all the files… 12 tools, 1m01s"),
        (30, "⠋ [explore] find all the file…"),
        (20, "⠋ [explo…] find all…"),
    ] {
        bench.stands(columns, 5, expected);
    }
    bench.start(2, 3, "an-agent-with-quite-a-long-name", "日本語の文章を読む");
    for columns in 20..120 {
        let lines = bench.children.lines(bench.now, 5, look(columns));
        let widths: Vec<usize> = lines.iter().map(|line| crate::terminal::columns(line)).collect();
        assert!(widths.iter().all(|width| *width <= columns), "{columns}: {lines:#?}");
    }
}

#[test]
fn hundreds_stay_readable() {
    let mut bench = Bench::new(OutputKind::Live);
    for run in 100..600 {
        bench.start(TOP, run, "worker", &format!("part {run}"));
        bench.now += 1;
    }
    for run in 100..400 {
        bench.work(run, 1);
    }
    for run in 100..200 {
        bench.complete(run);
    }
    bench.finish(200, json!({"kind": "failed", "reason": "no"}));
    bench.start(250, 1000, "helper", "below");
    bench.work(1000, 0);
    bench.finish(1000, json!({"kind": "failed", "reason": "deep"}));
    bench.stands(
        60,
        4,
        "
  ✗ [helper] below · 0 tools, 0ms, 1.2k tokens, $0.0012
⠋ [worker] part 397 … 1 tool, 200ms · 1.2k tokens · $0.0012
⠋ [worker] part 398 … 1 tool, 200ms · 1.2k tokens · $0.0012
⠋ [worker] part 399 … 1 tool, 200ms · 1.2k tokens · $0.0012",
    );
    let status = bench.children.status().unwrap();
    let counts = "199 running, 200 queued, 100 done, 2 failed · 300 tools, ";
    assert!(status.starts_with(counts), "{status}");
    bench.has_told("✗ [worker] part 200 · 1 tool, 400ms, 1.2k tokens, $0.0012 · no");
    bench.now += 60_000;
    for run in 201..600 {
        bench.complete(run);
    }
    let last = bench.told.last().unwrap();
    assert_eq!(last, "✓ 499 more done · 299 tools, 1m00s, 360.0k tokens, $0.36");
    assert_eq!(bench.told.len(), 2);
    bench.start(TOP, 2000, "worker", "later");
    bench.complete(2000);
    assert_eq!(bench.told.len(), 3, "a few are told one by one again");
}

#[test]
fn in_a_pipe_each_run_has_a_line_for_its_start_and_one_for_its_end() {
    let mut bench = Bench::new(OutputKind::Plain);
    bench.start(TOP, 2, "lead", "all");
    bench.start(2, 3, "explore", "a part");
    bench.complete(3);
    bench.complete(2);
    let (lead, part) = (RunId::from_u128(2).short(), RunId::from_u128(3).short());
    bench.has_told(&format!(
        "
○ [lead] all · run {lead}
  ○ [explore] a part · run {part}
  ✓ [explore] a part · 0 tools, 0ms, 0 tokens, $0
✓ [lead] all · 0 tools, 0ms, 0 tokens, $0 (1 below)"
    ));
}

#[test]
fn one_that_goes_on_is_at_work_again_and_ends_again() {
    let mut bench = Bench::new(OutputKind::Live);
    let resumed = json!({"type": "child_started", "run": RunId::from_u128(2), "call": "again",
                         "agent": "explore", "label": "more", "resumed": true});
    bench.start(TOP, 2, "explore", "first");
    bench.complete(2);
    bench.event(TOP, resumed.clone());
    bench.stands(80, 5, "○ [explore] more … queued, 0ms");
    bench.complete(2);
    assert_eq!(bench.told.len(), 2, "{:?}", bench.told);

    // A viewer that starts then learns only of the second end, not of the first.
    let mut late = Bench::new(OutputKind::Live);
    late.event(TOP, resumed);
    late.work(2, 1);
    late.complete(2);
    late.stands(80, 5, "○ [explore] more … queued, 0ms · 1.2k tokens · $0.0012");
    late.event(
        2,
        json!({"type": "message_received", "from": {"run": {"run": RunId::from_u128(TOP), "call": "again"}},
               "message": {"role": "user", "parts": []}}),
    );
    late.work(2, 1);
    late.complete(2);
    late.has_told("✓ [explore] more · 2 tools, 0ms, 2.4k tokens, $0.0024");
}

#[test]
fn a_todo_list_and_a_provider_in_trouble_show_in_the_line() {
    let mut bench = Bench::new(OutputKind::Live);
    bench.start(TOP, 2, "code", "mend it");
    let todo = |content: &str, status: &str| json!({"content": content, "status": status});
    bench.event(
        2,
        json!({"type": "model_replied", "seen": 1, "stop": "tool_use", "worked_ms": 1,
               "usage": {"input_tokens": 1, "output_tokens": 1, "cost": 0},
               "message": {"role": "assistant", "parts": [{"type": "tool_call", "id": "t", "name": "TodoWrite",
                 "input": {"todos": [todo("a", "completed"), todo("b", "in_progress"), todo("c", "pending")]}}]}}),
    );
    bench.event(2, json!({"type": "tool_finished", "call": "t", "output": {"parts": []}}));
    bench.event(2, json!({"type": "model_called", "reserved": {"input_tokens": 1, "output_tokens": 1, "cost": 0}}));
    bench.event(
        2,
        json!({"type": "model_failed", "kind": "other", "reason": "busy", "worked_ms": 1,
               "remedy": {"retry": {"after_ms": 5000}}}),
    );
    bench.stands(
        80,
        5,
        "⠋ [code] mend it … 0 tools, 0ms · tries again in 5 s · todo 1/3 · 2 tokens · $0",
    );
}

#[test]
fn a_call_that_a_child_answers_is_known_until_it_is_answered() {
    let mut bench = Bench::new(OutputKind::Live);
    bench.start(TOP, 2, "explore", "look");
    bench.start(2, 3, "explore", "deeper");
    let call = CallId("call_2".to_owned());
    assert!(bench.children.will_answer(&call) && bench.children.answers(&call));
    assert!(!bench.children.answers(&call), "the next call of that name is another");
    assert!(!bench.children.answers(&CallId("call_3".to_owned())), "it is another run's");
}
