//! `posse models`: lists the models. Models that can be used now come first.

use super::Common;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::paint::Paint;
use crate::print;
use crate::table::{Column, Table};
use crate::terminal;
use posse::ResolveError;
use posse::config::Config;
use posse::model::catalog::{DatedPrice, Found, Locality, Properties, Source, Vendor};
use posse::model::{Choice, ChoiceReason, HostModel, Models};
use posse::protocol::Price;
use serde_json::{Value, json};
use std::fmt::Display;
use std::io::IsTerminal;

/// A model, and whether it can be used now.
struct Row {
    id: String,
    aliases: Vec<String>,
    /// Its properties; `None` for a server that does not answer.
    properties: Option<Properties>,
    wire: Option<&'static str>,
    source: &'static str,
    /// Why it cannot be used now.
    obstacle: Option<String>,
    /// It is free, whatever its properties are.
    free: bool,
}

pub async fn run(
    common: &Common,
    config: &Config,
    models: &Models,
    filter: Option<&str>,
) -> Result<Code, Failure> {
    let mut rows = rows(models).await;
    if let Some(filter) = filter.map(str::to_lowercase) {
        let holds = |text: &String| text.to_lowercase().contains(&filter);
        rows.retain(|row| holds(&row.id) || row.aliases.iter().any(holds));
    }
    rows.sort_by_key(|row| row.obstacle.is_some());
    if common.global.json {
        print::json_pretty(&rows.iter().map(Row::json).collect::<Vec<_>>())?;
        return Ok(Code::Done);
    }
    let paint = Paint { on: std::io::stdout().is_terminal() && !common.environment.no_color };
    // A mark before each line shows whether the model can be used.
    let room = terminal::table_width().map(|room| room.saturating_sub(2));
    let table = Table { columns: COLUMNS, rows: rows.iter().map(Row::cells).collect() };
    let (heading, lines) = table.lines(room);
    if !lines.is_empty() && !common.global.quiet {
        print::line(format!("  {heading}"))?;
    }
    for (row, line) in rows.iter().zip(lines) {
        match row.obstacle {
            None => print::line(format!("{} {line}", paint.green("●")))?,
            Some(_) => print::line(paint.dim(&format!("○ {line}")))?,
        }
    }
    if !common.global.quiet {
        tell(&rows, filter, config, &models.choose().await);
    }
    Ok(Code::Done)
}

/// Prints notes below the table.
fn tell(
    rows: &[Row],
    filter: Option<&str>,
    config: &Config,
    chosen: &Result<Choice, ResolveError>,
) {
    if rows.is_empty() {
        let filter = clean_line(filter.unwrap_or_default(), 80);
        print::note(format!("no model matches `{filter}`"));
    }
    let dates =
        rows.iter().filter_map(|row| row.properties.as_ref()?.price.as_ref()?.date.as_ref());
    if let Some(date) = dates.min() {
        print::note(format!("prices: USD per million tokens (in/out), as of {date} or later"));
    }
    print::note("other models of a vendor work, too: write vendor/name");
    let usual = |model: &str, why: &dyn Display| {
        print::note(format!("default model: {} ({why})", clean_line(model, 100)));
    };
    match (config.model.value.first(), chosen) {
        (Some(model), _) => usual(model, &config.model.origin),
        (None, Ok(choice)) => usual(&choice.model, &choice.why),
        (None, Err(none)) => print::note(none),
    }
    if chosen.as_ref().is_ok_and(|choice| choice.why == ChoiceReason::Nothing) {
        print::note("for a better one, set a key or start a local server such as ollama");
    }
}

async fn rows(models: &Models) -> Vec<Row> {
    let catalog = models.catalog();
    let mut rows: Vec<Row> =
        models.host_models().map(|(model, short)| Row::built_in(model, short)).collect();
    let known: Vec<Found<'_>> =
        catalog.models().iter().filter_map(|id| catalog.find(id).ok()).collect();
    for vendor in catalog.vendors().iter().filter(|vendor| vendor.reach == Locality::Remote) {
        let obstacle = models.check(vendor).err().map(|error| obstacle(&error));
        let of = known.iter().filter(|found| found.vendor.name == vendor.name);
        let before = rows.len();
        rows.extend(of.map(|found| Row::of(found, obstacle.clone())));
        if rows.len() == before {
            rows.push(Row::unknown(vendor, obstacle));
        }
    }
    for (vendor, offered) in models.local().await {
        let of = known.iter().filter(|found| found.vendor.name == vendor.name);
        match offered {
            Ok(names) => {
                let here = names.iter().map(|name| format!("{}/{name}", vendor.name));
                let here: Vec<String> = here.collect();
                let found = here.iter().filter_map(|id| catalog.find(id).ok());
                rows.extend(found.map(|found| Row::of(&found, None)));
                let gone = of.filter(|found| !here.contains(&found.id()));
                rows.extend(
                    gone.map(|found| {
                        Row::of(found, Some("its server does not offer it".to_owned()))
                    }),
                );
                if here.is_empty() {
                    let why = "its server offers no model".to_owned();
                    rows.push(Row::unknown(vendor, Some(why)));
                }
            }
            Err(why) => {
                let before = rows.len();
                rows.extend(of.map(|found| Row::of(found, Some(why.clone()))));
                if rows.len() == before {
                    rows.push(Row::unknown(vendor, Some(why)));
                }
            }
        }
    }
    for (alias, target) in catalog.aliases() {
        if let Some(row) = rows.iter_mut().find(|row| row.id == target) {
            row.aliases.push(alias.to_owned());
        }
    }
    rows
}

/// Why a vendor cannot be used, in a few words.
fn obstacle(error: &ResolveError) -> String {
    match error {
        ResolveError::MissingKey { variable, .. } => {
            // Any of these variables would do, so name one.
            format!("set {}", variable.split(' ').next().unwrap_or_default())
        }
        other => other.to_string(),
    }
}

const COLUMNS: [Column; 4] = [
    Column::text("MODEL").cut(36, 16),
    Column::figures("WINDOW").leaves(1),
    Column::figures("$/M IN/OUT").leaves(2),
    Column::text("STATE").cut(20, 10),
];

impl Row {
    /// A built-in model.
    fn built_in(host: &HostModel, short: Option<&str>) -> Self {
        Row {
            id: host.name().to_owned(),
            aliases: short.map(str::to_owned).into_iter().collect(),
            properties: None,
            wire: None,
            source: "built-in",
            obstacle: None,
            free: host.abilities.priced && host.model.info().price == Price::default(),
        }
    }

    fn of(found: &Found<'_>, obstacle: Option<String>) -> Self {
        let source = match found.source {
            Source::BuiltIn => "built-in",
            Source::User => "your settings",
            Source::Nobody => "its server",
        };
        Row {
            id: found.id(),
            aliases: Vec::new(),
            properties: Some(found.properties.clone()),
            wire: Some(found.wire().name()),
            source,
            obstacle,
            free: false,
        }
    }

    /// A vendor whose models are unknown.
    fn unknown(vendor: &Vendor, obstacle: Option<String>) -> Self {
        let source = match vendor.source {
            Source::User => "your settings",
            _ => "built-in",
        };
        let (id, wire) = (format!("{}/…", vendor.name), Some(vendor.wire.name()));
        Row { id, aliases: Vec::new(), properties: None, wire, source, obstacle, free: false }
    }

    fn window(&self) -> String {
        match self.properties.as_ref().map(|properties| properties.window) {
            None => "–".to_owned(),
            Some(tokens @ 1_000_000..) => format!("{}M", tokens / 1_000_000),
            Some(tokens) => format!("{}k", tokens / 1_000),
        }
    }

    fn price(&self) -> String {
        if self.free {
            return "free".to_owned();
        }
        match self.properties.as_ref().and_then(|properties| properties.price.as_ref()) {
            None => "–".to_owned(),
            Some(DatedPrice { price, .. }) if price.input == 0 && price.output == 0 => {
                "free".to_owned()
            }
            Some(DatedPrice { price, .. }) => {
                format!("${}/${}", dollars(price.input), dollars(price.output))
            }
        }
    }

    /// Its name and short names.
    fn names(&self) -> String {
        match self.aliases.is_empty() {
            true => clean_line(&self.id, 100),
            false => format!("{} ({})", clean_line(&self.id, 100), self.aliases.join(", ")),
        }
    }

    fn cells(&self) -> [String; 4] {
        let source = match self.source {
            "built-in" => "",
            source => source,
        };
        let state = match (&self.obstacle, source) {
            (Some(obstacle), "") => clean_line(obstacle, 200),
            (Some(obstacle), source) => format!("{} ({source})", clean_line(obstacle, 200)),
            (None, source) => source.to_owned(),
        };
        [self.names(), self.window(), self.price(), state]
    }

    fn json(&self) -> Value {
        let properties = self.properties.as_ref();
        let price = properties.and_then(|properties| properties.price.as_ref());
        let million = |price: u64| price as f64 / 1e3;
        json!({
            "model": self.id,
            "aliases": self.aliases,
            "usable": self.obstacle.is_none(),
            "reason": self.obstacle,
            "source": self.source,
            "wire": self.wire,
            "window": properties.map(|properties| properties.window),
            "max_output": properties.map(|properties| properties.max_output),
            "tools": properties.map(|properties| properties.tools),
            "images": properties.map(|properties| properties.images),
            "documents": properties.map(|properties| properties.documents),
            "price": price.map(|dated| json!({
                "input": million(dated.price.input),
                "cache_read": million(dated.price.cache_read),
                "cache_write": million(dated.price.cache_write),
                "output": million(dated.price.output),
                "date": dated.date,
            })),
        })
    }
}

/// Dollars per million tokens from billionths per token, without trailing zeros.
fn dollars(price: u64) -> String {
    let text = format!("{:.3}", price as f64 / 1e3);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
