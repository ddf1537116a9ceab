//! Abilities and price of a model.

use super::row::{ModelRow, PriceRow};
use posse_protocol::Price;

/// The properties of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Properties {
    /// How many tokens fit into one call, including output.
    pub window: u64,
    /// How many tokens one reply may have.
    pub max_output: u64,
    /// The price of its tokens, if it is known.
    pub price: Option<DatedPrice>,
    /// It can call tools.
    pub tools: bool,
    /// It accepts pictures.
    pub images: bool,
    /// It accepts documents, such as PDFs.
    pub documents: bool,
}

/// A price, and its date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatedPrice {
    /// The price.
    pub price: Price,
    /// A day, as in `2026-08-08`.
    pub date: Option<String>,
}

/// The properties of an unknown model.
const UNKNOWN: Properties = Properties {
    window: 128_000,
    max_output: 8_192,
    price: None,
    tools: true,
    images: true,
    documents: true,
};

/// Dollars for a million tokens, as billionths of a dollar for one.
const PER_MILLION: f64 = 1_000.0;

impl Properties {
    /// The properties of a model with only this `row`.
    pub(super) fn assumed(row: &ModelRow) -> Self {
        UNKNOWN.changed_by(row)
    }

    /// The same, changed by `row`.
    pub(super) fn changed_by(self, row: &ModelRow) -> Self {
        let window = row.window.unwrap_or(self.window);
        Properties {
            window,
            max_output: row.max_output.unwrap_or(self.max_output).min(window),
            price: row.price.as_ref().map(DatedPrice::of).or(self.price),
            tools: row.tools.unwrap_or(self.tools),
            images: row.images.unwrap_or(self.images),
            documents: row.documents.unwrap_or(self.documents),
        }
    }
}

impl DatedPrice {
    /// Costs nothing, whenever.
    pub(super) const FREE: DatedPrice = DatedPrice {
        price: Price { input: 0, cache_read: 0, cache_write: 0, output: 0 },
        date: None,
    };

    /// Without prices for the cache, these are the price of other input.
    fn of(row: &PriceRow) -> Self {
        let price = |dollars: f64| (dollars * PER_MILLION).round() as u64;
        DatedPrice {
            price: Price {
                input: price(row.input),
                cache_read: price(row.cache_read.unwrap_or(row.input)),
                cache_write: price(row.cache_write.unwrap_or(row.input)),
                output: price(row.output),
            },
            date: row.date.clone(),
        }
    }
}
