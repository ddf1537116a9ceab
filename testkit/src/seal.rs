//! Signatures that the fake model makes for thinking. Each depends on its text and has a check sum,
//! so that a server detects a change of either, even after a restart.

use crate::hash;

/// `fake-signature:` in base64. A seal is valid base64 without the two characters that differ
/// between alphabets, because some clients decode and encode it again.
const PREFIX: &str = "ZmFrZS1zaWduYXR1cmU6";
const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/// Characters for the text's hash, and as many to check them.
const DIGITS: usize = 6;

/// The seal of `text`.
pub(crate) fn of(text: &str) -> String {
    let mut seal = String::with_capacity(PREFIX.len() + 2 * DIGITS);
    seal.push_str(PREFIX);
    push_digits(&mut seal, hash::of(&[text]));
    let check = hash::of(&[&seal]);
    push_digits(&mut seal, check);
    seal
}

/// Whether `signature` is an unchanged seal of any text.
pub(crate) fn is_genuine(signature: &str) -> bool {
    let Some(middle) = signature.len().checked_sub(DIGITS) else {
        return false;
    };
    let Some((sealed, check)) = signature.split_at_checked(middle) else {
        return false;
    };
    let mut expected = String::new();
    push_digits(&mut expected, hash::of(&[sealed]));
    sealed.starts_with(PREFIX) && check == expected
}

fn push_digits(out: &mut String, hash: u64) {
    let digit = |position: usize| ALPHABET[(hash >> (5 * position)) as usize & 31];
    out.extend((0..DIGITS).map(digit).map(char::from));
}

#[cfg(test)]
mod tests {
    use super::{is_genuine, of};

    #[test]
    fn a_seal_is_genuine_until_it_is_changed() {
        let seal = of("a thought");
        assert!(is_genuine(&seal));
        assert_ne!(seal, of("a thought."));
        assert_eq!(seal.len() % 4, 0, "{seal} is base64 without padding");
        assert!(
            seal.bytes().all(|byte| byte.is_ascii_alphanumeric()),
            "{seal} is in all alphabets"
        );
        for (position, _) in seal.char_indices() {
            let mut changed = seal.clone();
            let other = if &seal[position..=position] == "x" { "y" } else { "x" };
            changed.replace_range(position..=position, other);
            assert!(!is_genuine(&changed), "{changed}");
        }
        for foreign in ["", "sig", "ZmFrZS1zaWduYXR1cmU6", "ééééééé", &seal[1..]] {
            assert!(!is_genuine(foreign), "{foreign}");
        }
    }
}
