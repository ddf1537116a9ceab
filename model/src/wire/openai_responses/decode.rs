//! Reads a reply from its events.
//!
//! Deltas are frequent, so they are read into borrowed fields. Only items and unknown events become
//! JSON values. Some providers number and name their items badly, so an event that fits nowhere
//! changes nothing.

use super::error::fault;
use super::event::{
    AnnotationAdded, ItemEvent, Output, Response, ResponseEvent, Subject, TextDelta, TextDone,
    read, subject,
};
use super::item::{Item, List, TextPosition, malformed};
use super::part::Ending;
use super::{NAME, REFUSAL};
use crate::fault::{Fault, Kind, shorten};
use crate::sse::Event;
use crate::wire::{Decode, Progress};
use posse_agent::{DeltaSink, Reply};
use posse_protocol::{CallId, Message, Part, Price, Stop, Usage};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// The most items one reply may have: every event looks for its own.
const MAX_ITEMS: usize = 1_024;

/// Assembles one reply from the events of its stream.
#[derive(Default)]
pub struct Decoder {
    state: State,
    response_id: Option<String>,
    items: Vec<Item>,
    usage: Usage,
    service_tier: Option<String>,
}

#[derive(Default, PartialEq)]
enum State {
    #[default]
    BeforeStart,
    Open,
    /// The model ended its reply.
    Complete,
    /// The reply was ended for the model.
    Stopped(Stop),
}

impl Decode for Decoder {
    fn event(&mut self, event: &Event<'_>, deltas: DeltaSink<'_>) -> Result<Progress, Fault> {
        if self.has_ended() {
            return Ok(Progress::Complete);
        }
        let data = &*event.data;
        // Not an event of this wire, but some gateways add it.
        if data == b"[DONE]" {
            return Ok(Progress::None);
        }
        let moved = match subject(event)? {
            Subject::More(list) => self.more(list, read("a delta", data)?, deltas)?,
            Subject::All(list) => self.all(list, read("a text", data)?, deltas)?,
            Subject::Annotation => self.annotation(read("an annotation", data)?)?,
            Subject::ItemStart => self.item_start(read("output_item.added", data)?)?,
            Subject::ItemEnd => {
                let ItemEvent { output_index, item } = read("output_item.done", data)?;
                self.item_end(output_index, item, deltas)?;
                true
            }
            Subject::Start => {
                let ResponseEvent { response } = read("the start of the reply", data)?;
                self.take(response);
                std::mem::replace(&mut self.state, State::Open) == State::BeforeStart
            }
            Subject::End(status) => {
                self.end(status, data, deltas)?;
                return Ok(Progress::Complete);
            }
            Subject::Error => return Err(fault(&read("an error event", data)?)),
            Subject::Movement => true,
            Subject::Nothing => false,
        };
        if moved {
            self.state = State::Open;
        }
        Ok(if moved { Progress::Moved } else { Progress::None })
    }

    fn document(&mut self, body: &[u8], deltas: DeltaSink<'_>) -> Result<(), Fault> {
        let response: Response = read("the reply", body)?;
        let status = match (response.status.clone(), &response.error) {
            (Some(status), _) => status,
            (None, Some(_)) => "failed".to_owned(),
            (None, None) => "completed".to_owned(),
        };
        self.conclude(&status, response)?;
        let Output { output } = read("the reply", body)?;
        let output = output.ok_or_else(|| malformed("a reply without output"))?;
        let mut items = (0..).zip(output);
        items.try_for_each(|(index, item)| self.item_end(Some(index), item, deltas))
    }

    fn usage(&self) -> Usage {
        self.usage.clone()
    }

    fn finish(self: Box<Self>, price: &Price) -> Result<Reply, Fault> {
        let stopped = match self.state {
            State::Complete => None,
            State::Stopped(stop) => Some(stop),
            State::BeforeStart => return Err(Fault::new(Kind::Cut, "it ended before it began")),
            State::Open => {
                let reason =
                    format!("it ended without response.completed, in item {}", self.items.len());
                return Err(Fault::new(Kind::Cut, reason));
            }
        };
        let ending = if stopped.is_none() { Ending::Whole } else { Ending::Stopped };
        let mut items = self.items;
        items.sort_by_key(|item| item.index);
        let mut parts = Vec::with_capacity(items.len());
        let reply = self.response_id.as_deref().unwrap_or("reply");
        for (position, item) in items.into_iter().enumerate() {
            item.into_parts(ending, format!("call_{position}_of_{reply}"), &mut parts)?;
        }
        tell_apart(&mut parts);
        let stop = stopped.unwrap_or_else(|| stop_of(&parts));
        let usage = Usage { cost: price.of(&self.usage), ..self.usage };
        let message = Message::from_model(NAME, parts);
        let (service_tier, rate_limits) = (self.service_tier, None);
        Ok(Reply { message, stop, usage, request_id: self.response_id, service_tier, rate_limits })
    }
}

impl Decoder {
    fn has_ended(&self) -> bool {
        matches!(self.state, State::Complete | State::Stopped(_))
    }

    fn more(
        &mut self,
        list: List,
        event: TextDelta<'_>,
        deltas: DeltaSink<'_>,
    ) -> Result<bool, Fault> {
        if event.delta.is_empty() {
            return Ok(false);
        }
        let place = TextPosition { list, index: event.index() };
        match self.open_item(event.output_index, list)? {
            Some(item) => item.push(place, &event.delta, deltas),
            None => Ok(false),
        }
    }

    fn all(&mut self, list: List, event: TextDone, deltas: DeltaSink<'_>) -> Result<bool, Fault> {
        let (index, output_index) = (event.index(), event.output_index);
        let Some(whole) = event.into_text(list) else { return Ok(false) };
        match self.open_item(output_index, list)? {
            Some(item) => item.settle(TextPosition { list, index }, whole, deltas),
            None => Ok(false),
        }
    }

    fn annotation(&mut self, event: AnnotationAdded) -> Result<bool, Fault> {
        match self.open_item(event.output_index, List::Text)? {
            Some(item) => item.annotate(event.content_index.unwrap_or(0), event.annotation),
            None => Ok(false),
        }
    }

    fn item_start(&mut self, event: ItemEvent) -> Result<bool, Fault> {
        let index = event.output_index.unwrap_or(self.items.len() as u64);
        let is_here = |item: &Item| event.output_index.is_none_or(|index| item.index == index);
        if self.items.iter().any(|item| is_here(item) && item.has_id_of(&event.item)) {
            return Ok(false);
        }
        self.push(Item::start(index, event.item)?)?;
        Ok(true)
    }

    /// Ends an item with `fields`: the item of that id, or else the open item of that place,
    /// because some providers change ids, and others do not count. A second end of an item changes
    /// nothing. An end without a start is an item, too.
    fn item_end(
        &mut self,
        index: Option<u64>,
        fields: Map<String, Value>,
        deltas: DeltaSink<'_>,
    ) -> Result<(), Fault> {
        let find = |is_it: &dyn Fn(&Item) -> bool| {
            let is_here = |item: &Item| index.is_none_or(|index| item.index == index);
            self.items.iter().rposition(|item| is_here(item) && is_it(item))
        };
        let position = find(&|item| item.has_id_of(&fields))
            .or_else(|| find(&|item| item.is_open() && item.has_type_of(&fields)))
            .or_else(|| find(&|item| item.ended_with(&fields)));
        let item = match position.and_then(|position| self.items.get_mut(position)) {
            Some(item) => item,
            None => {
                let index = index.unwrap_or(self.items.len() as u64);
                self.push(Item::unknown(index))?
            }
        };
        item.finish(fields, deltas)
    }

    /// The item of a delta of `list`; an unknown one is started. `None` when the item of that place
    /// has ended.
    fn open_item(&mut self, index: Option<u64>, list: List) -> Result<Option<&mut Item>, Fault> {
        let is_here = |item: &Item| index.is_none_or(|index| item.index == index);
        let open = self.items.iter().rposition(|item| is_here(item) && item.is_open());
        match open {
            Some(position) => Ok(self.items.get_mut(position)),
            None if self.items.iter().any(is_here) => Ok(None),
            None => match Item::implied(index.unwrap_or(0), list) {
                Some(item) => self.push(item).map(Some),
                None => Ok(None),
            },
        }
    }

    fn push(&mut self, item: Item) -> Result<&mut Item, Fault> {
        if self.items.len() < MAX_ITEMS {
            self.items.push(item);
            if let Some(item) = self.items.last_mut() {
                return Ok(item);
            }
        }
        Err(malformed(format!("a reply of more than {MAX_ITEMS} items")))
    }

    fn end(&mut self, status: &str, data: &[u8], deltas: DeltaSink<'_>) -> Result<(), Fault> {
        let ResponseEvent::<Response> { response } = read("the end of the reply", data)?;
        // The status of the event counts, unless the status of the reply is worse.
        let own = response.status.clone();
        let own = own.filter(|own| matches!(&**own, "incomplete" | "failed" | "cancelled"));
        self.conclude(own.as_deref().unwrap_or(status), response)?;
        if self.items.is_empty() || self.items.iter().any(Item::is_open) {
            // The last event repeats all items. Only those that are still open are read again.
            let ResponseEvent { response: Output { output } } = read("the end of the reply", data)?;
            self.catch_up(output.unwrap_or_default(), deltas)?;
        }
        Ok(())
    }

    /// Ends the items without an end, with the fields of the reply.
    fn catch_up(
        &mut self,
        output: Vec<Map<String, Value>>,
        deltas: DeltaSink<'_>,
    ) -> Result<(), Fault> {
        if self.items.is_empty() {
            let mut all = (0..).zip(output);
            return all.try_for_each(|(index, item)| self.item_end(Some(index), item, deltas));
        }
        for item in self.items.iter_mut().filter(|item| item.is_open()) {
            let place = usize::try_from(item.index).ok().and_then(|index| output.get(index));
            let of_id = output.iter().find(|fields| item.has_id_of(fields));
            let told = of_id.or(place).filter(|fields| item.has_type_of(fields));
            if let Some(fields) = told {
                item.finish(fields.clone(), deltas)?;
            }
        }
        Ok(())
    }

    /// Takes how the reply ended.
    fn conclude(&mut self, status: &str, response: Response) -> Result<(), Fault> {
        let state = match status {
            "incomplete" => {
                let details = response.incomplete_details.as_ref();
                let reason = details.and_then(|details| details.reason.as_deref());
                State::Stopped(stopped_for(reason.unwrap_or("incomplete")))
            }
            "failed" => return Err(fault(&response.error.unwrap_or_default())),
            "cancelled" | "queued" | "in_progress" => {
                return Err(Fault::new(Kind::Cut, format!("its status is {status}")));
            }
            _ => State::Complete,
        };
        self.take(response);
        self.state = state;
        Ok(())
    }

    fn take(&mut self, response: Response) {
        self.response_id = response.id.or(self.response_id.take());
        self.service_tier = response.service_tier.or(self.service_tier.take());
        if let Some(counts) = response.usage {
            self.usage = counts.into_usage();
        }
    }
}

/// Gives calls with the same id different ids, so that their results can be distinguished.
fn tell_apart(parts: &mut [Part]) {
    let mut taken = HashSet::new();
    for part in parts {
        if let Part::ToolCall(call) = part {
            let mut free = call.id.0.clone();
            for number in 2.. {
                if taken.insert(free.clone()) {
                    break;
                }
                free = format!("{}_{number}", call.id);
            }
            call.id = CallId(free);
        }
    }
}

/// Why a model ended its reply. The wire does not say it, but it follows from the content.
fn stop_of(parts: &[Part]) -> Stop {
    let is_refusal = |part: &Part| match part {
        Part::Text(text) => text.extra.iter().any(|(key, _)| key == REFUSAL),
        _ => false,
    };
    match parts {
        parts if parts.iter().any(|part| matches!(part, Part::ToolCall(_))) => Stop::ToolUse,
        parts if parts.iter().any(is_refusal) => Stop::Refusal,
        _ => Stop::End,
    }
}

fn stopped_for(reason: &str) -> Stop {
    match reason {
        "max_output_tokens" | "max_tokens" => Stop::MaxTokens,
        "content_filter" => Stop::Refusal,
        other => Stop::Other(shorten(other, 100)),
    }
}
