//! Places in a reply where it can end.

use super::anatomy::{self, Marks};
use super::draft::{Draft, Form};

/// Where a stream ends too early. A document always ends in its middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Before any byte of the body.
    AfterHeaders,
    /// After a comment, which is no event.
    BeforeFirstEvent,
    /// In the middle of the line of an event.
    InLine,
    /// After the first byte of a character that has two.
    InCharacter,
    /// After a piece of text.
    AfterText,
    /// Among the arguments of a call.
    InArguments,
    /// After the last call is complete, before the reason for stopping.
    AfterCall,
    /// After the reason for stopping.
    BeforeEnd,
}

/// The first byte of é.
const HALF_A_CHARACTER: &[u8] = &[0xc3];

impl Place {
    /// Removes the body after this place.
    pub(super) fn truncate(self, draft: &mut Draft) {
        if self == Place::AfterHeaders {
            draft.pieces.clear();
            return;
        }
        if draft.form == Form::Document {
            halve(draft, 0, if self == Place::InCharacter { HALF_A_CHARACTER } else { &[] });
            return;
        }
        let wire = draft.wire();
        let marks: Vec<Marks> =
            draft.pieces.iter().map(|piece| anatomy::marks(wire, piece)).collect();
        let first = |is: fn(&Marks) -> bool| marks.iter().position(is).unwrap_or(0);
        match self {
            Place::AfterHeaders => {}
            Place::BeforeFirstEvent => draft.pieces = vec![b": one moment\n\n".to_vec()],
            Place::InLine => halve(draft, first(|marks| marks.text || marks.call), &[]),
            Place::InCharacter => halve(draft, first(|marks| marks.text), HALF_A_CHARACTER),
            Place::AfterText => draft.pieces.truncate(first(|marks| marks.text) + 1),
            Place::InArguments => {
                let calls: Vec<usize> =
                    (0..marks.len()).filter(|index| marks[*index].call).collect();
                match *calls {
                    // All arguments come at once, so the place is within them.
                    [only] => halve(draft, only, &[]),
                    // The first piece can be an empty one, the last makes the arguments whole.
                    [_, second, _, ..] => draft.pieces.truncate(second + 1),
                    [first, ..] => draft.pieces.truncate(first + 1),
                    [] => draft.pieces.clear(),
                }
            }
            Place::AfterCall => {
                let stop = first(|marks| marks.stop);
                // A wire may send the call and the reason in one event.
                let more = marks.get(stop).is_some_and(|marks| marks.call || marks.text);
                let kept = stop + usize::from(more);
                draft.pieces.truncate(kept);
                if let Some(piece) = draft.pieces.get_mut(stop)
                    && let Some(mut data) = anatomy::json(piece)
                {
                    anatomy::restop(wire, &mut data, &serde_json::Value::Null);
                    anatomy::replace_json(piece, &data);
                }
            }
            Place::BeforeEnd => draft.pieces.truncate(first(|marks| marks.stop) + 1),
        }
    }
}

/// Ends a body in the middle of this piece, with these bytes.
fn halve(draft: &mut Draft, index: usize, with: &[u8]) {
    draft.pieces.truncate(index + 1);
    if let Some(piece) = draft.pieces.last_mut() {
        let mut middle = piece.len() / 2;
        while middle > 0 && !is_boundary(piece, middle) {
            middle -= 1;
        }
        piece.truncate(middle);
        piece.extend_from_slice(with);
    }
}

fn is_boundary(bytes: &[u8], index: usize) -> bool {
    // Bytes within a character begin with the bits 10.
    bytes.get(index).is_none_or(|byte| byte & 0b1100_0000 != 0b1000_0000)
}
