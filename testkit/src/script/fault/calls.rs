//! Faults in tool calls: arguments, ids, names and the numbers that tell calls apart.

use super::anatomy;
use super::draft::Draft;
use super::expectation::{Expectation, Failure, Needs};
use super::plan::Plan;
use super::{Deed, Fault, Wire, fault, spoilt};
use crate::script::{Block, Body, Template};
use serde_json::{Value, json};

const NEVER_RUN: Expectation = Expectation::NeverRun(&[Failure::Malformed]);
const EITHER: Expectation = Expectation::Tolerated(&[Failure::Malformed]);

/// The wires that number blocks or calls.
const NUMBERED: &[Wire] = &[Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses];

use Needs::{Call, TwoCalls};

pub(super) static FAULTS: &[Fault] = &[
    fault(
        "truncated-arguments",
        "the last call's arguments break off, and the cap on output is the reason for stopping",
        Call,
        Expectation::NeverRun(&[Failure::Malformed, Failure::Cut]),
        Deed::Both(
            |body| {
                if let Some(last) = calls(body).last() {
                    last.change_input(|json| half(json).to_owned());
                }
            },
            |mut draft| {
                let wire = draft.wire();
                for piece in &mut draft.pieces {
                    wire.stop_for_length(piece);
                }
                draft.plan()
            },
        ),
    ),
    fault(
        "broken-off-arguments",
        "arguments break off although the model stopped of its own accord",
        Call,
        NEVER_RUN,
        Deed::Words(|body| change_inputs(body, |json| half(json).to_owned())),
    ),
    fault(
        "invalid-arguments",
        "arguments that are no JSON",
        Call,
        NEVER_RUN,
        Deed::Words(|body| change_inputs(body, |_| "{\"command\": oops, \"x\": }".to_owned())),
    ),
    fault(
        "doubled-arguments",
        "arguments that come twice, one after the other",
        Call,
        NEVER_RUN,
        Deed::Words(|body| change_inputs(body, |json| format!("{json}{json}"))),
    ),
    fault(
        "list-arguments",
        "arguments that are a list",
        Call,
        NEVER_RUN,
        Deed::Words(|body| change_inputs(body, |json| format!("[{json}]"))),
    ),
    fault(
        "text-arguments",
        "arguments that are a string",
        Call,
        NEVER_RUN,
        Deed::Words(|body| change_inputs(body, |_| "\"echo hello\"".to_owned())),
    ),
    fault(
        "null-arguments",
        "arguments that are null",
        Call,
        NEVER_RUN,
        Deed::Words(|body| change_inputs(body, |_| "null".to_owned())),
    ),
    fault(
        "no-arguments",
        "arguments without a byte, for a tool that needs some",
        Call,
        NEVER_RUN,
        Deed::Words(|body| change_inputs(body, |_| String::new())),
    ),
    fault(
        "unknown-tool",
        "a call of a tool that nobody offered",
        Call,
        NEVER_RUN,
        Deed::Words(|body| calls(body).for_each(|call| *call.name = "Teleport".to_owned())),
    ),
    fault(
        "nameless-tool",
        "a call without a name",
        Call,
        NEVER_RUN,
        Deed::Words(|body| calls(body).for_each(|call| call.name.clear())),
    ),
    fault(
        "missing-call-id",
        "a call with an empty id",
        Call,
        EITHER,
        Deed::Words(|body| calls(body).for_each(|call| *call.id = Some(String::new()))),
    ),
    fault(
        "duplicate-call-ids",
        "calls with the same id",
        TwoCalls,
        EITHER,
        Deed::Words(|body| {
            calls(body).for_each(|call| *call.id = Some("call_twin".to_owned()));
        }),
    ),
    spoilt("duplicate-index", "the same number for everything in the reply", EITHER, |draft| {
        reindexed(draft, |_| json!(0))
    })
    .needing(TwoCalls)
    .only_on(NUMBERED),
    spoilt("swapped-index", "the numbers 0 and 1 in the wrong order", EITHER, |draft| {
        reindexed(draft, |index| json!(if index < 2 { 1 - index } else { index }))
    })
    .needing(TwoCalls)
    .only_on(NUMBERED),
    spoilt("huge-index", "numbers that begin at 4,000,000,000", EITHER, |draft| {
        reindexed(draft, |index| json!(4_000_000_000 + index))
    })
    .needing(Call)
    .only_on(NUMBERED),
    spoilt("negative-index", "the number -1 for everything in the reply", EITHER, |draft| {
        reindexed(draft, |_| json!(-1))
    })
    .needing(Call)
    .only_on(NUMBERED),
    fault(
        "unknown-index",
        "pieces for a number that was never begun",
        Call,
        // Its pieces found no call, so that the call has no arguments.
        Expectation::NeverRun(&[Failure::Malformed, Failure::Cut]),
        Deed::Bytes(|draft| {
            let wire = draft.wire();
            let change = |data: &mut Value| {
                if wire.goes_on(data) {
                    anatomy::reindex(wire, data, |index| json!(index + 7));
                }
            };
            draft.each_event_json(change).plan()
        }),
    )
    .only_on(NUMBERED)
    // The whole arguments come once more at the end of the call.
    .except(&[(Wire::OpenAiResponses, EITHER)]),
];

/// A call of a scripted reply.
struct CallMut<'a> {
    id: &'a mut Option<String>,
    name: &'a mut String,
    input: &'a mut Template,
}

impl CallMut<'_> {
    fn change_input(self, change: impl Fn(&str) -> String) {
        *self.input = Template::json_text(&change(&self.input.source()));
    }
}

fn calls(body: &mut Body) -> impl Iterator<Item = CallMut<'_>> {
    let blocks = match body {
        Body::Message { blocks, .. } => blocks.as_mut_slice(),
        Body::Error { .. } => &mut [],
    };
    blocks.iter_mut().filter_map(|block| match block {
        Block::ToolCall { id, name, input } => Some(CallMut { id, name, input }),
        _ => None,
    })
}

fn change_inputs(body: &mut Body, change: fn(&str) -> String) {
    calls(body).for_each(|call| call.change_input(change));
}

fn half(text: &str) -> &str {
    let middle = (0..=text.len() / 2).rev().find(|index| text.is_char_boundary(*index));
    &text[..middle.unwrap_or_default()]
}

fn reindexed(draft: Draft, change: fn(u64) -> Value) -> Plan {
    let wire = draft.wire();
    draft.each_event_json(|data| anatomy::reindex(wire, data, change)).plan()
}
