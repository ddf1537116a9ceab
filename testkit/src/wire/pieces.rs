//! How a stream tears texts apart.

/// Characters in a piece of text. A text of two characters or more comes in two pieces at least.
const TEXT_PIECE: usize = 16;
/// Characters in a piece of a tool's input: odd, so that escapes and numbers are torn apart.
const INPUT_PIECE: usize = 11;

/// The pieces of a text.
pub(super) fn of_text(text: &str) -> impl Iterator<Item = &str> {
    pieces(text, TEXT_PIECE)
}

/// The pieces of a tool's input.
pub(super) fn of_input(json: &str) -> impl Iterator<Item = &str> {
    pieces(json, INPUT_PIECE)
}

/// Splits a text into pieces of at most `most` characters.
fn pieces(text: &str, most: usize) -> impl Iterator<Item = &str> {
    let characters = text.chars().take(2 * most).count();
    let size = most.min(characters.div_ceil(2)).max(1);
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(end, _)| end);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}
