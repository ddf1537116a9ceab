//! Secrets of webhooks. A secret that was read can only sign: it cannot be shown.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ring::hmac;

/// The prefix of secrets.
const PREFIX: &str = "whsec_";
/// The length of a secret in bytes, as Standard Webhooks says.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// The text is not a valid secret. The error does not contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is not `whsec_` and the base64 of 24 to 64 bytes; make one with \
     `echo whsec_$(openssl rand -base64 32)`"
)]
pub struct InvalidSecret;

/// Signs requests to a webhook. It cannot be shown, written or compared.
#[derive(Clone)]
pub struct SigningKey {
    key: hmac::Key,
    /// The original text, for removing it from other texts.
    text: std::sync::Arc<str>,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningKey(hidden)")
    }
}

impl SigningKey {
    /// Parses `whsec_` and base64.
    ///
    /// # Errors
    /// When the text has another form, or its length is out of range.
    pub fn parse(text: &str) -> Result<Self, InvalidSecret> {
        let encoded = text.trim().strip_prefix(PREFIX).ok_or(InvalidSecret)?;
        let bytes = STANDARD.decode(encoded).or_else(|_| STANDARD_NO_PAD.decode(encoded));
        let bytes = bytes.map_err(|_| InvalidSecret)?;
        match BYTES.contains(&bytes.len()) {
            true => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, &bytes);
                Ok(SigningKey { key, text: encoded.into() })
            }
            false => Err(InvalidSecret),
        }
    }

    /// Returns the text to remove from other texts.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    fn sign(&self, id: &str, timestamp: u64, body: &str) -> String {
        let signed = hmac::sign(&self.key, format!("{id}.{timestamp}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode(signed))
    }
}

/// Returns the header that authenticates `body`: one signature per key, so that a secret can be
/// replaced while the old one is still in use.
pub(super) fn signatures(keys: &[SigningKey], id: &str, timestamp: u64, body: &str) -> String {
    let all: Vec<String> = keys.iter().map(|key| key.sign(id, timestamp, body)).collect();
    all.join(" ")
}

/// Returns `text` without webhook secrets.
pub(crate) fn blotted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(PREFIX) {
        let (before, secret) = rest.split_at(at + PREFIX.len());
        out.push_str(before);
        out.push('…');
        let is_part = |c: char| c.is_ascii_alphanumeric() || "+/=-_".contains(c);
        rest = secret.trim_start_matches(is_part);
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The example in the libraries of the Standard Webhooks specification.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn the_example_of_the_specification_is_signed_as_there() {
        let keys = [SigningKey::parse(SECRET).unwrap()];
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let signed = signatures(&keys, id, 1_614_265_330, "{\"test\": 2432232314}");
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn several_secrets_sign_side_by_side() {
        let other = format!("whsec_{}", STANDARD.encode([7; 32]));
        let keys = [SigningKey::parse(SECRET).unwrap(), SigningKey::parse(&other).unwrap()];
        let both = signatures(&keys, "msg_1", 1, "{}");
        let each: Vec<String> = keys
            .iter()
            .map(|key| signatures(std::slice::from_ref(key), "msg_1", 1, "{}"))
            .collect();
        assert_eq!(both, each.join(" "));
        assert_ne!(each[0], each[1]);
    }

    #[test]
    fn what_is_no_secret_is_refused_without_being_shown() {
        let short = format!("whsec_{}", STANDARD.encode([7; 23]));
        let long = format!("whsec_{}", STANDARD.encode([7; 65]));
        for wrong in ["", "whsec_", "hunter2", "whsec_hunter 2", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
            .into_iter()
            .chain([short.as_str(), long.as_str()])
        {
            let error = SigningKey::parse(wrong).unwrap_err().to_string();
            assert!(wrong.len() < 7 || !error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn a_secret_is_not_shown_and_is_blotted_out() {
        assert_eq!(format!("{:?}", SigningKey::parse(SECRET).unwrap()), "SigningKey(hidden)");
        let text = blotted(&format!("3 | secret = \"{SECRET}\" or {SECRET}== ^"));
        assert_eq!(text, "3 | secret = \"whsec_…\" or whsec_… ^");
        assert_eq!(blotted("nothing"), "nothing");
    }
}
