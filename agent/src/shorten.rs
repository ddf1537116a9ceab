//! Shortens long text: keeps its beginning and its end, with a note between them that says how much is left out.

use posse_protocol::{Part, ToolOutput};

/// The most bytes of text that one result adds to the transcript. Built-in tools return less: they
/// cut their output themselves.
const LARGEST_RESULT: usize = 120 * 1024;

/// The least number of bytes to which a text is shortened.
pub(crate) const LEAST: usize = 512;

/// Advice on how to see the rest of a tool's result.
pub(crate) const ASK_AGAIN: &str = "call again for a part of it";

/// `output`, cut to the most text that one result may add to the transcript. A tool may return any
/// amount, and the log and the model's context window have to hold it.
pub fn capped(mut output: ToolOutput) -> ToolOutput {
    let texts = output.parts.iter().filter_map(text_of);
    if texts.map(str::len).sum::<usize>() <= LARGEST_RESULT {
        return output;
    }
    // Join the texts first: with thousands of short texts, no single one is too long.
    let text = output.joined_text();
    let first = Part::text(shorten(&text, LARGEST_RESULT, ASK_AGAIN).unwrap_or(text));
    output.parts.retain(|part| text_of(part).is_none());
    output.parts.insert(0, first);
    output
}

/// The text of `part`, if it is a text.
pub(crate) fn text_of(part: &Part) -> Option<&str> {
    match part {
        Part::Text(text) => Some(&text.text),
        _ => None,
    }
}

/// `text` shortened to `most` bytes, with the advice `how` to see the rest; `None` if it is short
/// enough. If not even the note fits, only the note stays.
pub(crate) fn shorten(text: &str, most: usize, how: &str) -> Option<String> {
    if text.len() <= most {
        return None;
    }
    let note = |left_out: usize| format!("\n[{left_out} bytes left out; {how}]\n");
    let room = most.saturating_sub(note(text.len()).len());
    let head = text.floor_char_boundary(room / 2);
    let tail = text.ceil_char_boundary(text.len() - room / 2);
    Some(format!("{}{}{}", &text[..head], note(tail - head), &text[tail..]))
}

/// The length to which each of some texts must be cut so that all of them fit into `room` bytes.
/// Shorter texts leave their unused bytes to the others. `None` if no text needs to be cut.
pub(crate) fn share(sizes: impl IntoIterator<Item = usize>, room: usize) -> Option<usize> {
    let mut sizes: Vec<usize> = sizes.into_iter().collect();
    sizes.sort_unstable();
    let largest = *sizes.last()?;
    let (mut room, mut left) = (room, sizes.len());
    for size in sizes {
        let share = room / left;
        if size > share {
            return Some(share.max(LEAST)).filter(|share| largest > *share);
        }
        (room, left) = (room - size, left - 1);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_ends_in_so_many_bytes_and_says_what_is_missing() {
        let text = format!("begin{}end", "é".repeat(5_000));
        for most in 200..210 {
            let short = shorten(&text, most, "ask").unwrap();
            assert!(short.len() <= most && short.len() > most - 8, "{} {most}", short.len());
            assert!(short.starts_with("begin") && short.ends_with("end"), "{short}");
            let kept = short.replace("é", "").len();
            assert!(kept < 60 && short.contains(" bytes left out; ask]"), "{short}");
        }
        assert_eq!(shorten("short", 5, "ask"), None);
        assert_eq!(shorten("too short", 1, "ask").unwrap(), "\n[9 bytes left out; ask]\n");
    }

    #[test]
    fn a_result_of_any_size_is_stored_capped_and_other_parts_stay() {
        let image = Part::Image { media_type: "image/png".into(), data: "x".into() };
        let mut output = ToolOutput::text("a".repeat(5_000_000));
        output.parts.push(image.clone());
        output.parts.extend((0..5_000).map(|_| Part::text("b".repeat(1_000))));
        output.is_error = true;
        let capped = capped(output);
        let [Part::Text(text), other] = capped.parts.as_slice() else { panic!("{capped:?}") };
        assert!(text.text.len() <= LARGEST_RESULT && text.text.contains("bytes left out; call"));
        assert!(*other == image && capped.is_error);
        let small = ToolOutput::text("a".repeat(LARGEST_RESULT));
        assert_eq!(super::capped(small.clone()), small);
    }

    #[test]
    fn short_texts_leave_their_share_to_long_ones() {
        assert_eq!(share([10, 2_000, 3_000], 5_010), None);
        assert_eq!(share([10, 2_000, 3_000], 4_010), Some(2_000));
        assert_eq!(share([3_000, 10, 3_000], 2_010), Some(1_000));
        assert_eq!(share([3_000, 3_000], 0), Some(LEAST));
        assert_eq!(share([500, 500], 10), None, "too short to be worth it");
        assert_eq!(share([], 0), None);
    }
}
