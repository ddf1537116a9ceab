//! Reads the headers of an answer: the id of the request, and what is left of the account's limits.
//! Pure.

use jiff::Timestamp;
use posse_protocol::RateLimits;
use reqwest::header::HeaderMap;
use std::time::Duration;

/// The headers with the id of a request, the best first. Gemini has it only in the body.
const REQUEST_IDS: [&str; 4] =
    ["request-id", "x-request-id", "apim-request-id", "x-amzn-requestid"];

/// Numbers above this are points in time, in seconds since 1970, not durations.
const EPOCH: f64 = 1e9;
/// The longest wait that a header can ask for, in seconds: a gateway may write nanoseconds.
const LONGEST: f64 = 86_400.0;

/// The provider's id of the request.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = REQUEST_IDS.iter().find_map(|name| text(headers, name))?;
    Some(id.to_owned())
}

/// What is left of the provider's limits. Times are measured by the provider's own clock where it
/// shows one, so that a wrong one on this side does not matter.
pub(crate) fn limits(headers: &HeaderMap) -> Limits {
    limits_at(headers, &|| {
        let date = text(headers, "date").and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
        date.map_or_else(Timestamp::now, |date| date.timestamp())
    })
}

type Clock<'a> = &'a dyn Fn() -> Timestamp;

/// The same, with a clock that is read only if there is a limit: most answers have none.
fn limits_at(headers: &HeaderMap, now: Clock<'_>) -> Limits {
    Limits { requests: scarcest(headers, now, &REQUESTS), tokens: scarcest(headers, now, &TOKENS) }
}

/// The limits of an account in an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) requests: Option<Limit>,
    pub(crate) tokens: Option<Limit>,
}

impl Limits {
    /// The limit with the smaller share left.
    pub(crate) fn scarcer(&self) -> Option<Limit> {
        [self.requests, self.tokens].into_iter().flatten().min_by(Limit::share_order)
    }

    /// What is stored of them.
    pub(crate) fn to_stored(self) -> Option<RateLimits> {
        let scarcer = self.scarcer()?;
        Some(RateLimits {
            requests_left: self.requests.map(|limit| limit.left),
            tokens_left: self.tokens.map(|limit| limit.left),
            resets_in_ms: scarcer.resets_in_ms,
            ..RateLimits::default()
        })
    }
}

/// The names of one limit: what is left, the whole, and when it is full again.
type Names = [&'static str; 3];

const REQUESTS: [Names; 4] = [
    [
        "anthropic-ratelimit-requests-remaining",
        "anthropic-ratelimit-requests-limit",
        "anthropic-ratelimit-requests-reset",
    ],
    ["x-ratelimit-remaining-requests", "x-ratelimit-limit-requests", "x-ratelimit-reset-requests"],
    [
        "x-ratelimit-remaining-req-minute",
        "x-ratelimit-limit-req-minute",
        "x-ratelimit-reset-req-minute",
    ],
    ["x-ratelimit-remaining", "x-ratelimit-limit", "x-ratelimit-reset"],
];

const TOKENS: [Names; 6] = [
    [
        "anthropic-ratelimit-tokens-remaining",
        "anthropic-ratelimit-tokens-limit",
        "anthropic-ratelimit-tokens-reset",
    ],
    [
        "anthropic-ratelimit-input-tokens-remaining",
        "anthropic-ratelimit-input-tokens-limit",
        "anthropic-ratelimit-input-tokens-reset",
    ],
    [
        "anthropic-ratelimit-output-tokens-remaining",
        "anthropic-ratelimit-output-tokens-limit",
        "anthropic-ratelimit-output-tokens-reset",
    ],
    ["x-ratelimit-remaining-tokens", "x-ratelimit-limit-tokens", "x-ratelimit-reset-tokens"],
    [
        "x-ratelimit-remaining-tokens-minute",
        "x-ratelimit-limit-tokens-minute",
        "x-ratelimit-reset-tokens-minute",
    ],
    ["x-tokenlimit-remaining", "x-tokenlimit-limit", "x-tokenlimit-reset"],
];

/// One limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) left: u64,
    /// The whole limit.
    pub(crate) whole: Option<u64>,
    /// How long until the whole limit is available again.
    pub(crate) resets_in_ms: Option<u64>,
}

impl Limit {
    fn read(headers: &HeaderMap, now: Clock<'_>, [left, whole, reset]: &Names) -> Option<Limit> {
        let left = number(text(headers, left)?)?;
        let reset = text(headers, reset).and_then(|value| wait(value, now()));
        let whole = text(headers, whole).and_then(number);
        Some(Limit { left, whole, resets_in_ms: reset.map(milliseconds) })
    }

    /// The share that is left; all of it when the whole is unknown.
    fn share(&self) -> f64 {
        match self.whole {
            Some(whole) if whole > 0 => self.left as f64 / whole as f64,
            _ => 1.0,
        }
    }

    fn share_order(&self, other: &Limit) -> std::cmp::Ordering {
        self.share().total_cmp(&other.share())
    }
}

/// The limit with the smallest share left.
fn scarcest(headers: &HeaderMap, now: Clock<'_>, all: &[Names]) -> Option<Limit> {
    all.iter().filter_map(|names| Limit::read(headers, now, names)).min_by(Limit::share_order)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let value = headers.get(name)?.to_str().ok()?.trim();
    (!value.is_empty()).then_some(value)
}

/// A count, which some write with a fraction. Less than nothing is nothing.
fn number(value: &str) -> Option<u64> {
    let number = value.parse::<f64>().ok().filter(|number| number.is_finite())?;
    Some(number.max(0.0) as u64)
}

fn milliseconds(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}

/// How long until `value`: `6m0s`, `20ms`, a number of seconds, a point in time as a date or in
/// seconds or milliseconds since 1970. What has passed is no wait, and none is longer than a day.
fn wait(value: &str, now: Timestamp) -> Option<Duration> {
    let until = |point: f64| point - now.as_millisecond() as f64 / 1e3;
    let seconds = match value.parse::<f64>() {
        Ok(point) if point >= EPOCH * 1e3 => until(point / 1e3),
        Ok(point) if point >= EPOCH => until(point),
        Ok(seconds) => seconds,
        Err(_) => match value.parse::<Timestamp>() {
            Ok(point) => until(point.as_millisecond() as f64 / 1e3),
            Err(_) => span(value)?,
        },
    };
    Duration::try_from_secs_f64(seconds.clamp(0.0, LONGEST)).ok()
}

/// The seconds of a span such as `1h2m3.5s` or `20ms`.
fn span(mut rest: &str) -> Option<f64> {
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (amount, unit) = rest.split_at(digits);
        let amount: f64 = amount.parse().ok()?;
        let length = unit.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit.len());
        let (unit, after) = unit.split_at(length);
        seconds += amount
            * match unit {
                "d" => 86_400.0,
                "h" => 3_600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                "us" | "µs" => 1e-6,
                "ns" => 1e-9,
                _ => return None,
            };
        rest = after;
    }
    Some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};

    const NOW: &str = "2026-10-10T12:00:00Z";

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let entry = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(entry).collect()
    }

    #[track_caller]
    fn check(
        pairs: &[(&'static str, &'static str)],
        requests: Option<u64>,
        tokens: Option<u64>,
        resets_in_ms: Option<u64>,
    ) {
        let found = limits_at(&headers(pairs), &|| NOW.parse().unwrap()).to_stored().unwrap();
        let told = (found.requests_left, found.tokens_left, found.resets_in_ms);
        assert_eq!(told, (requests, tokens, resets_in_ms));
    }

    #[test]
    fn what_anthropic_says_of_its_limits_is_read() {
        let requests = [
            ("anthropic-ratelimit-requests-limit", "4000"),
            ("anthropic-ratelimit-requests-remaining", "3999"),
            ("anthropic-ratelimit-requests-reset", "2026-10-10T12:00:01Z"),
        ];
        check(&requests, Some(3_999), None, Some(1_000));
        let input = [
            ("anthropic-ratelimit-input-tokens-limit", "2000000"),
            ("anthropic-ratelimit-input-tokens-remaining", "500000"),
            ("anthropic-ratelimit-input-tokens-reset", "2026-10-10T12:00:45.500Z"),
            ("anthropic-ratelimit-output-tokens-limit", "400000"),
            ("anthropic-ratelimit-output-tokens-remaining", "399000"),
            ("anthropic-ratelimit-output-tokens-reset", "2026-10-10T12:00:02Z"),
        ];
        check(&[requests.as_slice(), &input].concat(), Some(3_999), Some(500_000), Some(45_500));
    }

    #[test]
    fn what_openai_and_others_of_its_kind_say_is_read() {
        let spoken = |reset_requests, reset_tokens| {
            [
                ("x-ratelimit-limit-requests", "60"),
                ("x-ratelimit-remaining-requests", "1"),
                ("x-ratelimit-reset-requests", reset_requests),
                ("x-ratelimit-limit-tokens", "150000"),
                ("x-ratelimit-remaining-tokens", "149984"),
                ("x-ratelimit-reset-tokens", reset_tokens),
            ]
        };
        for (reset, wanted) in [
            ("6m0s", 360_000),
            ("1s", 1_000),
            ("20ms", 20),
            ("1h2m3.5s", 3_723_500),
            ("7.66s", 7_660),
            ("11.38", 11_380),
            ("0", 0),
            ("2026-10-10T12:01:00Z", 60_000),
            ("2026-10-10T11:01:00Z", 0),
            ("1791633630", 30_000),
            ("1791633630000", 30_000),
        ] {
            check(&spoken(reset, "9m"), Some(1), Some(149_984), Some(wanted));
        }
        for nonsense in ["soon", "5", "1x", "-3s", "1e400s"] {
            let found = limits_at(&headers(&spoken(nonsense, "9m")), &|| NOW.parse().unwrap());
            let found = found.to_stored().unwrap();
            let wanted = (nonsense == "5").then_some(5_000);
            assert_eq!(found.resets_in_ms, wanted, "{nonsense}");
        }
        check(&[("x-ratelimit-remaining", "7")], Some(7), None, None);
        check(&[("x-ratelimit-remaining-tokens-minute", "12.9")], None, Some(12), None);
    }

    #[test]
    fn no_header_asks_for_more_than_a_day() {
        for reset in ["1e18", "1760000000000000000", "999999d", "1e300"] {
            let said = [("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", reset)];
            check(&said, Some(1), None, Some(86_400_000));
        }
    }

    #[test]
    fn the_provider_s_clock_counts() {
        let said = [
            ("date", "Sat, 10 Oct 2026 12:00:30 GMT"),
            ("x-ratelimit-remaining", "1"),
            ("x-ratelimit-reset", "2026-10-10T12:01:00Z"),
        ];
        let found = limits(&headers(&said)).to_stored().unwrap();
        assert_eq!(found.resets_in_ms, Some(30_000));
    }

    #[test]
    fn without_limits_nothing_is_claimed() {
        let now = NOW.parse().unwrap();
        let told = |name, value| limits_at(&headers(&[(name, value)]), &|| now).to_stored();
        assert_eq!(told("x-ratelimit-limit-requests", "60"), None);
        assert_eq!(told("x-ratelimit-remaining", "many"), None);
    }

    #[test]
    fn the_request_is_named_by_whichever_header_there_is() {
        assert_eq!(request_id(&headers(&[("x-request-id", "req_1")])).as_deref(), Some("req_1"));
        let both = headers(&[("x-request-id", "of the gateway"), ("request-id", "req_2")]);
        assert_eq!(request_id(&both).as_deref(), Some("req_2"));
        assert_eq!(request_id(&headers(&[("x-request-id", " ")])), None);
    }
}
