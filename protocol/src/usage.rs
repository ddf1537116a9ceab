//! Usage: tokens and money.

use crate::Extra;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign};

/// Money, in billionths of a US dollar, which is fine enough for one token of the cheapest model.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Usd(pub u64);

impl Usd {
    /// No money.
    pub const ZERO: Usd = Usd(0);

    /// An amount in dollars, rounded up to the next billionth. Negative amounts become zero.
    pub fn from_dollars(dollars: f64) -> Self {
        Usd((dollars * 1e9).ceil().max(0.0) as u64)
    }

    /// The amount in dollars.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The difference, or zero if `other` is larger.
    pub fn saturating_sub(self, other: Usd) -> Usd {
        Usd(self.0.saturating_sub(other.0))
    }
}

impl Add for Usd {
    type Output = Usd;
    fn add(self, other: Usd) -> Usd {
        Usd(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Usd) {
        *self = *self + other;
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dollars() {
            0.0 => f.write_str("$0"),
            tiny if tiny < 0.0001 => write!(f, "${tiny:.6}"),
            // Cents are too coarse to compare what is left with what is needed.
            small if small < 0.1 => {
                let text = format!("{small:.4}");
                let digits = text.trim_end_matches('0').len().max("0.00".len());
                write!(f, "${}", &text[..digits])
            }
            amount => write!(f, "${amount:.2}"),
        }
    }
}

/// Tokens and money of one model call, or the sum over several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens sent and not read from the vendor's cache.
    pub input_tokens: u64,
    /// Tokens sent and read from the cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_read_tokens: u64,
    /// Tokens sent and written to the cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Tokens received, reasoning included.
    pub output_tokens: u64,
    /// The part of the output tokens that was reasoning, if the vendor reports it.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// The cost; zero when the price is not known.
    pub cost: Usd,
    /// Fields of a later version. A sum has none, because their meaning is not known.
    #[serde(flatten)]
    pub extra: Extra,
}

pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Usage {
    /// This usage minus `other`, which is a part of it.
    pub fn without(&self, other: &Usage) -> Usage {
        Usage {
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            cache_read_tokens: self.cache_read_tokens.saturating_sub(other.cache_read_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_sub(other.cache_write_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_sub(other.reasoning_tokens),
            cost: self.cost.saturating_sub(other.cost),
            extra: Extra::default(),
        }
    }

    /// All tokens sent, cached or not.
    pub fn all_input_tokens(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.cache_read_tokens)
            .saturating_add(self.cache_write_tokens)
    }
}

impl AddAssign<&Usage> for Usage {
    fn add_assign(&mut self, other: &Usage) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.input_tokens, other.input_tokens);
        add(&mut self.cache_read_tokens, other.cache_read_tokens);
        add(&mut self.cache_write_tokens, other.cache_write_tokens);
        add(&mut self.output_tokens, other.output_tokens);
        add(&mut self.reasoning_tokens, other.reasoning_tokens);
        self.cost += other.cost;
        self.extra = Extra::default();
    }
}

impl Add<&Usage> for Usage {
    type Output = Usage;
    fn add(mut self, other: &Usage) -> Usage {
        self += other;
        self
    }
}

/// The price of a model, in billionths of a dollar per token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Price {
    /// One token sent.
    pub input: u64,
    /// One token read from the cache.
    pub cache_read: u64,
    /// One token written to the cache.
    pub cache_write: u64,
    /// One token received.
    pub output: u64,
}

impl Price {
    /// What `usage` costs at this price.
    pub fn of(&self, usage: &Usage) -> Usd {
        let part = |tokens: u64, price: u64| Usd(tokens.saturating_mul(price));
        part(usage.input_tokens, self.input)
            + part(usage.cache_read_tokens, self.cache_read)
            + part(usage.cache_write_tokens, self.cache_write)
            + part(usage.output_tokens, self.output)
    }
}
